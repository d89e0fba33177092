"""What would start now: the largest slice of each kind that is free at this moment."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.scheduling import mig
from jobs.scheduling.view import GpuState
from jobs.selectors import gpu_states


@dataclass(frozen=True)
class FreeRoom:
    """For GPUs of one model in one mode: how many are untouched, and the largest free slice.

    All of the ``largest_*`` are None where nothing is free.
    """

    gpu_model: str
    mode: str
    gpus: int
    untouched: int
    largest_memory_mib: int | None
    largest_compute_milli: int | None
    largest_profile: str | None


def free_capacity() -> list[FreeRoom]:
    """One entry for each model and mode of the GPUs in service, by name."""
    groups: dict[tuple[str, str], list[GpuState]] = {}
    for gpu in gpu_states():
        if gpu.usable:
            groups.setdefault((gpu.model, gpu.mode), []).append(gpu)
    return [_room(model, mode, gpus) for (model, mode), gpus in sorted(groups.items())]


def _room(model: str, mode: str, gpus: list[GpuState]) -> FreeRoom:
    largest = max((_largest(gpu) for gpu in gpus), default=(0, 0, ""))
    compute, memory, profile = largest
    free = compute > 0 and memory > 0
    return FreeRoom(
        gpu_model=model,
        mode=mode,
        gpus=len(gpus),
        untouched=sum(gpu.compute_leased_milli == gpu.memory_leased_mib == 0 for gpu in gpus),
        largest_memory_mib=memory if free else None,
        largest_compute_milli=compute if free else None,
        largest_profile=profile if free and profile else None,
    )


def _largest(gpu: GpuState) -> tuple[int, int, str]:
    """Compute, memory and, of an instance, its profile; zeros when nothing is free."""
    if gpu.mode == "mig":
        return _largest_instance(gpu)
    if gpu.mode == "whole" and gpu.compute_leased_milli:
        return 0, 0, ""
    compute = 1000 - gpu.compute_leased_milli
    memory = gpu.memory_mib - gpu.memory_leased_mib
    return (compute, memory, "") if compute and memory else (0, 0, "")


def _largest_instance(gpu: GpuState) -> tuple[int, int, str]:
    family = gpu.family
    if family is None:
        return 0, 0, ""
    sizes = [
        (mig.compute_milli(family, profile), min(profile.memory_mib, gpu.memory_mib), profile.name)
        for profile in {family.profile(p.profile) for p in mig.placements(family, gpu.instances)}
        if not profile.media
    ]
    return max(sizes, default=(0, 0, ""))
