"""Telling a node what a lease should be, and taking in what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import structlog

from agent.wire import Desired, LeaseSpec
from jobs.domain.transitions import End, EndKind
from jobs.engines.base import Engine, EngineError, EngineRejected, EngineTransient, NodeTarget
from jobs.selectors import LeaseOrder, lease_order, lease_orders
from jobs.services.ingest import LIVING, Ended, ingest, settle
from portal.core import crash
from portal.core.locks import guarded
from portal.fleet import services as fleet

_log = structlog.get_logger(__name__)
#: A newer order is known there, or the node lost its record: reconciliation sees to it.
NOT_NOW = frozenset({"agent.stale_generation", "agent.other_record"})


def tell_lease(engine: Engine, lease_id: str, *, now: datetime) -> None:
    """Send the newest desired state of the lease to its node. Repeating it changes nothing.

    Raises `EngineTransient` when the node did not answer; the outbox tries again.
    """
    order = lease_order(lease_id)
    if order is not None:
        _tell(engine, order, now=now)


def tell_leases(engine: Engine, lease_ids: Sequence[str], *, now: datetime) -> set[str]:
    """The same for several leases; those that need not be told again.

    A node that does not answer is not asked a second time.
    """
    orders = lease_orders(lease_ids)
    told = set(lease_ids) - orders.keys()
    silent: set[NodeTarget] = set()
    for lease_id, order in orders.items():
        if order.node in silent:
            continue
        try:
            _tell(engine, order, now=now)
        except EngineError as error:
            _log.info("tell_leases.later", lease_id=lease_id, error=str(error))
            if isinstance(error, EngineTransient):
                silent.add(order.node)
        else:
            told.add(lease_id)
    return told


def _tell(engine: Engine, order: LeaseOrder, *, now: datetime) -> None:
    if order.missing_secrets:
        names = ", ".join(order.missing_secrets)
        detail = f"The project has no secret {names} any more."
        _take_back(engine, order.node, order.spec, End(EndKind.SECRET_MISSING, detail=detail), now)
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
    if refusal.code in NOT_NOW:
        return
    if spec.desired is Desired.ABSENT:
        raise refusal
    _take_back(engine, node, spec, End(EndKind.REFUSED, detail=refusal.detail), now)


def _take_back(engine: Engine, node: NodeTarget, spec: LeaseSpec, end: End, now: datetime) -> None:
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
    ended = Ended(spec.lease_id, end, report.started_at, report.ended_at)
    settle([ended], actor=f"node {order.node_name}", now=now)
