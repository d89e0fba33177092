"""A user's way from a command to its cost, and what `make run` promises."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
from typing import Any

import pytest

from tests.e2e.jobs import command, new_witness
from tests.e2e.system import DEADLINE_S, Makes, System, eventually, free_port

pytestmark = pytest.mark.timeout(400)
HELLO = ["python3", "-c", "print('hello')"]
SHARE = ["--memory", "8GiB", "--compute", "25"]


def told(result: subprocess.CompletedProcess[str]) -> Any:
    assert result.returncode == 0, result
    return json.loads(result.stdout)


def test_a_job_from_the_command_line(system: System) -> None:
    project = system.user()["project"]

    job = told(system.cli("submit", "--project", project, *SHARE, "--json", "--", *HELLO))
    waited = system.cli("wait", job["id"])
    logs = system.cli("logs", job["id"])
    usage = told(system.cli("usage", "--by", "job", "--json"))

    assert job["state"] == "QUEUED"
    assert waited.returncode == 0, waited
    assert logs.stdout == "hello\n"
    line = next(line for line in usage["items"] if line["job_id"] == job["id"])
    assert line["seconds"] > 0
    assert line["cost"]["amount_micros"] > 0


def test_the_same_job_over_http(system: System) -> None:
    rest = system.rest()

    job = rest.submit(HELLO, memory_mib=8192, compute_milli=250)
    ended = rest.wait_end(job["id"])
    log = rest.call("GET", f"/jobs/{job['id']}/log")

    assert ended["state"] == "SUCCEEDED"
    assert ended["exit_code"] == 0
    assert log.body == b"hello\n"
    assert log.headers["X-Log-Final"] == "true"
    assert ended["usage"]["seconds"] > 0
    assert ended["usage"]["cost"]["amount_micros"] > 0
    (attempt,) = ended["attempts"]
    assert attempt["lease"]["gpu_simulated"] is True
    assert attempt["lease"]["compute_milli"] == 250


def test_exit_codes_of_wait_tell_how_the_job_ended(system: System) -> None:
    rest = system.rest()
    failed = rest.submit(["false"], compute_milli=10)
    missing = rest.submit(["/no/such/command"], compute_milli=10)

    codes = [system.cli("wait", job["id"]).returncode for job in (failed, missing)]

    assert codes == [1, 1]
    assert rest.job(missing["id"])["reason_code"] == "command_not_found"


@pytest.mark.skipif(os.geteuid() != 0, reason="without root jobs have no users of their own")
def test_jobs_of_root_have_users_of_their_own_without_access_to_the_data(
    system: System,
) -> None:
    rest = system.rest()
    script = f"id -u; ls {system.data} 2>&1; ls {system.data}/agent 2>&1; sleep 1"

    jobs = [rest.submit(["bash", "-c", script], compute_milli=10) for _ in range(2)]
    for job in jobs:
        rest.wait_end(job["id"])
    logs = [rest.call("GET", f"/jobs/{job['id']}/log").body.decode() for job in jobs]

    users = {log.splitlines()[0] for log in logs}
    assert len(users) == 2
    assert "0" not in users
    assert all(log.count("Permission denied") == 2 for log in logs), logs


def test_a_second_portal_on_the_same_data_is_refused(system: System) -> None:
    second = system.spawn(port=free_port())

    assert second.wait(DEADLINE_S) != 0
    assert "Another portal uses the data folder" in system.shown_output()


def test_a_taken_port_is_refused(make_system: Makes) -> None:
    system = make_system()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        portal = system.spawn(port=other.getsockname()[1])

        assert portal.wait(DEADLINE_S) != 0
    assert "Choose another port" in system.shown_output()
    assert system.processes() == []


def test_an_interrupt_ends_everything_and_a_second_start_goes_on(system: System) -> None:
    before = system.demo()
    rest = system.rest()
    done = rest.submit(["true"], compute_milli=10)
    rest.wait_end(done["id"])
    job = rest.submit(command(new_witness(system.witness), seconds=5), compute_milli=10)
    rest.wait_state(job["id"], "RUNNING")

    assert system.interrupt() == 0

    assert eventually(lambda: not system.processes(), "no process is left", 30)
    state = system.probe.ask("state")
    (stored,) = (row for row in state["jobs"] if row["id"] == job["id"])
    assert (stored["state"], stored["exit_code"]) == ("QUEUED", None)
    ends = [row["end_reason"] for row in state["attempts"] if row["job_id"] == job["id"]]
    assert ends == ["node_stopped"]

    system.start()

    assert system.demo()["users"] == before["users"]
    assert stat.S_IMODE((system.data / "demo.json").stat().st_mode) == 0o600
    rest = system.rest()
    assert rest.job(done["id"])["state"] == "SUCCEEDED"
    ended = rest.wait_end(job["id"])
    assert ended["state"] == "SUCCEEDED"
    assert [attempt["number"] for attempt in ended["attempts"]] == [1, 2]
    assert any(
        "node_stopped" in step["detail"] or "stopped" in step["detail"]
        for step in ended["transitions"]
    )
