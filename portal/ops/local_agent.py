"""The one agent of an embedded portal: enrolled, started, adopted, restarted and stopped."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import psutil
import structlog

from portal.core import crash
from portal.core.audit import Actor
from portal.fleet import enrolment
from portal.fleet.selectors import fleet_view

_log = structlog.get_logger(__name__)
STOP_TIMEOUT_S = 30


class LocalAgent:
    """``data`` is the agent's own folder. The agent outlives a killed portal and is adopted."""

    def __init__(self, data: Path, node_name: str) -> None:
        self._data = data
        self._node_name = node_name
        self._process: psutil.Process | None = None

    def ensure(self, *, portal_url: str, actor: Actor, now: datetime) -> None:
        """Enrol the node unless both sides know it; start its agent unless one lives."""
        if not self._address() or not (self._data / "identity.json").exists():
            port = _free_port()
            code = enrolment.issue_code(actor=actor, node_name=self._node_name, now=now)
            crash.point("local_agent.code_issued")
            subprocess.run(
                [
                    *_AGENT,
                    "enrol",
                    *("--portal", portal_url),
                    *("--code", code),
                    *("--name", self._node_name),
                    *("--address", f"https://127.0.0.1:{port}"),
                    *("--data", str(self._data)),
                ],
                check=True,
                stdin=subprocess.DEVNULL,
            )
            crash.point("local_agent.enrolled")
        self._process = self._living() or self._start()
        crash.point("local_agent.started")

    def restart_if_dead(self) -> None:
        if self._process is None or not _runs(self._process):
            _log.warning("local_agent.died")
            self._process = self._living() or self._start()

    def stop(self) -> None:
        """Stop the agent and its jobs, which then end as ``node_stopped``."""
        if self._process is None or not _runs(self._process):
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except psutil.TimeoutExpired:
            _log.warning("local_agent.killed")
            self._process.kill()

    def _address(self) -> str | None:
        for node in fleet_view():
            if node.name == self._node_name:
                return node.address
        return None

    def _living(self) -> psutil.Process | None:
        """An agent of this folder that an earlier portal left running."""
        try:
            record = json.loads((self._data / "agent.json").read_text())
            process = psutil.Process(int(record["pid"]))
            ours = str(self._data) in process.cmdline()
        except (OSError, ValueError, KeyError, psutil.Error):
            return None
        return process if ours and _runs(process) else None

    def _start(self) -> psutil.Process:
        address = self._address() or ""
        child = subprocess.Popen(
            [
                *_AGENT,
                "run",
                *("--data", str(self._data)),
                *("--listen", address.removeprefix("https://")),
                "--stop-jobs",
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        return psutil.Process(child.pid)


_AGENT: tuple[str, ...] = (sys.executable, "-m", "agent.main")


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
