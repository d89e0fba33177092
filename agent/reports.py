"""A lease's row as the portal is told it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from agent import clock
from agent.store import Lease
from agent.wire import EndReason, Enforcement, Event, EventKind, LeaseReport

S = TypeVar("S")
T = TypeVar("T")


def report(lease: Lease) -> LeaseReport:
    duration = None
    if lease.started_mono_ns is not None and lease.ended_mono_ns is not None:
        duration = lease.ended_mono_ns - lease.started_mono_ns
    return LeaseReport(
        lease_id=lease.lease_id,
        generation=lease.generation,
        desired=lease.desired,
        observed=lease.observed,
        pid=lease.pid,
        started_at=_known(clock.from_wall_ns, lease.started_wall_ns),
        ended_at=_known(clock.from_wall_ns, lease.ended_wall_ns),
        duration_ns=duration,
        exit_code=lease.exit_code,
        exit_signal=lease.exit_signal,
        end_reason=_known(EndReason, lease.end_reason),
        detail=lease.detail,
        enforcement_memory=_known(Enforcement, lease.enforcement_memory),
        enforcement_compute=_known(Enforcement, lease.enforcement_compute),
        gpu_uuid=lease.gpu_uuid,
    )


def _known(convert: Callable[[S], T], value: S | None) -> T | None:
    return None if value is None else convert(value)


def event(kind: EventKind, lease: Lease) -> Event:
    """An event about a lease; the store gives it its number."""
    return Event(
        seq=0,
        kind=kind,
        at=clock.now(),
        boot_id=clock.boot_id(),
        monotonic_ns=clock.monotonic_ns(),
        lease=report(lease),
    )
