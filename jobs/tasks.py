"""Tasks of the workers. Each takes ids and calls a service."""

from __future__ import annotations

import structlog
from celery import shared_task

from jobs.engines.base import EngineError
from jobs.services import metering, tell
from jobs.services.engine import agent_engine
from portal.core import outbox
from portal.core.clock import utc_now
from portal.core.queues import Queue

_log = structlog.get_logger(__name__)


@shared_task(name="jobs.tasks.tell_lease", queue=Queue.OUTBOX, acks_late=True, time_limit=60)
def tell_lease(message_id: int, lease_id: str) -> None:
    """Tell a node of a lease; without an answer the outbox sends this again."""
    try:
        tell.tell_lease(agent_engine(), lease_id, now=utc_now())
    except EngineError as error:
        _log.info("tell_lease.later", lease_id=lease_id, error=str(error))
        return
    outbox.done([message_id])


@shared_task(name="jobs.tasks.meter_running", queue=Queue.BILLING, time_limit=300)
def meter_running() -> None:
    metering.meter_running(utc_now())
