"""Any one process of production may be killed at any moment: no job, second or cent is lost."""

from __future__ import annotations

import random
import signal
import threading
import uuid

import pytest

from tests.e2e import laws
from tests.e2e.jobs import command, new_witness
from tests.e2e.laws import Expected
from tests.e2e.system import DEADLINE_S, eventually
from tests.topology.topology import PARTS, Topology


@pytest.mark.timeout(400)
def test_kills_while_a_few_jobs_run(topology):
    topology.start()

    kill_and_check(topology, jobs=12, victims=["worker-outbox", "watcher", "agent-1"], seed=3)

    ends = {name: topology.stop(name) for name in PARTS}
    assert {name: end for name, end in ends.items() if end not in (0, -signal.SIGTERM)} == {}


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2])
def test_ten_kills_while_fifty_jobs_run(topology, seed):
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    victims = ["redis", *chance.choices([name for name in PARTS if name != "redis"], k=9)]
    chance.shuffle(victims)
    topology.start()

    kill_and_check(topology, jobs=50, victims=victims, seed=seed)


def kill_and_check(topology: Topology, *, jobs: int, victims: list[str], seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    wishes = [(chance.uniform(0.5, 3.5), chance.choice((0, 0, 0, 1, 7, 42))) for _ in range(jobs)]
    submitting = Submitting(topology, wishes)
    submitting.start()
    for name in victims:
        threading.Event().wait(chance.uniform(0.2, 1.5))
        topology.kill(name)
        threading.Event().wait(chance.uniform(0.0, 1.0))
        topology.launch(name)
        topology.wait_ready(name)
    submitting.join(DEADLINE_S)
    assert len(submitting.expected) == jobs, submitting.error

    topology.rest().wait_all_ended(2 * DEADLINE_S)
    eventually(topology.at_rest, "everything is given back", 2 * DEADLINE_S)

    records = laws.read_records(topology)
    assert laws.violations(records, submitting.expected) == []
    runs = [(len(witness.starts), len(witness.ends)) for witness in records.witnesses.values()]
    assert runs == [(1, 1)] * jobs, "each job ran once, whatever was killed"
    topology.manage("prove")


class Submitting(threading.Thread):
    """A client that submits one job after the other and repeats what was not answered."""

    def __init__(self, topology: Topology, wishes: list[tuple[float, int]]) -> None:
        super().__init__(name="submitting", daemon=True)
        self._rest = topology.rest()
        self._folder = topology.witness
        self._wishes = wishes
        self.expected: list[Expected] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            for seconds, code in self._wishes:
                self._submit(seconds, code)
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.error = error

    def _submit(self, seconds: float, code: int) -> None:
        witness = new_witness(self._folder)
        accepted = self._rest.submit(
            command(witness, seconds=seconds, code=code),
            key=str(uuid.uuid4()),
            compute_milli=300,
            max_attempts=20,
        )
        own = frozenset({("FAILED" if code else "SUCCEEDED", code)})
        self.expected.append(Expected(accepted["id"], witness.name, own))
