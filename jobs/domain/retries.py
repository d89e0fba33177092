"""Which exit codes are tried again, and after how long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

FIRST_PAUSE_S = 10
LONGEST_PAUSE_S = 600
MOST_RANGES = 64
_RANGE = re.compile(r"([0-9]{1,3})(?:\s*-\s*([0-9]{1,3}))?")

Range = tuple[int, int]


def read_ranges(texts: Iterable[str]) -> tuple[Range, ...]:
    """Read ``75`` and ``100-110``. Raises `ValueError` with a sentence for people."""
    ranges = []
    for text in texts:
        found = _RANGE.fullmatch(text.strip())
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= low <= high <= 255:
            raise ValueError(f"{text[:40]!r} is no exit code from 1 to 255 and no range of them.")
        ranges.append((low, high))
    if len(ranges) > MOST_RANGES:
        raise ValueError(f"There are {len(ranges)} ranges; at most {MOST_RANGES} are allowed.")
    return tuple(ranges)


def write_ranges(ranges: Sequence[Sequence[int]]) -> tuple[str, ...]:
    return tuple(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def is_retried(exit_code: int, ranges: Sequence[Sequence[int]]) -> bool:
    return any(low <= exit_code <= high for low, high in ranges)


def pause_s(used: int) -> int:
    """The pause before the next attempt when ``used`` attempts have been used up."""
    return int(min(FIRST_PAUSE_S * 2 ** min(max(used - 1, 0), 10), LONGEST_PAUSE_S))
