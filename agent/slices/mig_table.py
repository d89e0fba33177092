"""Which MIG instances a model can hold, and where.

A GPU in MIG mode is an axis of memory units and a number of compute slices. An instance takes
``size`` units from one of its legal starts. The tables are for stand-ins and for refusing what no
card can do; a real card is asked itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.wire import MigGeometry, MigProfile


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    compute: int
    size: int
    starts: tuple[int, ...]
    most: int
    memory_mib: int
    media: bool = False


@dataclass(frozen=True, slots=True)
class Geometry:
    compute: int
    units: int
    profiles: dict[str, Profile]


@dataclass(frozen=True, slots=True)
class Placement:
    profile: str
    start: int


def _geometry(compute: int, units: int, *profiles: Profile) -> Geometry:
    return Geometry(compute, units, {profile.name: profile for profile in profiles})


_ANY7 = (0, 1, 2, 3, 4, 5, 6)

#: By the name that the driver gives the model.
GEOMETRIES: dict[str, Geometry] = {
    "NVIDIA H200": _geometry(
        7,
        8,
        Profile("1g.18gb", 1, 1, _ANY7, 7, 16384),
        Profile("1g.18gb+me", 1, 1, _ANY7, 1, 16384, media=True),
        Profile("1g.35gb", 1, 2, (0, 2, 4, 6), 4, 33280),
        Profile("2g.35gb", 2, 2, (0, 2, 4), 3, 33280),
        Profile("3g.71gb", 3, 4, (0, 4), 2, 71424),
        Profile("4g.71gb", 4, 4, (0,), 1, 71424),
        Profile("7g.141gb", 7, 8, (0,), 1, 143360),
    ),
    "NVIDIA A100-SXM4-80GB": _geometry(
        7,
        8,
        Profile("1g.10gb", 1, 1, _ANY7, 7, 9856),
        Profile("1g.10gb+me", 1, 1, _ANY7, 1, 9856, media=True),
        Profile("1g.20gb", 1, 2, (0, 2, 4, 6), 4, 19968),
        Profile("2g.20gb", 2, 2, (0, 2, 4), 3, 19968),
        Profile("3g.40gb", 3, 4, (0, 4), 2, 40192),
        Profile("4g.40gb", 4, 4, (0,), 1, 40192),
        Profile("7g.80gb", 7, 8, (0,), 1, 80384),
    ),
    "NVIDIA A30": _geometry(
        4,
        4,
        Profile("1g.6gb", 1, 1, (0, 1, 2, 3), 4, 5836),
        Profile("1g.6gb+me", 1, 1, (0, 1, 2, 3), 1, 5836, media=True),
        Profile("2g.12gb", 2, 2, (0, 2), 2, 11672),
        Profile("2g.12gb+me", 2, 2, (0, 2), 1, 11672, media=True),
        Profile("4g.24gb", 4, 4, (0,), 1, 23344),
    ),
}


def told(model: str) -> MigGeometry | None:
    """The table of a model as the portal is told it."""
    geometry = GEOMETRIES.get(model)
    if geometry is None:
        return None
    return MigGeometry(
        compute_slices=geometry.compute,
        memory_units=geometry.units,
        profiles=[
            MigProfile(
                name=profile.name,
                compute_slices=profile.compute,
                size=profile.size,
                starts=list(profile.starts),
                most=profile.most,
                memory_mib=profile.memory_mib,
                media=profile.media,
            )
            for profile in geometry.profiles.values()
        ],
    )


def obstacle(geometry: Geometry, wanted: Placement, placed: Sequence[Placement]) -> str | None:
    """Why ``wanted`` cannot stand beside what is placed; None when it can."""
    profile = geometry.profiles.get(wanted.profile)
    if profile is None:
        return f"the model has no profile {wanted.profile}: {', '.join(geometry.profiles)}"
    if wanted.start not in profile.starts:
        starts = ", ".join(map(str, profile.starts))
        return f"{wanted.profile} starts at {starts}, not at {wanted.start}"
    end = wanted.start + profile.size
    others = [(place, geometry.profiles[place.profile]) for place in placed]
    for place, other in others:
        if wanted.start < place.start + other.size and place.start < end:
            return f"units {wanted.start} to {end - 1} overlap {place.profile} at {place.start}"
    if profile.compute + sum(other.compute for _, other in others) > geometry.compute:
        return f"fewer than {profile.compute} of {geometry.compute} compute slices are free"
    if 1 + sum(place.profile == wanted.profile for place, _ in others) > profile.most:
        return f"a GPU holds at most {profile.most} of {wanted.profile}"
    if profile.media and any(other.media for _, other in others):
        return "another instance has the media engines"
    return None
