"""The node's clocks, and the boot that its monotonic clock counts from."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def now() -> datetime:
    return datetime.now(UTC)


def wall_ns() -> int:
    return time.time_ns()


def monotonic_ns() -> int:
    """Nanoseconds on the clock that the supervisor uses too (CLOCK_MONOTONIC)."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def from_wall_ns(value: int) -> datetime:
    """Exact to the microsecond, which floats would not be."""
    return _EPOCH + timedelta(microseconds=value // 1000)
