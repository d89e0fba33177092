"""Hints between loops: "look now". A lost hint costs time, never work.

Embedded, a hint is an event of this process; with Redis it is a list that wakes one waiter.
"""

from __future__ import annotations

import threading
from enum import StrEnum
from functools import cache

import redis
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from portal.config import config


class Hint(StrEnum):
    SCHEDULE = "schedule"
    WATCH = "watch"


_events = {hint: threading.Event() for hint in Hint}


@cache
def _redis() -> redis.Redis:
    """Without the client's own patient retries: a hint is not worth a wait."""
    return redis.Redis.from_url(
        config.redis_url,
        socket_connect_timeout=2,
        socket_timeout=3,
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    )


def _give(hint: Hint) -> None:
    if config.embedded:
        _events[hint].set()
        return
    key = f"gpucommons:hint:{hint}"
    try:
        with _redis().pipeline() as pipe:
            pipe.lpush(key, 1)
            pipe.ltrim(key, 0, 0)
            pipe.execute()
    except redis.RedisError:
        return


def give_on_commit(hint: Hint) -> None:
    """Wake whoever waits for the hint once the current transaction has committed."""
    transaction.on_commit(lambda: _give(hint))


def wait(hint: Hint, timeout_s: float) -> bool:
    """Wait until the hint is given; false after the time, or at once when Redis is lost."""
    if config.embedded:
        event = _events[hint]
        given = event.wait(timeout_s)
        event.clear()
        return given
    try:
        return _redis().blpop([f"gpucommons:hint:{hint}"], timeout=timeout_s) is not None
    except redis.RedisError:
        threading.Event().wait(timeout_s)
        return False
