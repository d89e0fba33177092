"""Random orders against a model: generations only grow, a lease starts once, no slice twice."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent.errors import Refused
from agent.wire import EndReason, LeaseSpec, Observed, SliceSpec
from tests.agent.conftest import Node
from tests.agent.support import absent, eventually, running

LEASES = st.sampled_from(["A", "B", "C", "D", "E"])
GENERATIONS = st.integers(1, 6)
SIZES = st.sampled_from([250, 500, 1000])


class Agent(RuleBasedStateMachine):
    """Orders, ends of jobs and new agents in any sequence, with real processes."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gpucommons-test-"))
        self.folder.chmod(0o711)
        self.counts = self.folder / "starts"
        self.counts.mkdir()
        self.counts.chmod(0o777)
        self.generations: dict[str, int] = {}
        self.node = Node(self.folder)
        self.node.leases.resume()

    def teardown(self) -> None:
        self.node.leases.stop_jobs()
        self.node.close()
        self.started_once()
        shutil.rmtree(self.folder)

    def _apply(self, order: LeaseSpec) -> None:
        known = self.generations.get(order.lease_id, 0)
        refusal = self._refusal(order)
        stored = self.node.store.lease(order.lease_id)
        generation = 0 if stored is None else stored.generation
        if order.generation < known:
            assert refusal == "agent.stale_generation"
        if refusal in {None, "agent.slice_taken"}:
            assert generation == order.generation >= known
        else:
            assert generation == known
        self.generations[order.lease_id] = generation

    def _refusal(self, order: LeaseSpec) -> str | None:
        try:
            self.node.leases.apply(order)
        except Refused as refused:
            return refused.problem.code
        return None

    @rule(lease_id=LEASES, generation=GENERATIONS, compute=SIZES)
    def run(self, lease_id: str, generation: int, compute: int) -> None:
        script = f"echo started >> {self.counts}/{lease_id}; exec sleep 100"
        order = running(
            lease_id,
            self.node.share,
            *("sh", "-c", script),
            generation=generation,
            compute_milli=compute,
        )
        self._apply(order)

    @rule(lease_id=LEASES, generation=GENERATIONS)
    def stop(self, lease_id: str, generation: int) -> None:
        self._apply(absent(lease_id, generation))

    @rule(lease_id=LEASES)
    def wait_for_what_was_asked(self, lease_id: str) -> None:
        lease = self.node.store.lease(lease_id)
        if lease is not None and lease.active:
            goal = Observed.ENDED if lease.stop_reason else Observed.RUNNING
            eventually(lambda: self.node.leases.report(lease_id).observed is goal)

    @rule()
    def another_agent(self) -> None:
        self.node.close()
        self.node = Node(self.folder)
        self.node.leases.resume()

    @invariant()
    def no_slice_is_given_twice(self) -> None:
        active = self.node.store.active(self.node.share)
        slices = [SliceSpec.model_validate_json(lease.slice or "") for lease in active]
        assert sum(slice_.compute_milli for slice_ in slices) <= 1000

    @invariant()
    def started_once(self) -> None:
        for path in self.counts.iterdir():
            assert path.read_text() == "started\n"

    @invariant()
    def events_tell_each_thing_once(self) -> None:
        told = [
            (event["kind"], event["lease"]["lease_id"])
            for event in self.node.store.events(0, 10_000)
        ]
        assert len(told) == len(set(told))

    @invariant()
    def what_ended_has_a_reason(self) -> None:
        for lease in self.node.store.leases():
            assert (lease.observed is Observed.ENDED) == (lease.end_reason is not None)
            assert lease.end_reason != EndReason.SUPERVISOR_LOST


TestAgent = Agent.TestCase
TestAgent.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
