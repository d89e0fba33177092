"""Periodic tasks of operators."""

from __future__ import annotations

from celery import shared_task

from portal.core.queues import Queue
from portal.ops import proofs


@shared_task(name="portal.ops.tasks.prove", queue=Queue.DEFAULT, time_limit=300)
def prove() -> None:
    proofs.prove()
