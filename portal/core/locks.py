"""The one locking doctrine: row locks in a fixed order inside one short write transaction.

The order is: idempotency key, tenant and project accounts, quota rows, node, GPU, job, lease; rows
of one kind by id. Lock what becomes less available as late as possible, but before the check. On
SQLite ``BEGIN IMMEDIATE`` makes the transaction itself the lock; since that starves writers, those
of one process queue before it, first come first served.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import OperationalError, connection, models, transaction

from portal.core import crash
from portal.core.errors import busy

_BUSY_TEXTS = ("database is locked", "lock timeout", "deadlock detected", "could not serialize")


class FairLock:
    """A mutual exclusion lock that is handed on in the order of asking."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self) -> None:
        with self._mutex:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def release(self) -> None:
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False


_sqlite_writers = FairLock()

M = TypeVar("M", bound=models.Model)


@contextmanager
def guarded() -> Iterator[None]:
    """One short write transaction. Nested use joins the outer one.

    Raises ``portal.busy`` (retryable) when the database does not grant the locks in 3 s.
    """
    if connection.in_atomic_block:
        yield
        return
    queued = connection.vendor == "sqlite"
    if queued:
        _sqlite_writers.acquire()
    try:
        with transaction.atomic():
            yield
            crash.point("commit.before")
        crash.point("commit.after")
    except OperationalError as error:
        if any(text in str(error) for text in _BUSY_TEXTS):
            raise busy() from error
        raise
    finally:
        if queued:
            _sqlite_writers.release()


@contextmanager
def one_snapshot() -> Iterator[None]:
    """What is read inside is one state of the database, whatever others commit meanwhile."""
    if connection.in_atomic_block:
        yield
        return
    with guarded():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def lock_rows(rows: models.QuerySet[M]) -> list[M]:
    """Lock and read rows, ordered by primary key. Refuses outside a transaction."""
    if not connection.in_atomic_block:
        raise RuntimeError("rows are locked only inside guarded()")
    return list(rows.order_by("pk").select_for_update(of=("self",), no_key=True))


def assert_no_transaction() -> None:
    """Called before any network call: nothing waits on a peer while it holds locks."""
    if connection.in_atomic_block:
        raise RuntimeError("no network call inside a database transaction")
