"""What the portal learns of nodes and GPUs, and what people decide about them.

The life of leases is in `portal.fleet.leases` and offered here too.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from agent.wire import GpuInfo, Inventory, SampleList
from portal.core import audit
from portal.core.audit import SYSTEM, Actor
from portal.core.errors import Conflict, NotFound
from portal.core.hints import Hint, give_on_commit
from portal.core.locks import guarded, lock_rows
from portal.core.rows import save_rows
from portal.fleet.leases import (
    NewLease,
    Release,
    lease_started,
    lock_gpus_of,
    open_leases,
    release_leases,
    want_absent,
)
from portal.fleet.models import Gpu, Lease, Node, NodeState

__all__ = [
    "NewLease",
    "Release",
    "advance_cursor",
    "declare_lost",
    "doubt_nodes",
    "lease_started",
    "lock_gpus_of",
    "mark_unreachable",
    "open_leases",
    "record_contact",
    "record_gpu_health",
    "record_inventory",
    "record_samples",
    "release_leases",
    "set_drained",
    "want_absent",
]


def record_inventory(*, node_id: str, inventory: Inventory, now: datetime) -> None:
    """Take over what the node says it has; the node is ready from then on.

    A GPU that the node no longer lists stays, out of service. Another ``stream_id`` means a new
    database of the agent: its events count from the start. A node that was declared lost must be
    told what is to be absent before this is called. Raises ``fleet.node_not_found``, and
    ``fleet.gpu_elsewhere`` when another node has one of the GPUs.
    """
    listed = [info.uuid for info in inventory.gpus]
    with guarded():
        node = _locked_node(node_id)
        rows = lock_rows(Gpu.objects.filter(Q(node=node) | Q(uuid__in=listed)))
        known = {gpu.uuid: gpu for gpu in rows}
        for info in inventory.gpus:
            gpu = known.pop(info.uuid, None) or Gpu(uuid=info.uuid, node=node)
            if gpu.node_id != node_id and (gpu.healthy or gpu.memory_leased_mib):
                raise _gpu_elsewhere(gpu)
            gpu.node = node
            _take_over(gpu, info, now)
        for missing in known.values():
            _set_health(missing, healthy=False, reason="the node no longer lists it", now=now)
        if node.stream_id != inventory.stream_id:
            node.event_cursor = 0
        if node.state != NodeState.READY:
            _note_state(node, NodeState.READY, actor=SYSTEM, now=now)
        node.stream_id = inventory.stream_id
        node.boot_id = inventory.boot_id
        node.agent_version = inventory.agent_version
        node.isolated = inventory.isolated
        node.last_seen_at = now
        node.save()
        give_on_commit(Hint.SCHEDULE)


def record_gpu_health(*, node_id: str, gpu: GpuInfo, now: datetime) -> None:
    """Take one GPU out of service or back, as its node saw; the others go on."""
    with guarded():
        for row in lock_rows(Gpu.objects.filter(node_id=node_id, uuid=gpu.uuid)):
            _set_health(row, healthy=gpu.healthy, reason=gpu.health_reason or "", now=now)
        give_on_commit(Hint.SCHEDULE)


def record_contact(*, node_id: str, now: datetime) -> bool:
    """Note that the agent answered; true when the node was unreachable until now.

    A node that was declared lost stays lost until its inventory is recorded.
    """
    with guarded():
        node = Node.objects.filter(pk=node_id)
        node.update(last_seen_at=now)
        if not node.filter(state=NodeState.UNREACHABLE).update(state=NodeState.READY):
            return False
        _audit_state(node_id, NodeState.READY, actor=SYSTEM, now=now)
        give_on_commit(Hint.SCHEDULE)
        return True


def mark_unreachable(*, node_id: str, now: datetime) -> bool:
    """Stop placing on a node that does not answer; false when it was not ready anyway.

    Its leases stay: their processes may still run.
    """
    with guarded():
        changed = Node.objects.filter(pk=node_id, state=NodeState.READY).update(
            state=NodeState.UNREACHABLE
        )
        if changed:
            _audit_state(node_id, NodeState.UNREACHABLE, actor=SYSTEM, now=now)
        return bool(changed)


def set_drained(*, actor: Actor, node_id: str, drained: bool, note: str, now: datetime) -> None:
    """Give a node no new leases, or again; what runs there goes on.

    ``note`` tells people why. Raises ``fleet.node_not_found``.
    """
    note = note[:200] if drained else ""
    with guarded():
        node = _locked_node(node_id)
        if (node.drained, node.drain_note) == (drained, note):
            return
        node.drained, node.drain_note = drained, note
        node.save(update_fields=["drained", "drain_note"])
        audit.record(
            actor=actor,
            verb="node.drained" if drained else "node.resumed",
            object_type="node",
            object_id=node_id,
            now=now,
            detail={"note": note} if note else None,
        )
        give_on_commit(Hint.SCHEDULE)


def declare_lost(*, actor: Actor, node_id: str, now: datetime, reason: str = "") -> None:
    """Declare that nothing runs on the node any more; whoever says so answers for it.

    Raises ``fleet.node_not_found``.
    """
    with guarded():
        node = _locked_node(node_id)
        if node.state != NodeState.LOST:
            _note_state(node, NodeState.LOST, actor=actor, now=now, reason=reason)
            node.save(update_fields=["state"])


def doubt_nodes(*, now: datetime) -> None:
    """Place nothing on any node, and take none of its records as known, until it is heard again."""
    with guarded():
        nodes = lock_rows(Node.objects.exclude(state=NodeState.LOST))
        for node in nodes:
            if node.state == NodeState.READY:
                _note_state(
                    node, NodeState.UNREACHABLE, actor=SYSTEM, now=now, reason="after a restore"
                )
            node.stream_id, node.event_cursor = "", 0
        save_rows(nodes, ["state", "stream_id", "event_cursor"])


def advance_cursor(*, node_id: str, stream_id: str, cursor: int) -> bool:
    """Note up to which event a node's stream was applied, in the caller's transaction.

    False when another reader was there first or the stream is no longer the node's: then whatever
    the caller has applied in this transaction must be repeatable, or be rolled back.
    """
    return bool(
        Node.objects.filter(pk=node_id, stream_id=stream_id, event_cursor__lt=cursor).update(
            event_cursor=cursor
        )
    )


def record_samples(*, node_id: str, samples: SampleList, now: datetime) -> None:
    """Keep the newest measurement of each GPU and active lease; older ones are left aside.

    ``memory_peak_mib`` never falls. What was not measured becomes absent, not 0.
    """
    of_gpus = {sample.uuid: sample for sample in samples.gpus}
    of_leases = {sample.lease_id: sample for sample in samples.leases}
    with guarded():
        gpus = lock_rows(Gpu.objects.filter(node_id=node_id, uuid__in=of_gpus))
        for gpu in gpus:
            measured = of_gpus[gpu.uuid]
            if gpu.sampled_at is None or gpu.sampled_at < measured.at:
                gpu.utilisation_percent = measured.utilisation_percent
                gpu.memory_used_mib = measured.memory_used_mib
                gpu.sampled_at = measured.at
        save_rows(gpus, ["utilisation_percent", "memory_used_mib", "sampled_at"])
        leases = lock_rows(Lease.objects.filter(node_id=node_id, pk__in=of_leases))
        for lease in leases:
            use = of_leases[lease.id]
            if lease.sampled_at is None or lease.sampled_at < use.at:
                lease.utilisation_percent = use.utilisation_percent
                lease.memory_used_mib = use.memory_used_mib
                lease.sampled_at = use.at
            peaks = [lease.memory_peak_mib, use.memory_peak_mib, use.memory_used_mib]
            lease.memory_peak_mib = max((p for p in peaks if p is not None), default=None)
        save_rows(
            leases, ["utilisation_percent", "memory_used_mib", "memory_peak_mib", "sampled_at"]
        )


def _locked_node(node_id: str) -> Node:
    rows = lock_rows(Node.objects.filter(pk=node_id))
    if not rows:
        raise NotFound("fleet.node_not_found", "There is no such node.")
    return rows[0]


def _gpu_elsewhere(gpu: Gpu) -> Conflict:
    return Conflict(
        "fleet.gpu_elsewhere",
        f"GPU {gpu.uuid} is in service or leased on another node.",
        hint="Take it out of that node first: two agents must not drive one GPU.",
    )


def _take_over(gpu: Gpu, info: GpuInfo, now: datetime) -> None:
    gpu.index = info.index
    gpu.model = info.model
    gpu.memory_mib = max(info.memory_mib, gpu.memory_leased_mib)
    gpu.mode = info.mode
    gpu.simulated = info.simulated
    gpu.mig_geometry = info.mig.model_dump() if info.mig else None
    _set_health(gpu, healthy=info.healthy, reason=info.health_reason or "", now=now)


def _set_health(gpu: Gpu, *, healthy: bool, reason: str, now: datetime) -> None:
    changed = gpu.healthy is not healthy
    gpu.healthy = healthy
    gpu.health_reason = reason[:200]
    gpu.save()
    if changed:
        audit.record(
            actor=SYSTEM,
            verb="gpu.returned" if healthy else "gpu.withdrawn",
            object_type="gpu",
            object_id=gpu.id,
            now=now,
            detail={"uuid": gpu.uuid, "reason": reason},
        )


def _note_state(
    node: Node, state: NodeState, *, actor: Actor, now: datetime, reason: str = ""
) -> None:
    node.state = state
    _audit_state(node.id, state, actor=actor, now=now, reason=reason)


def _audit_state(
    node_id: str, state: NodeState, *, actor: Actor, now: datetime, reason: str = ""
) -> None:
    audit.record(
        actor=actor,
        verb=f"node.became_{state}",
        object_type="node",
        object_id=node_id,
        now=now,
        detail={"reason": reason} if reason else None,
    )
