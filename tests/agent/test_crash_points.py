"""SIGKILL of the agent at each of its points: the next agent tells every end, each once."""

from __future__ import annotations

import ast
import http.client
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent import crash, wire
from agent.runtime import records
from tests.agent.conftest import running_agent
from tests.agent.support import (
    DEADLINE_S,
    ROOT,
    SUPERVISOR,
    AgentProcess,
    Authority,
    Client,
    Reply,
    absent,
    eventually,
    running,
)

ALWAYS_SWEPT = {"agent.lease.stored", "agent.spawn.done", "agent.ended.before_store"}


def points_in_source() -> list[str]:
    return [
        node.args[0].value
        for path in (ROOT / "agent").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "crash.point"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def test_every_point_is_listed_and_in_one_place() -> None:
    assert Counter(points_in_source()) == Counter(crash.POINTS)


@contextmanager
def mortal_agent(authority: Authority, point: str) -> Iterator[AgentProcess]:
    """An agent that will die at a point; its supervisors dawdle where that is needed."""
    with running_agent(authority, start=False) as agent:
        agent.environment = {"GPUCOMMONS_CRASH_POINTS": "1"}
        if point == "agent.claim.taken":
            slow = agent.data.parent / "slow-supervisor"
            slow.write_text(f'#!/bin/sh\nsleep 1\nexec {SUPERVISOR} "$1"\n')
            slow.chmod(0o755)
            agent.supervisor = slow
        agent.start()
        (agent.data / "crash_at").write_text(point)
        yield agent


class Portal:
    """Says what should be until it is so, as a reconciler does, and counts what it is told."""

    def __init__(self, agent: AgentProcess) -> None:
        self._agent = agent
        self._client: Client | None = None
        self.told: list[wire.Event] = []

    def _try(self, method: str, path: str, body: bytes | None = None) -> Reply | None:
        """None when the agent died; another one is then there."""
        if self._client is None:
            self._client = self._agent.client()
        try:
            return self._client.ask(method, path, body)
        except (OSError, http.client.HTTPException):
            self._client = None
            assert self._agent.process is not None
            self._agent.process.wait(DEADLINE_S)
            self._agent.start()
            return None

    def get(self, path: str) -> Any:
        return eventually(lambda: self._try("GET", path)).json

    def log(self, lease_id: str) -> bytes:
        return eventually(lambda: self._try("GET", f"/v1/leases/{lease_id}/log")).body

    def ask(self, spec: wire.LeaseSpec) -> None:
        body = spec.model_dump_json().encode()
        reply = eventually(lambda: self._try("PUT", f"/v1/leases/{spec.lease_id}", body))
        assert reply.status in {200, 409}

    def wait_for(self, kind: wire.EventKind, lease_id: str) -> wire.LeaseReport:
        def find() -> wire.LeaseReport | None:
            after = self.told[-1].seq if self.told else 0
            batch = self.get(f"/v1/events?after={after}&wait_ms=500")
            self.told += wire.EventBatch.model_validate(batch).events
            return next(
                (
                    event.lease
                    for event in self.told
                    if event.lease and (event.kind, event.lease.lease_id) == (kind, lease_id)
                ),
                None,
            )

        return eventually(find, f"{kind} {lease_id}")


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=[] if point in ALWAYS_SWEPT else pytest.mark.soak)
        for point in sorted(crash.POINTS)
    ],
)
def test_the_agent_dies_here_and_nothing_is_lost(authority: Authority, point: str) -> None:
    with mortal_agent(authority, point) as agent:
        portal = Portal(agent)
        first = agent.process
        assert first is not None
        gpu = wire.Inventory.model_validate(portal.get("/v1/inventory")).gpus[0].uuid

        portal.ask(running("runs", gpu, "sh", "-c", "echo once; exit 3"))
        portal.ask(running("stops", gpu, "sh", "-c", "sleep 100"))
        portal.ask(running("refused", gpu, "true", memory_mib=143155))
        portal.ask(running("lost", gpu, "sh", "-c", "setsid sleep 100 & sleep 100"))
        portal.ask(absent("stops", 2))
        portal.wait_for(wire.EventKind.STARTED, "lost")
        claim = eventually(lambda: records.read_claim(agent.data / "leases" / "lost"))
        os.kill(claim.pid or 0, signal.SIGKILL)
        runs = portal.wait_for(wire.EventKind.ENDED, "runs")
        stops = portal.wait_for(wire.EventKind.ENDED, "stops")
        lost = portal.wait_for(wire.EventKind.ENDED, "lost")
        portal.wait_for(wire.EventKind.REFUSED, "refused")
        eventually(lambda: first.poll() is not None, "the planned death")

        assert first.poll() == -signal.SIGKILL
        assert (runs.end_reason, runs.exit_code) == (wire.EndReason.EXITED, 3)
        assert stops.end_reason in {wire.EndReason.STOPPED, wire.EndReason.NEVER_STARTED}
        assert lost.end_reason is wire.EndReason.SUPERVISOR_LOST
        assert portal.log("runs") == b"once\n"
        told = Counter((event.kind, event.lease.lease_id) for event in portal.told if event.lease)
        assert set(told.values()) == {1}
