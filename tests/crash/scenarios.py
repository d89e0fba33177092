"""What users and machines do while a process is killed.

A scenario runs in a thread of its own: its client repeats every request, with its key, until the
portal is back. It says what it asked for, so that the laws can be checked afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.jobs import command, new_witness
from tests.e2e.laws import Expected
from tests.e2e.system import ROOT, TERMINAL, Rest, System, eventually, is_alive

ENDED_WELL: frozenset[tuple[str, int | None]] = frozenset({("SUCCEEDED", 0)})


class Stage:
    """The system, what was asked of it, and whether the process has died."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.rest: Rest = system.rest()
        self.expected: list[Expected] = []
        self.died = threading.Event()

    def submit(
        self,
        *,
        seconds: float = 0.3,
        code: int = 0,
        ends: frozenset[tuple[str, int | None]] | None = None,
        **wanted: Any,
    ) -> str:
        """One job under one key; its id."""
        witness = new_witness(self.system.witness)
        job_id: str = self.rest.submit(
            command(witness, seconds=seconds, code=code),
            key=str(uuid.uuid4()),
            **{"compute_milli": 50, "max_attempts": 20, **wanted},
        )["id"]
        own = frozenset({("FAILED" if code else "SUCCEEDED", code)})
        self.expected.append(Expected(job_id, witness.name, own if ends is None else ends))
        return job_id

    def submit_array(self, size: int) -> None:
        """Members that each write a file of their own."""
        witnesses = [new_witness(self.system.witness) for _ in range(size)]
        choose = 'files=("$@"); exec bash -c "$0" "${files[GPUCOMMONS_ARRAY_INDEX]}" 0.2 0'
        script = command(witnesses[0])[2]
        accepted = self.rest.submit(
            ["bash", "-c", choose, script, *map(str, witnesses)],
            array_size=size,
            compute_milli=50,
            max_attempts=20,
        )
        for job_id, witness in zip(accepted["job_ids"], witnesses, strict=True):
            self.expected.append(Expected(job_id, witness.name, ENDED_WELL))

    def cancel(self, job_id: str) -> None:
        self.rest.post(f"/jobs/{job_id}/cancel")

    def state_of(self, job_id: str) -> str:
        return str(self.rest.job(job_id)["state"])

    def wait_running(self, job_id: str) -> None:
        eventually(lambda: self.state_of(job_id) not in ("QUEUED", "STARTING"), f"{job_id} runs")

    def wait_ended(self, *job_ids: str) -> None:
        for job_id in job_ids:
            eventually(partial(self.has_ended, job_id), f"{job_id} ended")

    def has_ended(self, job_id: str) -> bool:
        return self.state_of(job_id) in TERMINAL


Scenario = Callable[[Stage], None]
WHOLE: dict[str, Any] = {"compute_milli": None, "form": "whole"}
CANCELLED: frozenset[tuple[str, int | None]] = frozenset({("CANCELLED", None)})


def submit_several(stage: Stage) -> None:
    """Jobs with several exit codes and an array, until the end."""
    ids = [stage.submit(), stage.submit(code=7), stage.submit(seconds=0.8, code=1)]
    stage.submit_array(3)
    stage.wait_ended(*ids)


def everything(stage: Stage) -> None:
    """An administrator sets a limit and a price; users run and cancel jobs."""
    admin = stage.system.admin()
    project = stage.system.user()["project"]
    versions = len(admin.get("/prices")["items"])
    limit = 31_000 - versions
    running = stage.submit(seconds=600, ends=CANCELLED)
    admin.call("PUT", f"/quotas/projects/{project}", {"limit_milli": limit})
    admin.post("/prices", {"rates": {"*": 1_000_000 + versions}})
    submit_several(stage)
    stage.cancel(running)
    stage.wait_ended(running)
    assert len(admin.get("/prices")["items"]) == versions + 1
    assert admin.get(f"/quotas/projects/{project}")["limit_milli"] == limit


def crowd(stage: Stage) -> None:
    """More whole GPUs are wanted than there are: some wait, with the reason."""
    stage.wait_ended(*[stage.submit(seconds=0.5, **WHOLE) for _ in range(3)])


def cancel_queued(stage: Stage) -> None:
    first = stage.submit(seconds=2, **WHOLE)
    second = stage.submit(ends=CANCELLED | ENDED_WELL, **WHOLE)
    stage.cancel(second)
    stage.wait_ended(first, second)


def cancel_running(stage: Stage) -> None:
    job_id = stage.submit(seconds=600, ends=CANCELLED)
    stage.wait_running(job_id)
    stage.cancel(job_id)
    stage.wait_ended(job_id)


def cancel_not_begun(stage: Stage) -> None:
    """The node has the order and its supervisor is slow to begin when the job is cancelled."""
    gate = stage.system.folder / "gate"
    with slow_supervisors(stage.system, gate):
        job_id = stage.submit(ends=CANCELLED)
        eventually(
            lambda: stage.died.is_set() or any(_waiting_at(gate)), "a supervisor waits at the gate"
        )
        stage.cancel(job_id)
        stage.wait_ended(job_id)


def refused(stage: Stage) -> None:
    """The node has given the GPU away behind the portal's back and refuses its leases."""
    ends = ENDED_WELL | {("FAILED", None)}

    def tried() -> bool:
        with suppress(AssertionError):
            stage.system.probe.ask("occupy", lease_id=f"stranger-{uuid.uuid4().hex}")
        job_id = stage.submit(form="share", ends=ends)
        stage.wait_ended(job_id)
        return stage.died.is_set()

    eventually(tried, "a lease was refused")


def lose_messages(stage: Stage) -> None:
    """The node's agent stands still when it is told, so the messages are sent again."""
    pid = stage.system.wait_agent()
    os.kill(pid, signal.SIGSTOP)
    try:
        job_id = stage.submit()
        stage.died.wait(60)
    finally:
        os.kill(pid, signal.SIGCONT)
    stage.wait_ended(job_id)


def restart_the_node(stage: Stage) -> None:
    """The agent is stopped in order while jobs run: they are queued again."""
    ids = [stage.submit(seconds=4, code=code) for code in (0, 5)]
    for job_id in ids:
        stage.wait_running(job_id)
    pid = stage.system.wait_agent()
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: not is_alive(pid), "the agent has stopped")
    stage.wait_ended(*ids)


def lose_supervisor(stage: Stage) -> None:
    """The process that watches over a job is killed; the job runs again."""
    job_id = stage.submit(seconds=3)
    stage.wait_running(job_id)
    for process in stage.system.supervisors():
        with suppress(psutil.NoSuchProcess):
            process.kill()
    stage.wait_ended(job_id)


def first_start(stage: Stage) -> None:
    """A portal on an empty folder: the sweep starts it."""


def _waiting_at(gate: Path) -> list[Path]:
    return list(gate.glob("waiting.*")) if gate.exists() else []


class slow_supervisors:  # noqa: N801 - used as a statement
    """Within it the agent is one whose supervisors wait until the block is left.

    The portal stands still meanwhile, so that it adopts this agent instead of starting another.
    """

    def __init__(self, system: System, gate: Path) -> None:
        self._system = system
        self._gate = gate

    def __enter__(self) -> None:
        system, gate = self._system, self._gate
        gate.mkdir(exist_ok=True)
        (gate / "open").unlink(missing_ok=True)
        for path in _waiting_at(gate):
            path.unlink()
        program = gate / "supervisor"
        real = ROOT / "native" / "build" / "gpucommons-supervisor"
        program.write_text(
            f"#!/bin/sh\n: >{gate}/waiting.$$\n"
            f"while [ ! -e {gate}/open ]; do /bin/sleep 0.05; done\n"
            f'exec {real} "$@"\n'
        )
        program.chmod(0o755)
        address = system.probe.ask("state")["nodes"][0]["address"].removeprefix("https://")
        portal = system.running_portal()
        portal.send_signal(signal.SIGSTOP)
        try:
            old = system.kill_agent()
            with system.output.open("ab") as output:
                agent = subprocess.Popen(
                    [
                        *(sys.executable, "-m", "agent.main", "run", "--stop-jobs"),
                        *("--data", str(system.data / "agent"), "--listen", address),
                        *("--supervisor", str(program)),
                    ],
                    cwd=ROOT,
                    env=system.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            threading.Thread(target=agent.wait, daemon=True).start()
            system.wait_agent(other_than=old)
        finally:
            portal.send_signal(signal.SIGCONT)

    def __exit__(self, *_: object) -> None:
        (self._gate / "open").touch()
