"""What a slice counts against limits, and which level of the tree refuses it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WHOLE_MILLI = 1000


@dataclass(frozen=True)
class Level:
    """One account on the way from the root tenant to the project; no limit is unlimited."""

    owner_id: str
    limit_milli: int | None
    held_milli: int

    def has_room_for(self, equivalent_milli: int) -> bool:
        return self.limit_milli is None or self.held_milli + equivalent_milli <= self.limit_milli


def equivalent_milli(*, compute_milli: int, memory_mib: int, gpu_memory_mib: int) -> int:
    """Size of a slice in thousandths of its GPU: the larger of its compute and its memory part.

    The memory part is rounded up; a slice is at most a whole GPU.
    """
    if not 0 < compute_milli <= WHOLE_MILLI or memory_mib <= 0 or gpu_memory_mib <= 0:
        raise ValueError("a slice has a part of a GPU's compute and some of its memory")
    memory_part = -(-memory_mib * WHOLE_MILLI // gpu_memory_mib)
    return min(WHOLE_MILLI, max(compute_milli, memory_part))


def blocking_level(levels: Iterable[Level], equivalent_milli: int) -> Level | None:
    """Give the first level, in the order given, that has no room; None when all have."""
    for level in levels:
        if not level.has_room_for(equivalent_milli):
            return level
    return None
