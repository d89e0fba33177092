"""Long polls: a request may wait for a change, a bounded number of them at once.

A waiter holds one thread and no transaction. When every place is taken the answer comes at once
and the caller asks again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOST_WAITERS = 24
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.1

_places = threading.BoundedSemaphore(MOST_WAITERS)


@contextmanager
def place() -> Iterator[bool]:
    """Take a place among the waiters; false when there is none."""
    taken = _places.acquire(blocking=False)
    try:
        yield taken
    finally:
        if taken:
            _places.release()


def wait_while(same: Callable[[], bool], wait_ms: int) -> None:
    """Ask again and again until ``same`` is false or the time is over."""
    if wait_ms <= 0:
        return
    with place() as taken:
        if not taken:
            return
        deadline = time.monotonic() + wait_ms / 1000
        pause = _FIRST_PAUSE_S
        while same():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)
