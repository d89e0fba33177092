"""Metering of leases that still run: whole hours become segments while the job goes on."""

from __future__ import annotations

from datetime import datetime, timedelta

from billing.services.metering import meter
from jobs.models import Attempt, Job
from jobs.selectors import Span, lease_uses, running_jobs
from portal.core.locks import guarded, lock_rows
from portal.fleet.selectors import LeaseView, lease_views

SETTLED = timedelta(minutes=1)
_BATCH = 200


def meter_running(now: datetime) -> None:
    """Write the segments up to the last full hour in which every running lease surely ran.

    Segments are never taken back. Therefore a node that does not answer is metered up to its last
    contact, a minute is left for an end that has been told but is not taken in yet, and jobs are
    locked meanwhile: none ends between the reading of its lease and the writing.
    """
    job_ids = running_jobs()
    for start in range(0, len(job_ids), _BATCH):
        with guarded():
            _meter_jobs(job_ids[start : start + _BATCH], now)


def _meter_jobs(job_ids: list[str], now: datetime) -> None:
    jobs = lock_rows(Job.objects.filter(pk__in=job_ids))
    attempts = list(
        Attempt.objects.filter(
            job__in=jobs, started_at__isnull=False, ended_at__isnull=True
        ).select_related("job")
    )
    leases = lease_views([attempt.lease_id for attempt in attempts])
    spans = []
    for attempt in attempts:
        lease = leases[attempt.lease_id]
        until = _surely_ran_until(lease, now)
        if attempt.started_at and attempt.started_at < until:
            spans.append(Span(attempt, lease, attempt.started_at, until))
    meter(lease_uses(spans, final=False), now=now)


def _surely_ran_until(lease: LeaseView, now: datetime) -> datetime:
    return min(now, lease.node_seen_at or lease.created_at) - SETTLED
