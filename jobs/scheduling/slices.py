"""Which slice of a GPU serves a request, and how much of the GPU it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.domain.states import Form
from jobs.scheduling import mig
from jobs.scheduling.view import GpuState, Request
from quotas.domain.accounts import equivalent_milli


@dataclass(frozen=True)
class Offer:
    """A slice that would serve: ``waste_milli`` is what it holds beyond the request."""

    kind: str
    memory_mib: int
    compute_milli: int
    equivalent_milli: int
    waste_milli: int
    instance: mig.Placement | None = None


def share_of(request: Request, gpu_memory_mib: int) -> tuple[int, int]:
    """Compute and memory of a share on this GPU; an absent size follows from the other one."""
    compute, memory = request.compute_milli, request.memory_mib
    if compute is None:
        compute = 1000 if memory is None else max(1, -(-memory * 1000 // gpu_memory_mib))
    if memory is None:
        memory = max(1, gpu_memory_mib * compute // 1000)
    return compute, memory


def offers(request: Request, gpu: GpuState) -> Iterator[Offer]:
    """Every kind of slice that this GPU can give for the request now."""
    if request.gpu_model and request.gpu_model.lower() not in gpu.model.lower():
        return
    compute, memory = share_of(request, gpu.memory_mib)
    if compute > 1000 or memory > gpu.memory_mib:
        return
    if gpu.mode == "mig":
        yield from _instances(request, gpu, compute, memory)
        return
    if request.wants_whole or (gpu.mode == "whole" and request.form is Form.ANY):
        if gpu.compute_leased_milli == 0 and gpu.memory_leased_mib == 0:
            asked = _size(compute, memory, gpu)
            yield Offer("whole", gpu.memory_mib, 1000, 1000, 1000 - asked)
        return
    fits = (
        gpu.compute_leased_milli + compute <= 1000
        and gpu.memory_leased_mib + memory <= gpu.memory_mib
    )
    if gpu.mode == "share" and request.form in (Form.ANY, Form.SHARE) and fits:
        yield Offer("share", memory, compute, _size(compute, memory, gpu), 0)


def _size(compute_milli: int, memory_mib: int, gpu: GpuState) -> int:
    return equivalent_milli(
        compute_milli=compute_milli, memory_mib=memory_mib, gpu_memory_mib=gpu.memory_mib
    )


def _instances(request: Request, gpu: GpuState, compute: int, memory: int) -> Iterator[Offer]:
    family = gpu.family
    if family is None or request.wants_whole or request.form not in (Form.ANY, Form.MIG):
        return
    asked = _size(compute, memory, gpu)
    for profile in family.profiles:
        held = min(profile.memory_mib, gpu.memory_mib)
        if profile.media or (request.memory_mib is not None and held < memory):
            continue
        if profile.compute_slices * 1000 < compute * family.compute_slices:
            continue
        instance = mig.best_start(family, gpu.instances, profile.name)
        if instance is None:
            continue
        given = mig.compute_milli(family, profile)
        size = _size(given, held, gpu)
        yield Offer("mig", held, given, size, size - asked, instance)
