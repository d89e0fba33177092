"""Periodic tasks of the platform itself."""

from __future__ import annotations

from celery import shared_task

from portal.core import idempotency, outbox
from portal.core.clock import utc_now
from portal.core.queues import Queue


@shared_task(name="portal.core.tasks.send_due", queue=Queue.DEFAULT, time_limit=60)
def send_due() -> None:
    outbox.send_due(utc_now())


@shared_task(name="portal.core.tasks.forget_old", queue=Queue.DEFAULT, time_limit=60)
def forget_old() -> None:
    idempotency.forget_old(utc_now())
