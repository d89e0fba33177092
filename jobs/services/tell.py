"""Telling a node what a lease should be, and taking in what it answers."""

from __future__ import annotations

from datetime import datetime

from agent.wire import Desired, LeaseSpec
from jobs.domain.transitions import End, EndKind
from jobs.engines.base import Engine, EngineRejected, NodeTarget
from jobs.selectors import lease_order
from jobs.services.ingest import LIVING, Ended, ingest, settle
from portal.core import crash
from portal.core.locks import guarded
from portal.fleet import services as fleet

STALE = "agent.stale_generation"


def tell_lease(engine: Engine, lease_id: str, *, now: datetime) -> None:
    """Send the newest desired state of the lease to its node. Repeating it changes nothing.

    Raises `EngineTransient` when the node did not answer; the outbox tries again.
    """
    order = lease_order(lease_id)
    if order is None:
        return
    crash.point("tell.before")
    try:
        report = engine.apply(order.node, order.spec)
    except EngineRejected as refusal:
        _refused(engine, order.node, order.spec, refusal, now=now)
        return
    crash.point("tell.answered")
    ingest([report], actor=f"node {order.node_name}", now=now)


def _refused(
    engine: Engine, node: NodeTarget, spec: LeaseSpec, refusal: EngineRejected, *, now: datetime
) -> None:
    """A node that will not start a lease is told that it is absent before the slice is free."""
    if refusal.code == STALE:
        return
    if spec.desired is Desired.ABSENT:
        raise refusal
    with guarded():
        fleet.want_absent(spec.lease_id)
    crash.point("tell.refused")
    order = lease_order(spec.lease_id)
    if order is None:
        return
    report = engine.apply(node, order.spec)
    crash.point("tell.absent_told")
    if report.observed in LIVING:
        ingest([report], actor=f"node {order.node_name}", now=now)
        return
    end = End(EndKind.REFUSED, detail=refusal.detail)
    ended = Ended(spec.lease_id, end, report.started_at, report.ended_at)
    settle([ended], actor=f"node {order.node_name}", now=now)
