"""Metering of leases that still run: whole hours become segments while the job goes on."""

from __future__ import annotations

from datetime import datetime

from billing.services.metering import meter
from jobs.selectors import lease_use, running_attempts
from portal.fleet.selectors import lease_views


def meter_running(now: datetime) -> None:
    """Write the segments up to the last full hour of every running lease."""
    attempts = running_attempts()
    leases = lease_views([attempt.lease_id for attempt in attempts])
    uses = [
        lease_use(
            attempt,
            leases[attempt.lease_id],
            started_at=attempt.started_at,
            until=now,
            final=False,
        )
        for attempt in attempts
        if attempt.started_at and attempt.started_at < now
    ]
    meter(uses, now=now)
