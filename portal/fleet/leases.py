"""The life of a lease in the database: open, started, unwanted, released.

Everything here joins the caller's transaction. GPU rows are locked before lease rows, by id; the
counters of a GPU change with its leases in the same transaction, and CHECKs refuse an excess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from agent.wire import Desired, Enforcement, SliceKind
from portal.core.errors import Conflict, NotFound
from portal.core.ids import new_id
from portal.core.locks import lock_rows
from portal.core.rows import save_rows, shift_rows
from portal.fleet.models import Gpu, Lease, MigUnit, Node, NodeState, Slice
from portal.fleet.selectors import LeaseView, views_of


@dataclass(frozen=True)
class NewLease:
    """A slice wanted for an attempt.

    A MIG slice takes the memory units ``mig_start`` to ``mig_start + mig_size - 1`` of its GPU.
    """

    lease_id: str
    attempt_id: str
    gpu_id: str
    kind: SliceKind
    memory_mib: int
    compute_milli: int
    mig_profile: str | None = None
    mig_start: int | None = None
    mig_size: int | None = None

    @property
    def mig_units(self) -> range:
        if self.mig_start is None or self.mig_size is None:
            return range(0)
        return range(self.mig_start, self.mig_start + self.mig_size)


def open_leases(leases: Sequence[NewLease], *, now: datetime) -> None:
    """Lease slices to attempts: all of them or, with ``fleet.gpu_taken``, none.

    Joins the caller's transaction; the number of queries does not grow with the batch. Raises
    ``fleet.gpu_unavailable`` when a GPU is unhealthy or its node takes none.
    """
    if not leases:
        return
    gpus = {
        gpu.id: gpu
        for gpu in lock_rows(
            Gpu.objects.select_related("node").filter(pk__in={lease.gpu_id for lease in leases})
        )
    }
    taken = _check_room(leases, gpus)
    _take(taken)
    slices = _slices_for(leases)
    Lease.objects.bulk_create(
        Lease(
            id=lease.lease_id,
            slice_id=slices[lease.lease_id],
            gpu_id=lease.gpu_id,
            node_id=gpus[lease.gpu_id].node_id,
            attempt_id=lease.attempt_id,
            desired=Desired.RUNNING,
            memory_mib=lease.memory_mib,
            compute_milli=lease.compute_milli,
            created_at=now,
        )
        for lease in leases
    )
    MigUnit.objects.bulk_create(
        MigUnit(gpu_id=lease.gpu_id, lease_id=lease.lease_id, unit=unit)
        for lease in leases
        for unit in lease.mig_units
    )


def lease_started(
    lease_id: str,
    *,
    started_at: datetime,
    enforcement_memory: Enforcement | None,
    enforcement_compute: Enforcement | None,
) -> bool:
    """Record what the node observed at the start; false when it was recorded before."""
    return bool(
        Lease.objects.filter(pk=lease_id, started_at__isnull=True).update(
            started_at=started_at,
            enforcement_memory=enforcement_memory or "",
            enforcement_compute=enforcement_compute or "",
        )
    )


def want_absent(lease_id: str) -> int:
    """Wish the lease away from its node; give the generation that carries the wish.

    Asking again changes nothing. Raises ``fleet.lease_not_found``.
    """
    lease = Lease.objects.filter(pk=lease_id)
    lease.exclude(desired=Desired.ABSENT).update(
        desired=Desired.ABSENT, generation=F("generation") + 1
    )
    generation = lease.values_list("generation", flat=True).first()
    if generation is None:
        raise NotFound("fleet.lease_not_found", "There is no such lease.")
    return generation


@dataclass(frozen=True)
class Release:
    """The end of a lease as its node observed it; no times for a process that never began."""

    lease_id: str
    started_at: datetime | None
    ended_at: datetime | None


def lock_gpus_of(lease_ids: Iterable[str]) -> None:
    """Lock the GPUs of these leases, by id, before jobs are locked."""
    held = Lease.objects.filter(pk__in=list(lease_ids))
    lock_rows(Gpu.objects.filter(pk__in=held.values("gpu")).only("pk"))


def release_leases(releases: Iterable[Release], *, now: datetime) -> dict[str, LeaseView]:
    """Give slices back once their processes are proved gone; the leases that held until now.

    The caller has locked the GPUs with `lock_gpus_of`.
    """
    wanted = {release.lease_id: release for release in releases}
    leases = lock_rows(
        Lease.objects.filter(pk__in=wanted, released_at__isnull=True).select_related(
            "slice", "gpu", "node"
        )
    )
    given_back: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for lease in leases:
        observed = wanted[lease.id]
        lease.started_at = observed.started_at or lease.started_at
        lease.ended_at = observed.ended_at or lease.ended_at
        lease.released_at = now
        lease.desired = Desired.ABSENT
        compute, memory = given_back[lease.gpu_id]
        given_back[lease.gpu_id] = (compute - lease.compute_milli, memory - lease.memory_mib)
    save_rows(leases, ["started_at", "ended_at", "released_at", "desired"])
    if given_back:
        _take(given_back)
    instances = [lease.id for lease in leases if lease.slice.kind == SliceKind.MIG]
    MigUnit.objects.filter(lease_id__in=instances).update(released_at=now)
    return {view.id: view for view in views_of(leases)}


def _takes_leases(node: Node) -> bool:
    return node.state == NodeState.READY and not node.drained


def _check_room(leases: Iterable[NewLease], gpus: dict[str, Gpu]) -> dict[str, tuple[int, int]]:
    """Sum what each GPU gives away (thousandths, MiB); refuse what it does not have."""
    taken: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    units = set(
        MigUnit.objects.filter(gpu_id__in=gpus, released_at__isnull=True).values_list(
            "gpu_id", "unit"
        )
        if any(lease.kind is SliceKind.MIG for lease in leases)
        else ()
    )
    for lease in leases:
        gpu = gpus.get(lease.gpu_id)
        if gpu is None or not gpu.healthy or not _takes_leases(gpu.node):
            raise Conflict(
                "fleet.gpu_unavailable",
                f"GPU {gpu.uuid if gpu else lease.gpu_id} is not in service.",
                hint="Place the job on another GPU.",
            )
        compute, memory = taken[gpu.id]
        taken[gpu.id] = compute, memory = compute + lease.compute_milli, memory + lease.memory_mib
        wanted_units = {(gpu.id, unit) for unit in lease.mig_units}
        if (
            gpu.compute_leased_milli + compute > 1000
            or gpu.memory_leased_mib + memory > gpu.memory_mib
            or units & wanted_units
        ):
            raise _gpu_taken(gpu, lease)
        units |= wanted_units
    return taken


def _gpu_taken(gpu: Gpu, lease: NewLease) -> Conflict:
    return Conflict(
        "fleet.gpu_taken",
        f"GPU {gpu.uuid} has no room for {lease.compute_milli} thousandths and "
        f"{lease.memory_mib} MiB: {gpu.compute_leased_milli} thousandths and "
        f"{gpu.memory_leased_mib} of {gpu.memory_mib} MiB are leased.",
        hint="Look at the fleet again and place the job elsewhere.",
    )


def _take(taken: dict[str, tuple[int, int]]) -> None:
    shift_rows(Gpu, ["compute_leased_milli", "memory_leased_mib"], taken)


def _slices_for(leases: Sequence[NewLease]) -> dict[str, str]:
    """Give each lease its slice: whole GPUs and MIG places keep theirs, a share gets a new one."""
    kept: dict[tuple[str, str, str, int | None], str] = {}
    if any(lease.kind is not SliceKind.SHARE for lease in leases):
        kept = {
            (part.gpu_id, part.kind, part.mig_profile, part.mig_start): part.id
            for part in Slice.objects.filter(gpu_id__in={lease.gpu_id for lease in leases}).exclude(
                kind=SliceKind.SHARE
            )
        }
    chosen: dict[str, str] = {}
    fresh: list[Slice] = []
    for lease in leases:
        place = (lease.gpu_id, str(lease.kind), lease.mig_profile or "", lease.mig_start)
        if place in kept:
            chosen[lease.lease_id] = kept[place]
            continue
        part = Slice(
            id=new_id(),
            gpu_id=lease.gpu_id,
            kind=lease.kind,
            memory_mib=lease.memory_mib,
            compute_milli=lease.compute_milli,
            mig_profile=lease.mig_profile or "",
            mig_start=lease.mig_start,
        )
        fresh.append(part)
        chosen[lease.lease_id] = part.id
    Slice.objects.bulk_create(fresh)
    return chosen
