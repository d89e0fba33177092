"""An engine in memory: nodes that obey, and nodes named by the way in which they do not.

`world` tells what really happened to each lease, also what a node has forgotten since.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from agent.wire import (
    Desired,
    EndReason,
    Enforcement,
    Event,
    EventBatch,
    EventKind,
    Inventory,
    LeaseList,
    LeaseReport,
    LeaseSample,
    LeaseSpec,
    Observed,
    SampleList,
)
from jobs.engines.base import Engine, EngineRejected, EngineTransient, LogChunk, NodeTarget
from portal.core.locks import assert_no_transaction
from tests.builders import NOW, gpu_info, inventory


@dataclass
class Run:
    """What became of a lease's process."""

    starts: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass
class FakeNode:
    """What one agent remembers."""

    stream: int = 1
    leases: dict[str, LeaseReport] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    @property
    def stream_id(self):
        return f"stream-{self.stream}"


class FakeEngine(Engine):
    """Obeys at once; a process begins and ends when the test says so, at ``now``."""

    def __init__(self, *gpus):
        self.now = NOW
        self.gpus = gpus or (gpu_info(),)
        self.nodes: dict[str, FakeNode] = {}
        self.world: dict[str, Run] = {}
        self.specs: list[LeaseSpec] = []
        self.logs: dict[str, bytes] = {}
        self.stops_at_once = True

    # -- what a node does by itself ------------------------------------------------------------

    def begin(self, lease_id):
        """The process of an accepted lease starts."""
        run = self.world.setdefault(lease_id, Run())
        run.starts += 1
        run.started_at = self.now
        self._tell(
            lease_id,
            EventKind.STARTED,
            observed=Observed.RUNNING,
            started_at=self.now,
            enforcement_memory=Enforcement.NONE,
            enforcement_compute=Enforcement.NONE,
        )

    def end(self, lease_id, reason=EndReason.EXITED, *, exit_code=None, exit_signal=None):
        """The process ends, or the lease of one that never began."""
        node = self._node_of(lease_id)
        started_at = node.leases[lease_id].started_at
        if started_at is not None:
            self.world[lease_id].ended_at = self.now
        self._tell(
            lease_id,
            EventKind.ENDED,
            observed=Observed.ENDED,
            ended_at=self.now,
            duration_ns=(self.now - started_at).total_seconds() * 10**9 if started_at else None,
            end_reason=reason,
            exit_code=exit_code,
            exit_signal=exit_signal,
        )

    def living(self, *states):
        """Leases that are in one of these states on their node."""
        return [
            lease_id
            for node in self.nodes.values()
            for lease_id, report in sorted(node.leases.items())
            if report.observed in states
        ]

    def report(self, lease_id: str) -> LeaseReport:
        report: LeaseReport = self._node_of(lease_id).leases[lease_id]
        return report

    def lose_record(self, node_id):
        """The agent's database is gone; its processes end with it."""
        node = self.node(node_id)
        for lease_id in node.leases:
            run = self.world.get(lease_id)
            if run and run.ended_at is None:
                run.ended_at = self.now
        node.leases, node.events = {}, []
        node.stream += 1

    def node(self, node_id):
        return self.nodes.setdefault(node_id, FakeNode())

    def _node_of(self, lease_id):
        return next(node for node in self.nodes.values() if lease_id in node.leases)

    def _tell(self, lease_id, kind, **changes):
        node = self._node_of(lease_id)
        changes["duration_ns"] = int(changes["duration_ns"]) if changes.get("duration_ns") else None
        node.leases[lease_id] = node.leases[lease_id].model_copy(update=changes)
        node.events.append(
            Event(
                seq=len(node.events) + 1,
                kind=kind,
                at=self.now,
                boot_id="boot-1",
                monotonic_ns=len(node.events),
                lease=node.leases[lease_id],
            )
        )

    # -- what the portal asks ------------------------------------------------------------------

    def inventory(self, node: NodeTarget) -> Inventory:
        assert_no_transaction()
        found: Inventory = inventory(*self.gpus, stream_id=self.node(node.node_id).stream_id)
        return found

    def apply(self, node: NodeTarget, spec: LeaseSpec) -> LeaseReport:
        assert_no_transaction()
        self.specs.append(spec)
        leases = self.node(node.node_id).leases
        known = leases.get(spec.lease_id)
        here = self.node(node.node_id).stream_id
        if spec.desired is Desired.RUNNING and spec.stream_id not in {None, here}:
            raise EngineRejected("agent.other_record", "meant for a record that is gone")
        if known is not None and spec.generation < known.generation:
            raise EngineRejected("agent.stale_generation", "older than what is known")
        if known is None:
            begins = spec.desired is Desired.RUNNING
            leases[spec.lease_id] = LeaseReport(
                lease_id=spec.lease_id,
                generation=spec.generation,
                desired=spec.desired,
                observed=Observed.ACCEPTED if begins else Observed.ABSENT,
            )
        else:
            told = {"generation": spec.generation, "desired": spec.desired}
            leases[spec.lease_id] = known.model_copy(update=told)
        if spec.desired is Desired.ABSENT and self.stops_at_once:
            self.stop(spec.lease_id)
        return self.report(spec.lease_id)

    def stop(self, lease_id):
        """What should be absent ends."""
        reasons = {
            Observed.ACCEPTED: [EndReason.NEVER_STARTED],
            Observed.RUNNING: [EndReason.STOPPED],
        }
        observed = self._node_of(lease_id).leases[lease_id].observed
        for reason in reasons.get(observed, []):
            self.end(lease_id, reason)

    def leases(self, node: NodeTarget) -> LeaseList:
        assert_no_transaction()
        here = self.node(node.node_id)
        return LeaseList(
            boot_id="boot-1",
            stream_id=here.stream_id,
            next_event=len(here.events) + 1,
            leases=list(here.leases.values()),
        )

    def events(self, node: NodeTarget, *, after: int, wait_ms: int) -> EventBatch:
        assert_no_transaction()
        here = self.node(node.node_id)
        return EventBatch(
            stream_id=here.stream_id,
            boot_id="boot-1",
            events=here.events[after:],
            next_after=len(here.events),
        )

    def samples(self, node: NodeTarget) -> SampleList:
        assert_no_transaction()
        running = self.living(Observed.RUNNING)
        return SampleList(
            gpus=[], leases=[LeaseSample(lease_id=lease_id, at=self.now) for lease_id in running]
        )

    def read_log(
        self, node: NodeTarget, lease_id: str, *, offset: int, limit: int, wait_ms: int
    ) -> LogChunk:
        assert_no_transaction()
        report = self.node(node.node_id).leases.get(lease_id)
        if report is None:
            raise EngineRejected("agent.lease_unknown", "this node knows no such lease")
        text = self.logs.get(lease_id, b"")
        data = text[offset : offset + limit]
        over = report.observed is Observed.ENDED and offset + len(data) >= len(text)
        return LogChunk(data, offset + len(data), over, len(text))


class Unreachable(FakeEngine):
    """No call arrives while it is so."""

    def __init__(self, *gpus):
        super().__init__(*gpus)
        self.silent = True

    def _reach(self):
        if self.silent:
            raise EngineTransient("no route")

    def apply(self, node, spec):
        self._reach()
        return super().apply(node, spec)

    def leases(self, node):
        self._reach()
        return super().leases(node)

    def events(self, node, *, after, wait_ms):
        self._reach()
        return super().events(node, after=after, wait_ms=wait_ms)

    def read_log(self, node, lease_id, *, offset, limit, wait_ms):
        self._reach()
        return super().read_log(node, lease_id, offset=offset, limit=limit, wait_ms=wait_ms)


class SlowToAnswer(FakeEngine):
    """Obeys, but the first answers to a command are lost."""

    def __init__(self, *gpus):
        super().__init__(*gpus)
        self.lost_answers = 1

    def apply(self, node, spec):
        report = super().apply(node, spec)
        if self.lost_answers:
            self.lost_answers -= 1
            raise EngineTransient("no answer in time")
        return report


class RefusesLeases(FakeEngine):
    """Refuses to run anything and remembers that it did."""

    def apply(self, node, spec):
        if spec.desired is Desired.RUNNING:
            self.node(node.node_id).leases[spec.lease_id] = LeaseReport(
                lease_id=spec.lease_id,
                generation=spec.generation,
                desired=spec.desired,
                observed=Observed.REFUSED,
                detail="GPU-0 is out of service: XID 79",
            )
            raise EngineRejected("agent.gpu_unhealthy", "GPU-0 is out of service: XID 79")
        return super().apply(node, spec)


class LosesItsRecord(FakeEngine):
    """Forgets everything after each accepted order, and names its new record another."""

    def apply(self, node, spec):
        report = super().apply(node, spec)
        self.lose_record(node.node_id)
        return report


class DuplicatesEvents(FakeEngine):
    """Tells all that it ever told, twice."""

    def events(self, node, *, after, wait_ms):
        batch = super().events(node, after=0, wait_ms=wait_ms)
        return batch.model_copy(update={"events": batch.events * 2})


class ReordersReports(FakeEngine):
    """The newest event comes first."""

    def events(self, node, *, after, wait_ms):
        batch = super().events(node, after=after, wait_ms=wait_ms)
        return batch.model_copy(update={"events": batch.events[::-1]})


class AnswersStale(FakeEngine):
    """Lists the leases as they were when it was asked the time before."""

    def __init__(self, *gpus):
        super().__init__(*gpus)
        self._listed: dict[str, LeaseList] = {}

    def leases(self, node):
        newest = super().leases(node)
        stale = self._listed.get(node.node_id, newest)
        self._listed[node.node_id] = newest
        return stale
