"""Metering of leases that still run: whole hours become segments while the job goes on."""

from __future__ import annotations

from datetime import datetime, timedelta

from billing.services.metering import meter
from jobs.selectors import lease_use, running_attempts
from portal.fleet.selectors import LeaseView, lease_views

SETTLED = timedelta(minutes=1)


def meter_running(now: datetime) -> None:
    """Write the segments up to the last full hour in which every running lease surely ran.

    Segments are never taken back. Therefore a node that does not answer is metered up to its last
    contact, and a minute is left for an end that has been told but is not taken in yet.
    """
    attempts = running_attempts()
    leases = lease_views([attempt.lease_id for attempt in attempts])
    uses = []
    for attempt in attempts:
        lease = leases[attempt.lease_id]
        until = _surely_ran_until(lease, now)
        if attempt.started_at and attempt.started_at < until:
            uses.append(
                lease_use(attempt, lease, started_at=attempt.started_at, until=until, final=False)
            )
    meter(uses, now=now)


def _surely_ran_until(lease: LeaseView, now: datetime) -> datetime:
    return min(now, lease.node_seen_at or lease.created_at) - SETTLED
