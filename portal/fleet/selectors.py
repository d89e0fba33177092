"""The fleet as other rooms see it: frozen facts, a constant number of queries for any size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet, Sum

from agent.wire import Enforcement, MigGeometry, SharingMode, SliceKind
from portal.core.errors import NotFound
from portal.fleet.models import Gpu, Lease, MigUnit, Node, NodeState


@dataclass(frozen=True)
class LeaseView:
    """One lease with its slice. What the node has not told yet is None."""

    id: str
    attempt_id: str
    node_id: str
    node_name: str
    node_address: str
    node_stream_id: str
    node_seen_at: datetime | None
    gpu_id: str
    gpu_uuid: str
    gpu_model: str
    gpu_memory_mib: int
    gpu_simulated: bool
    kind: SliceKind
    memory_mib: int
    compute_milli: int
    mig_profile: str | None
    mig_start: int | None
    generation: int
    desired: str
    enforcement_memory: Enforcement | None
    enforcement_compute: Enforcement | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    released_at: datetime | None
    utilisation_percent: float | None
    memory_used_mib: int | None
    memory_peak_mib: int | None
    sampled_at: datetime | None


@dataclass(frozen=True)
class GpuView:
    """One GPU with the leases that are active on it."""

    id: str
    node_id: str
    node_name: str
    node_state: NodeState
    uuid: str
    index: int
    model: str
    memory_mib: int
    mode: SharingMode
    simulated: bool
    healthy: bool
    health_reason: str
    compute_leased_milli: int
    memory_leased_mib: int
    utilisation_percent: float | None
    memory_used_mib: int | None
    sampled_at: datetime | None
    mig: MigGeometry | None
    leases: tuple[LeaseView, ...]


@dataclass(frozen=True)
class GpuLoad:
    """One GPU as it is leased now; ``instances`` are the profiles and starts of its MIG leases."""

    id: str
    node_name: str
    node_ready: bool
    node_drained: bool
    index: int
    model: str
    memory_mib: int
    mode: SharingMode
    healthy: bool
    compute_leased_milli: int
    memory_leased_mib: int
    mig: MigGeometry | None
    instances: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class GpuKind:
    """What GPUs of the fleet have in common when they are empty."""

    model: str
    memory_mib: int
    mode: SharingMode
    mig: MigGeometry | None


@dataclass(frozen=True)
class NodeView:
    """One node with its GPUs, by index."""

    id: str
    name: str
    address: str
    state: NodeState
    drained: bool
    drain_note: str
    isolated: bool | None
    agent_version: str
    boot_id: str
    last_seen_at: datetime | None
    gpus: tuple[GpuView, ...]

    @property
    def ready(self) -> bool:
        return self.state is NodeState.READY

    @property
    def open(self) -> bool:
        """It gets new leases."""
        return self.ready and not self.drained


@dataclass(frozen=True)
class NodeTarget:
    """Where to reach a node's agent and from which event on to listen."""

    id: str
    name: str
    address: str
    state: NodeState
    boot_id: str
    stream_id: str
    event_cursor: int
    last_seen_at: datetime | None
    created_at: datetime

    @property
    def ready(self) -> bool:
        return self.state is NodeState.READY


def fleet_view() -> tuple[NodeView, ...]:
    """Give every node by name, with GPUs and active leases, in three queries."""
    leases: dict[str, list[LeaseView]] = defaultdict(list)
    for lease in views_of(_leases().filter(released_at__isnull=True)):
        leases[lease.gpu_id].append(lease)
    gpus: dict[str, list[GpuView]] = defaultdict(list)
    for gpu in Gpu.objects.select_related("node").order_by("index", "pk"):
        gpus[gpu.node_id].append(_gpu_view(gpu, tuple(leases[gpu.id])))
    return tuple(
        NodeView(
            id=node.id,
            name=node.name,
            address=node.address,
            state=NodeState(node.state),
            drained=node.drained,
            drain_note=node.drain_note,
            isolated=node.isolated,
            agent_version=node.agent_version,
            boot_id=node.boot_id,
            last_seen_at=node.last_seen_at,
            gpus=tuple(gpus[node.id]),
        )
        for node in Node.objects.order_by("name")
    )


def node_view(node_id: str) -> NodeView:
    """Give one node with its GPUs. Raises ``fleet.node_not_found``."""
    found = [node for node in fleet_view() if node.id == node_id]
    if not found:
        raise NotFound("fleet.node_not_found", "There is no such node.")
    return found[0]


def gpu_loads() -> tuple[GpuLoad, ...]:
    """Give every GPU by its node's name and index, in two queries that make no models."""
    instances: dict[str, set[tuple[str, int]]] = defaultdict(set)
    leases = Lease.objects.filter(released_at__isnull=True)
    for gpu_id, profile, start in leases.values_list(
        "gpu_id", "slice__mig_profile", "slice__mig_start"
    ):
        if start is not None:
            instances[gpu_id].add((profile, start))
    rows = Gpu.objects.order_by("node__name", "index", "pk").values_list(
        "pk",
        "node__name",
        "node__state",
        "node__drained",
        "index",
        "model",
        "memory_mib",
        "mode",
        "healthy",
        "compute_leased_milli",
        "memory_leased_mib",
        "mig_geometry",
    )
    return tuple(
        GpuLoad(
            id=pk,
            node_name=node_name,
            node_ready=state == NodeState.READY,
            node_drained=drained,
            index=index,
            model=model,
            memory_mib=memory_mib,
            mode=SharingMode(mode),
            healthy=healthy,
            compute_leased_milli=compute_leased,
            memory_leased_mib=memory_leased,
            mig=_geometry(mig),
            instances=frozenset(instances[pk]),
        )
        for (
            pk,
            node_name,
            state,
            drained,
            index,
            model,
            memory_mib,
            mode,
            healthy,
            compute_leased,
            memory_leased,
            mig,
        ) in rows
    )


def gpu_kinds() -> tuple[GpuKind, ...]:
    """Give each kind of GPU that was ever seen once, in one query."""
    kinds = Gpu.objects.order_by("model", "memory_mib", "mode").values_list(
        "model", "memory_mib", "mode", "mig_geometry"
    )
    return tuple(
        GpuKind(model, memory_mib, SharingMode(mode), _geometry(mig))
        for model, memory_mib, mode, mig in kinds.distinct()
    )


def lease_view(lease_id: str) -> LeaseView:
    """Give one lease, active or not. Raises ``fleet.lease_not_found``."""
    found = lease_views([lease_id])
    if lease_id not in found:
        raise NotFound("fleet.lease_not_found", "There is no such lease.")
    return found[lease_id]


def lease_views(lease_ids: Iterable[str]) -> dict[str, LeaseView]:
    """Give leases by id, in one query."""
    found = views_of(_leases().filter(pk__in=set(lease_ids)))
    return {lease.id: lease for lease in found}


def active_leases_of_node(node_id: str) -> list[LeaseView]:
    """Give the leases of a node that hold a slice, oldest first."""
    return views_of(_leases().filter(node_id=node_id, released_at__isnull=True))


def node_target(node_id: str) -> NodeTarget:
    """Give one node as its watcher needs it. Raises ``fleet.node_not_found``."""
    node = Node.objects.filter(pk=node_id).first()
    if node is None:
        raise NotFound("fleet.node_not_found", "There is no such node.")
    return NodeTarget(
        id=node.id,
        name=node.name,
        address=node.address,
        state=NodeState(node.state),
        boot_id=node.boot_id,
        stream_id=node.stream_id,
        event_cursor=node.event_cursor,
        last_seen_at=node.last_seen_at,
        created_at=node.created_at,
    )


def any_simulated() -> bool:
    """Whether any GPU is a stand-in."""
    return Gpu.objects.filter(simulated=True).exists()


def gpus_since() -> list[datetime]:
    """Give, for every GPU, when its node joined."""
    return list(Gpu.objects.order_by("pk").values_list("node__created_at", flat=True))


def node_ids() -> list[str]:
    """Give every node that has enrolled, by name."""
    return list(Node.objects.order_by("name").values_list("pk", flat=True))


def silent_node_ids() -> set[str]:
    """Give the nodes that do not answer, or that were declared lost."""
    silent = Node.objects.filter(state__in=[NodeState.UNREACHABLE, NodeState.LOST])
    return set(silent.values_list("pk", flat=True))


def nodes_of_gpus(gpu_ids: Iterable[str]) -> dict[str, str]:
    """Give the node of each GPU, by the GPU's id."""
    return dict(Gpu.objects.filter(pk__in=set(gpu_ids)).values_list("pk", "node_id"))


def proof_of_counters() -> list[str]:
    """Compare the GPUs' counters with the sums over active leases; a sentence per violation."""
    active = Lease.objects.filter(released_at__isnull=True)
    sums = {
        gpu_id: (compute, memory)
        for gpu_id, compute, memory in active.values_list("gpu_id").annotate(
            Sum("compute_milli"), Sum("memory_mib")
        )
    }
    wrong = []
    for gpu in Gpu.objects.order_by("pk"):
        counted = (gpu.compute_leased_milli, gpu.memory_leased_mib)
        summed = sums.get(gpu.id, (0, 0))
        if counted != summed:
            wrong.append(
                f"GPU {gpu.uuid} counts {counted[0]} milli and {counted[1]} MiB as leased; "
                f"its active leases sum to {summed[0]} milli and {summed[1]} MiB"
            )
        if summed[0] > 1000 or summed[1] > gpu.memory_mib:
            wrong.append(f"GPU {gpu.uuid} is leased beyond its capacity: {summed}")
    wrong.extend(
        f"slice {slice_id} has {count} active leases"
        for slice_id, count in active.values_list("slice_id").annotate(count=Count("pk"))
        if count > 1
    )
    wrong.extend(
        f"MIG unit {unit.unit} of GPU {unit.gpu_id} is held by lease {unit.lease_id}, which is over"
        for unit in MigUnit.objects.filter(
            released_at__isnull=True, lease__released_at__isnull=False
        )
    )
    return wrong


def _leases() -> QuerySet[Lease]:
    return Lease.objects.select_related("slice", "gpu", "node").order_by("pk")


def views_of(leases: Iterable[Lease]) -> list[LeaseView]:
    """Give rows that were read with slice, GPU and node as other rooms see them."""
    return [
        LeaseView(
            id=lease.id,
            attempt_id=lease.attempt_id,
            node_id=lease.node_id,
            node_name=lease.node.name,
            node_address=lease.node.address,
            node_stream_id=lease.node.stream_id,
            node_seen_at=lease.node.last_seen_at,
            gpu_id=lease.gpu_id,
            gpu_uuid=lease.gpu.uuid,
            gpu_model=lease.gpu.model,
            gpu_memory_mib=lease.gpu.memory_mib,
            gpu_simulated=lease.gpu.simulated,
            kind=SliceKind(lease.slice.kind),
            memory_mib=lease.memory_mib,
            compute_milli=lease.compute_milli,
            mig_profile=lease.slice.mig_profile or None,
            mig_start=lease.slice.mig_start,
            generation=lease.generation,
            desired=lease.desired,
            enforcement_memory=_enforcement(lease.enforcement_memory),
            enforcement_compute=_enforcement(lease.enforcement_compute),
            created_at=lease.created_at,
            started_at=lease.started_at,
            ended_at=lease.ended_at,
            released_at=lease.released_at,
            utilisation_percent=lease.utilisation_percent,
            memory_used_mib=lease.memory_used_mib,
            memory_peak_mib=lease.memory_peak_mib,
            sampled_at=lease.sampled_at,
        )
        for lease in leases
    ]


def _gpu_view(gpu: Gpu, leases: tuple[LeaseView, ...]) -> GpuView:
    return GpuView(
        id=gpu.id,
        node_id=gpu.node_id,
        node_name=gpu.node.name,
        node_state=NodeState(gpu.node.state),
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory_mib=gpu.memory_mib,
        mode=SharingMode(gpu.mode),
        simulated=gpu.simulated,
        healthy=gpu.healthy,
        health_reason=gpu.health_reason,
        compute_leased_milli=gpu.compute_leased_milli,
        memory_leased_mib=gpu.memory_leased_mib,
        utilisation_percent=gpu.utilisation_percent,
        memory_used_mib=gpu.memory_used_mib,
        sampled_at=gpu.sampled_at,
        mig=_geometry(gpu.mig_geometry),
        leases=leases,
    )


def _enforcement(stored: str) -> Enforcement | None:
    return Enforcement(stored) if stored else None


def _geometry(stored: dict[str, Any] | None) -> MigGeometry | None:
    return MigGeometry.model_validate(stored) if stored else None
