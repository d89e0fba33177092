"""The Celery application: queues, and what runs at an interval.

Tasks are sent by `portal.core.outbox` and by the schedule here, by nobody else. Two schedulers do
no harm: every periodic task may run twice.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from celery import Celery
from celery.signals import task_postrun, task_prerun
from django.db import close_old_connections
from kombu import Queue as Declared

from portal.config import config
from portal.core.queues import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")


@dataclass(frozen=True)
class Periodic:
    task: str
    every_s: float
    queue: Queue


PERIODIC = (
    Periodic("portal.core.tasks.send_due", 1.0, Queue.DEFAULT),
    Periodic("portal.core.tasks.forget_old", 3600.0, Queue.DEFAULT),
    Periodic("jobs.tasks.keep_logs", 60.0, Queue.DEFAULT),
    Periodic("jobs.tasks.meter_running", 60.0, Queue.BILLING),
    Periodic("portal.ops.tasks.prove", 6 * 3600.0, Queue.DEFAULT),
)

app = Celery("gpucommons")
app.conf.update(
    broker_url=config.redis_url or "memory://localhost/",
    broker_connection_retry_on_startup=True,
    # The in-process broker polls; its default interval costs seconds.
    broker_transport_options=(
        {"polling_interval": 0.01}
        if config.embedded
        # A broker that stands still may not hold whoever sends: the outbox sends again.
        else {"visibility_timeout": 120, "socket_connect_timeout": 2, "socket_timeout": 5}
    ),
    task_publish_retry_policy={"max_retries": 1, "interval_start": 0},
    task_ignore_result=True,
    task_default_queue=Queue.DEFAULT,
    task_queues=[Declared(queue) for queue in Queue],
    task_serializer="json",
    accept_content=["json"],
    worker_redirect_stdouts=False,
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    enable_utc=True,
    beat_schedule={
        entry.task: {
            "task": entry.task,
            "schedule": entry.every_s,
            "options": {"queue": entry.queue, "expires": max(10.0, entry.every_s)},
        }
        for entry in PERIODIC
    },
)
# Celery would close the database's connections around every task; Django's own rule does it here.
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize
app.autodiscover_tasks(["portal.core", "jobs", "portal.ops"])
app.set_default()


@task_prerun.connect
@task_postrun.connect
def _close_old_connections(**_: Any) -> None:
    """Treat a task as Django treats a request."""
    close_old_connections()
