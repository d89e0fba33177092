"""What a GPU can hold and what serves a request, written a second time from the documents.

Nothing here calls the scheduler's own rules. A MIG instance is an interval of memory units, from
its start on, with a number of compute slices, as NVIDIA's MIG user guide draws it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

from jobs.scheduling.mig import Family, Profile

# profile: compute slices, memory units, starts, MiB
H200 = {
    "1g.18gb": (1, 1, {0, 1, 2, 3, 4, 5, 6}, 16_384),
    "1g.35gb": (1, 2, {0, 2, 4, 6}, 33_280),
    "2g.35gb": (2, 2, {0, 2, 4}, 33_280),
    "3g.71gb": (3, 4, {0, 4}, 71_424),
    "4g.71gb": (4, 4, {0}, 71_424),
    "7g.141gb": (7, 8, {0}, 143_360),
}
A100 = {
    "1g.10gb": (1, 1, {0, 1, 2, 3, 4, 5, 6}, 9_856),
    "1g.20gb": (1, 2, {0, 2, 4, 6}, 19_968),
    "2g.20gb": (2, 2, {0, 2, 4}, 19_968),
    "3g.40gb": (3, 4, {0, 4}, 40_192),
    "4g.40gb": (4, 4, {0}, 40_192),
    "7g.80gb": (7, 8, {0}, 80_384),
}
A30 = {
    "1g.6gb": (1, 1, {0, 1, 2, 3}, 5_836),
    "2g.12gb": (2, 2, {0, 2}, 11_672),
    "4g.24gb": (4, 4, {0}, 23_344),
}

# model: profiles, compute slices, memory units
CARDS = {
    "NVIDIA H200": (H200, 7, 8),
    "NVIDIA A100-SXM4-80GB": (A100, 7, 8),
    "NVIDIA A30": (A30, 4, 4),
}


def family(model: str) -> Family:
    """The table as the scheduler is told it."""
    profiles, slices, units = CARDS[model]
    return Family(
        slices,
        units,
        tuple(
            Profile(name, compute, size, tuple(sorted(starts)), memory)
            for name, (compute, size, starts, memory) in profiles.items()
        ),
    )


def mig_is_legal(model: str, instances: Iterable[tuple[str, int]]) -> bool:
    """Starts are allowed, intervals are disjoint and the compute slices suffice."""
    profiles, slices, units = CARDS[model]
    intervals = sorted((start, start + profiles[name][1]) for name, start in instances)
    return (
        all(start in profiles[name][2] for name, start in instances)
        and all(end <= units for _, end in intervals)
        and all(one[1] <= two[0] for one, two in pairwise(intervals))
        and sum(profiles[name][0] for name, _ in instances) <= slices
    )


def mig_room(model: str, instances: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Every instance that could be added."""
    taken = list(instances)
    return [
        (name, start)
        for name, (_, _, starts, _) in CARDS[model][0].items()
        for start in sorted(starts)
        if mig_is_legal(model, [*taken, (name, start)])
    ]


def sizes(request, gpu_memory_mib: int) -> tuple[int, int]:
    """Thousandths of compute and MiB that a request asks of a GPU; the absent from the other."""
    milli, mib = request.compute_milli, request.memory_mib
    from_memory = ceil(Fraction((mib or gpu_memory_mib) * 1000, gpu_memory_mib))
    from_compute = floor(Fraction((milli or 1000) * gpu_memory_mib, 1000))
    return milli or from_memory, mib or from_compute


def asks_for_whole(request) -> bool:
    unsized = request.compute_milli is None and request.memory_mib is None
    return request.form == "whole" or (
        request.form == "any" and (unsized or request.compute_milli == 1000)
    )


def slices_for(request, gpu) -> Iterator[int]:
    """Equivalents of every slice of the GPU that would serve the request beside its leases."""
    milli, mib = sizes(request, gpu.memory_mib)
    right_model = request.gpu_model.lower() in gpu.model.lower()
    if not (gpu.usable and right_model and milli <= 1000 and mib <= gpu.memory_mib):
        return
    whole = asks_for_whole(request)
    if gpu.mode == "mig":
        if whole or request.form not in ("any", "mig"):
            return
        profiles, slices, _ = CARDS[gpu.model]
        taken = [(place.profile, place.start) for place in gpu.instances]
        for name, _ in mig_room(gpu.model, taken):
            part, _, _, held = profiles[name]
            if Fraction(part, slices) >= Fraction(milli, 1000) and held >= (
                request.memory_mib or 0
            ):
                yield equivalent(part * 1000 // slices, held, gpu.memory_mib)
    elif whole or (gpu.mode == "whole" and request.form == "any"):
        if gpu.compute_leased_milli == gpu.memory_leased_mib == 0:
            yield 1000
    elif (
        gpu.mode == "share"
        and request.form in ("any", "share")
        and gpu.compute_leased_milli + milli <= 1000
        and gpu.memory_leased_mib + mib <= gpu.memory_mib
    ):
        yield equivalent(milli, mib, gpu.memory_mib)


def equivalent(compute_milli: int, memory_mib: int, gpu_memory_mib: int) -> int:
    return max(compute_milli, -(-memory_mib * 1000 // gpu_memory_mib))
