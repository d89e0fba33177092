"""Tasks of the workers. Each takes ids and calls a service."""

from __future__ import annotations

from celery import shared_task

from jobs.services import kept_logs, metering, tell
from jobs.services.engine import agent_engine
from portal.core import outbox
from portal.core.clock import utc_now
from portal.core.queues import Queue


@shared_task(name="jobs.tasks.tell_leases", queue=Queue.OUTBOX, acks_late=True, time_limit=60)
def tell_leases(message_ids: list[int], lease_ids: list[str]) -> None:
    """Tell nodes of leases; what was not answered the outbox sends again."""
    told = tell.tell_leases(agent_engine(), lease_ids, now=utc_now())
    outbox.done(
        message_id
        for message_id, lease_id in zip(message_ids, lease_ids, strict=True)
        if lease_id in told
    )


@shared_task(name="jobs.tasks.meter_running", queue=Queue.BILLING, time_limit=300)
def meter_running() -> None:
    metering.meter_running(utc_now())


@shared_task(name="jobs.tasks.keep_logs", queue=Queue.DEFAULT, time_limit=600)
def keep_logs() -> None:
    kept_logs.keep_logs(agent_engine(), now=utc_now())
