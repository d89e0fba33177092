"""MIG geometry: which instances a GPU in MIG mode can hold, exactly, by table.

A GPU instance is an interval on the memory axis plus compute slices. A set is legal when intervals
do not overlap, compute slices fit and each starts where its profile may. Source: NVIDIA's MIG user
guide; starts of the seven-slice family were read from an H200 (driver 580).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Profile:
    name: str
    compute_slices: int
    size: int
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Family:
    compute_slices: int
    memory_units: int
    profiles: tuple[Profile, ...]

    def profile(self, name: str) -> Profile:
        return next(profile for profile in self.profiles if profile.name == name)


SEVEN = Family(
    7,
    8,
    (
        Profile("1g", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
        Profile("1g.2xmem", 1, 2, (0, 2, 4, 6)),
        Profile("2g", 2, 2, (0, 2, 4)),
        Profile("3g", 3, 4, (0, 4)),
        Profile("4g", 4, 4, (0,)),
        Profile("7g", 7, 8, (0,)),
    ),
)
FOUR = Family(
    4,
    4,
    (
        Profile("1g", 1, 1, (0, 1, 2, 3)),
        Profile("2g", 2, 2, (0, 2)),
        Profile("4g", 4, 4, (0,)),
    ),
)


def family_of(model: str) -> Family | None:
    """The family of a GPU by its NVML name; ``None`` when the model is not known to have MIG."""
    if "A30" in model.split():
        return FOUR
    seven = ("A100", "H100", "H200", "H20", "GH200", "B200", "GB200", "B300")
    words = model.replace("-", " ").split()
    return SEVEN if any(word in seven for word in words) else None


@dataclass(frozen=True, order=True)
class Placement:
    profile: str
    start: int


def placements(family: Family, taken: Iterable[Placement]) -> list[Placement]:
    """Every instance that may still be made beside those taken, in the order of the table."""
    return list(_placements(family, frozenset(taken)))


@cache
def _placements(family: Family, taken: frozenset[Placement]) -> tuple[Placement, ...]:
    used_units = 0
    used_slices = 0
    for placement in taken:
        profile = family.profile(placement.profile)
        used_units |= _mask(profile, placement.start)
        used_slices += profile.compute_slices
    return tuple(
        Placement(profile.name, start)
        for profile in family.profiles
        if used_slices + profile.compute_slices <= family.compute_slices
        for start in profile.starts
        if not used_units & _mask(profile, start)
    )


def best_start(family: Family, taken: Iterable[Placement], profile: str) -> Placement | None:
    """The legal start that leaves the most other placements; the highest of equals."""
    taken = frozenset(taken)
    candidates = [place for place in _placements(family, taken) if place.profile == profile]
    if not candidates:
        return None
    return max(
        candidates, key=lambda place: (len(_placements(family, taken | {place})), place.start)
    )


def units(family: Family, placement: Placement) -> range:
    profile = family.profile(placement.profile)
    return range(placement.start, placement.start + profile.size)


def compute_milli(family: Family, profile: Profile) -> int:
    return profile.compute_slices * 1000 // family.compute_slices


def memory_mib(family: Family, profile: Profile, gpu_memory_mib: int) -> int:
    return profile.size * gpu_memory_mib // family.memory_units


def _mask(profile: Profile, start: int) -> int:
    return ((1 << profile.size) - 1) << start
