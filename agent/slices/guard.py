"""Whether a slice may be given away beside those already given: the agent's own guard.

Pure: the same GPU, wish and active slices give the same answer. The portal decides what runs
where; this refuses what the node cannot hold, whatever the portal believes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.errors import Refused
from agent.slices import mig_table
from agent.wire import Enforcement, GpuInfo, SharingMode, SliceKind, SliceSpec

_MODES = {
    SharingMode.WHOLE: {SliceKind.WHOLE},
    SharingMode.SHARE: {SliceKind.WHOLE, SliceKind.SHARE},
    SharingMode.MIG: {SliceKind.MIG},
}
_FULL_COMPUTE = 1000


@dataclass(frozen=True, slots=True)
class Enforced:
    memory: Enforcement
    compute: Enforcement


def enforcement(kind: SliceKind) -> Enforced:
    """How hard this agent keeps a slice of this kind."""
    if kind is SliceKind.SHARE:
        return Enforced(Enforcement.NONE, Enforcement.NONE)
    return Enforced(Enforcement.HARDWARE, Enforcement.HARDWARE)


def check(gpu: GpuInfo | None, wish: SliceSpec, active: Sequence[SliceSpec]) -> None:
    """Raises `Refused` unless ``wish`` fits ``gpu`` beside the slices active on it."""
    if gpu is None:
        raise Refused(
            422,
            "agent.gpu_unknown",
            f"this node has no GPU {wish.gpu_uuid}",
            field="slice.gpu_uuid",
            hint="read the inventory again",
        )
    if not gpu.healthy:
        raise Refused(
            409,
            "agent.gpu_unhealthy",
            f"GPU {gpu.uuid} is out of service: {gpu.health_reason or 'no reason known'}",
            field="slice.gpu_uuid",
            hint="choose another GPU or wait for its health event",
        )
    if wish.kind not in _MODES[gpu.mode]:
        raise Refused(
            422,
            "agent.mode_mismatch",
            f"GPU {gpu.uuid} is in {gpu.mode} mode and gives no {wish.kind} slice",
            field="slice.kind",
            hint=f"ask for {' or '.join(sorted(_MODES[gpu.mode]))}",
        )
    if wish.kind is SliceKind.MIG:
        _check_mig(gpu, wish, active)
    else:
        _check_share(gpu, wish, active)


def _check_share(gpu: GpuInfo, wish: SliceSpec, active: Sequence[SliceSpec]) -> None:
    if wish.memory_mib > gpu.memory_mib:
        raise Refused(
            422,
            "agent.slice_too_large",
            f"GPU {gpu.uuid} has {gpu.memory_mib} MiB, not {wish.memory_mib}",
            field="slice.memory_mib",
            hint=f"ask for at most {gpu.memory_mib} MiB",
        )
    if active and (
        wish.kind is SliceKind.WHOLE or any(other.kind is SliceKind.WHOLE for other in active)
    ):
        raise _taken(gpu, "slice.gpu_uuid", "a whole GPU is shared with nobody")
    memory = sum(other.memory_mib for other in active)
    if memory + wish.memory_mib > gpu.memory_mib:
        raise _taken(gpu, "slice.memory_mib", f"{gpu.memory_mib - memory} MiB are free")
    compute = sum(other.compute_milli for other in active)
    if compute + wish.compute_milli > _FULL_COMPUTE:
        raise _taken(
            gpu,
            "slice.compute_milli",
            f"{_FULL_COMPUTE - compute} thousandths are free",
        )


def _check_mig(gpu: GpuInfo, wish: SliceSpec, active: Sequence[SliceSpec]) -> None:
    geometry = mig_table.GEOMETRIES.get(gpu.model)
    if not gpu.simulated or geometry is None:
        raise Refused(
            422,
            "agent.mig_unsupported",
            f"this agent makes no MIG instances on {gpu.model}",
            field="slice.kind",
            hint="choose a GPU that is not in MIG mode",
        )
    if wish.mig_profile is None or wish.mig_start is None:
        missing = "mig_profile" if wish.mig_profile is None else "mig_start"
        raise Refused(
            422,
            "agent.invalid",
            "a MIG slice names its profile and its start",
            field=f"slice.{missing}",
        )
    wanted = mig_table.Placement(wish.mig_profile, wish.mig_start)
    impossible = mig_table.obstacle(geometry, wanted, [])
    if impossible is not None:
        raise Refused(422, "agent.mig_placement", impossible, field="slice.mig_profile")
    if wish.memory_mib > geometry.profiles[wanted.profile].memory_mib:
        raise Refused(
            422,
            "agent.slice_too_large",
            f"{wanted.profile} has {geometry.profiles[wanted.profile].memory_mib} MiB, "
            f"not {wish.memory_mib}",
            field="slice.memory_mib",
        )
    placed = [
        mig_table.Placement(other.mig_profile, other.mig_start)
        for other in active
        if other.mig_profile is not None and other.mig_start is not None
    ]
    in_the_way = mig_table.obstacle(geometry, wanted, placed)
    if in_the_way is not None:
        raise _taken(gpu, "slice.mig_start", in_the_way)


def _taken(gpu: GpuInfo, field: str, why: str) -> Refused:
    return Refused(
        409,
        "agent.slice_taken",
        f"GPU {gpu.uuid} cannot hold the slice beside its active leases: {why}",
        field=field,
        hint="wait until those leases have ended",
    )
