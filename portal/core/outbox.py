"""The outbox: effects outside the database, written with the change that wants them.

`put` joins the caller's transaction; after its commit a task of the topic is sent to the workers,
and `send_due` of the slow loop sends again whatever was not `done` in time. Delivery is at least
once: receivers are idempotent. This module and `portal.celery` alone send tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from celery import current_app
from django.db import transaction
from django.db.models import Count, F, Min
from kombu.exceptions import OperationalError as BrokerLost

from portal.core import crash
from portal.core.locks import guarded
from portal.core.models import OutboxMessage

_log = structlog.get_logger(__name__)
FIRST_RETRY = timedelta(seconds=5)
LAST_RETRY = timedelta(minutes=5)
SENT_TOGETHER = 4


@dataclass(frozen=True)
class Topic:
    """A kind of message: the task that delivers some (message ids, references) and its queue."""

    name: str
    task: str
    queue: str


_topics: dict[str, Topic] = {}


def register(topic: Topic) -> Topic:
    _topics[topic.name] = topic
    return topic


def put(topic: Topic, refs: Iterable[str], *, now: datetime) -> None:
    """Write one message for each reference inside the current transaction."""
    messages = OutboxMessage.objects.bulk_create(
        OutboxMessage(topic=topic.name, ref=ref, created_at=now, due_at=now + FIRST_RETRY)
        for ref in refs
    )
    pairs = [(message.pk, message.ref) for message in messages]
    transaction.on_commit(lambda: _send(topic, pairs))


def done(message_ids: Iterable[int]) -> None:
    """The receiver has seen these messages."""
    seen = list(message_ids)
    if not seen:
        return
    with guarded():
        OutboxMessage.objects.filter(pk__in=seen).delete()
    crash.point("outbox.done")


def forget(topic: Topic) -> None:
    """Drop every message of a topic, for a caller that has its receivers find out otherwise."""
    with guarded():
        OutboxMessage.objects.filter(topic=topic.name).delete()


def backlog() -> tuple[int, datetime | None]:
    """How many messages are not done, and since when the oldest waits."""
    found = OutboxMessage.objects.aggregate(count=Count("pk"), since=Min("created_at"))
    return found["count"], found["since"]


def send_due(now: datetime) -> int:
    """Send again what is due, with a back-off that doubles up to five minutes; how many."""
    due = list(OutboxMessage.objects.filter(due_at__lte=now).order_by("pk")[:500])
    for message in due:
        wait = min(FIRST_RETRY * 2 ** min(message.tries, 10), LAST_RETRY)
        with guarded():
            claimed = OutboxMessage.objects.filter(pk=message.pk, due_at=message.due_at).update(
                due_at=now + wait, tries=F("tries") + 1
            )
        crash.point("outbox.due_claimed")
        if claimed:
            _send(_topics[message.topic], [(message.pk, message.ref)])
    return len(due)


def _send(topic: Topic, pairs: list[tuple[int, str]]) -> None:
    crash.point(f"outbox.send.{topic.name}")
    for start in range(0, len(pairs), SENT_TOGETHER):
        some = pairs[start : start + SENT_TOGETHER]
        args = [[message_id for message_id, _ in some], [ref for _, ref in some]]
        try:
            current_app.send_task(topic.task, args=args, queue=topic.queue)
        except BrokerLost as error:
            _log.warning("outbox.broker_lost", topic=topic.name, error=str(error))
            return
