"""Reconciliation: what should be on a node against what is there; it repairs every difference."""

from __future__ import annotations

from datetime import datetime

import structlog

from agent.wire import Desired, LeaseList, LeaseReport, LeaseSpec
from jobs.domain.transitions import End, EndKind
from jobs.engines.base import Engine, EngineRejected, NodeTarget
from jobs.services.ingest import LIVING, Ended, ingest, settle
from jobs.services.tell import tell_lease
from portal.core import crash
from portal.core.audit import Actor
from portal.fleet import services as fleet
from portal.fleet.selectors import LeaseView, active_leases_of_node, node_target

_log = structlog.get_logger(__name__)


def reconcile_node(engine: Engine, node: NodeTarget, *, now: datetime) -> None:
    """Compare and repair one node. Raises `EngineTransient` when it cannot be reached.

    The leases are read here before they are read there: one that started before cannot be missing
    there unless the node has lost its record.
    """
    wanted = {lease.id: lease for lease in active_leases_of_node(node.node_id)}
    told = engine.leases(node)
    known = {report.lease_id: report for report in told.leases}
    crash.point("reconcile.read")
    present = [known[lease_id] for lease_id in wanted if lease_id in known]
    view = node_target(node.node_id)
    ingest(present, actor=f"node {view.name}", now=now)
    _repair_missing(engine, node, view.stream_id, told, wanted, now=now)
    for report in present:
        lease = wanted[report.lease_id]
        if report.generation < lease.generation:
            tell_lease(engine, lease.id, now=now)
    for lease_id, report in known.items():
        if lease_id not in wanted and report.desired is Desired.RUNNING:
            _end_stranger(engine, node, report)


def _repair_missing(
    engine: Engine,
    node: NodeTarget,
    stream_id: str,
    told: LeaseList,
    wanted: dict[str, LeaseView],
    *,
    now: datetime,
) -> None:
    """Leases that the node does not know: told again, unless its record is another one.

    A lease may have run in a record that is lost. It is told absent, never started a second time.
    """
    known = {report.lease_id for report in told.leases}
    lost: list[LeaseView] = []
    for lease in wanted.values():
        if lease.id in known:
            continue
        if lease.started_at is not None or told.stream_id != stream_id:
            lost.append(lease)
        else:
            tell_lease(engine, lease.id, now=now)
    told_absent = [engine.apply(node, _absent(lease.id, lease.generation + 1)) for lease in lost]
    # A lease that came there meanwhile ends by its own report, once its process is gone.
    arrived = [report for report in told_absent if report.started_at or report.observed in LIVING]
    ingest(arrived, actor="reconciliation", now=now)
    settle(
        [
            Ended(
                report.lease_id,
                End(EndKind.SUPERVISOR_LOST, detail="The node lost its record of the lease."),
                None,
                None,
            )
            for report in told_absent
            if report not in arrived
        ],
        actor="reconciliation",
        now=now,
    )


def _end_stranger(engine: Engine, node: NodeTarget, report: LeaseReport) -> None:
    """A lease that is over here, or was never made here, must not run there."""
    if report.observed not in LIVING:
        return
    _log.warning("reconcile.stranger_ended", lease_id=report.lease_id, node_id=node.node_id)
    try:
        engine.apply(node, _absent(report.lease_id, report.generation + 1))
    except EngineRejected as refusal:
        _log.warning("reconcile.stranger_kept", lease_id=report.lease_id, code=refusal.code)


def _absent(lease_id: str, generation: int) -> LeaseSpec:
    return LeaseSpec(lease_id=lease_id, generation=generation, desired=Desired.ABSENT)


def declare_node_lost(*, actor: Actor, node_id: str, now: datetime, reason: str = "") -> int:
    """An operator declares that nothing runs on the node any more; how many attempts ended.

    Its leases are wished absent first, so that a node that returns is told so; they are billed
    until the node was last seen.
    """
    fleet.declare_lost(actor=actor, node_id=node_id, reason=reason, now=now)
    leases = active_leases_of_node(node_id)
    settle(
        [Ended(lease.id, End(EndKind.NODE_LOST), lease.started_at, None) for lease in leases],
        actor=actor.name,
        now=now,
    )
    return len(leases)
