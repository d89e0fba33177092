"""Killing the agent or the portal while jobs run costs time, never a job or its exit code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e import laws
from tests.e2e.jobs import command, new_witness
from tests.e2e.system import Rest, System

pytestmark = pytest.mark.timeout(400)
JOBS = 10


def submit_ten(system: System, rest: Rest) -> list[laws.Expected]:
    """Ten that fit at once, each with an exit code of its own."""
    wishes = []
    for code in range(JOBS):
        witness = new_witness(system.witness)
        job = rest.submit(
            command(witness, seconds=3, code=code), form="share", compute_milli=50, max_attempts=1
        )
        end = ("FAILED" if code else "SUCCEEDED", code)
        wishes.append(laws.Expected(job["id"], witness.name, frozenset({end})))
    return wishes


def kill_the_agent(system: System) -> None:
    pid = system.kill_agent()
    system.wait_agent(other_than=pid)


def kill_the_portal(system: System) -> None:
    agent = system.wait_agent()
    system.kill_portal()
    system.start()
    assert system.agent_pid() == agent, "the living agent was not adopted"


@pytest.mark.parametrize("kill", [kill_the_agent, kill_the_portal])
def test_ten_running_jobs_end_once_with_their_own_codes(
    system: System, kill: Callable[[System], None]
) -> None:
    rest = system.rest()
    wishes = submit_ten(system, rest)
    for wish in wishes:
        rest.wait_state(wish.job_id, "RUNNING", "SUCCEEDED", "FAILED")

    kill(system)

    system.wait_at_rest()
    records = laws.read_records(system)
    assert laws.violations(records, wishes) == []
    ours = {wish.job_id for wish in wishes}
    attempts = [row for row in records.rows("attempts") if row["job_id"] in ours]
    assert len(attempts) == JOBS
