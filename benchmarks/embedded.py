"""The embedded portal of one benchmark: started, waited for, stopped, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.api import Api, Failed

ROOT = Path(__file__).resolve().parent.parent
READY_S = 150
STOP_S = 60
_LOG_TAIL = 4_000


class Embedded:
    """``manage.py up`` on a free port of this machine, as a context.

    Without ``data`` everything lies in a temporary folder that is removed. The folder can be
    entered, not listed, by others: each job has its own user and its work folder in there.
    """

    def __init__(self, data: Path | None = None) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="gpucommons-benchmark-"))
        self._place.chmod(0o711)
        self._data = data.resolve() if data else self._place / "data"
        self._log = self._place / "up.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._shown: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        assert self._process is not None  # noqa: S101 - only inside the context
        return self._process.pid

    @property
    def agent_pid(self) -> int | None:
        try:
            return int(json.loads((self._data / "agent" / "agent.json").read_text())["pid"])
        except (OSError, ValueError, KeyError):
            return None

    @property
    def url(self) -> str:
        return str(self._shown["url"])

    def login(self, user: str) -> tuple[str, str]:
        """Name and password of a person of the demonstration."""
        (password,) = (one["password"] for one in self._shown["users"] if one["name"] == user)
        return user, password

    def api(self, user: str = "admin") -> Api:
        (token,) = (one["token"] for one in self._shown["users"] if one["name"] == user)
        return Api(self._shown["url"], token)

    def __enter__(self) -> Embedded:
        end_as_interrupted()
        try:
            self._start()
            self._wait_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not issubclass(kind, KeyboardInterrupt):
            self._show_log()
        self._stop()

    def _start(self) -> None:
        temporary = self._place / "tmp"
        temporary.mkdir(mode=0o711)
        (self._data / "demo.json").unlink(missing_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "manage.py", "up"),
                    *("--port", str(free_port()), "--data", str(self._data)),
                ],
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(temporary)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_ready(self) -> None:
        assert self._process is not None  # noqa: S101 - called after _start
        deadline = time.monotonic() + READY_S
        shown = self._data / "demo.json"
        while not shown.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._show_log()
                raise Failed("the embedded portal did not become ready")
            time.sleep(0.05)
        self._shown = json.loads(shown.read_text())

    def _show_log(self) -> None:
        sys.stderr.write(self._log.read_text(errors="replace")[-_LOG_TAIL:] + "\n")

    def _stop(self) -> None:
        try:
            if self._process is not None:
                agent = self.agent_pid
                end_process(self._process, signal.SIGINT, STOP_S)
                if agent is not None and (self._data / "agent" / "agent.json").exists():
                    with suppress(ProcessLookupError):
                        os.kill(agent, signal.SIGTERM)
        finally:
            shutil.rmtree(self._place, ignore_errors=True)


def end_as_interrupted() -> None:
    """Let SIGTERM end this program as Ctrl-C does, so that contexts clean up."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def end_process(process: subprocess.Popen[bytes], first: signal.Signals, patience_s: float) -> None:
    """Ask a process that we started to end, and kill it when it does not."""
    if process.poll() is not None:
        return
    process.send_signal(first)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"process {process.pid} did not end within {patience_s:g} s: killed\n")
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
