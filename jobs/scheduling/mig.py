"""MIG geometry: which instances a GPU in MIG mode can hold, exactly, by table.

A GPU instance is an interval on the memory axis plus compute slices. A set is legal when intervals
do not overlap, compute slices fit and each starts where its profile may. Source: NVIDIA's MIG user
guide. The tables come from the nodes, which ask the driver.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Profile:
    """A kind of instance; ``media`` ones have the only media engines and are never chosen."""

    name: str
    compute_slices: int
    size: int
    starts: tuple[int, ...]
    memory_mib: int
    media: bool = False


@dataclass(frozen=True)
class Family:
    """What a GPU in MIG mode can be cut into, as its node reports it."""

    compute_slices: int
    memory_units: int
    profiles: tuple[Profile, ...]

    def profile(self, name: str) -> Profile:
        return next(profile for profile in self.profiles if profile.name == name)


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


def _mask(profile: Profile, start: int) -> int:
    return ((1 << profile.size) - 1) << start
