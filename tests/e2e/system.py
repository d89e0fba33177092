"""The whole product as a user starts it: `manage.py up` on a folder and a port of its own.

Everything here waits for conditions with a generous deadline; nothing sleeps for a fixed time.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from tests.e2e.probe_client import Probe
from tests.plugin import new_service_addresses, run_folder

ROOT = Path(__file__).parents[2]
DEADLINE_S = 90
UNFINISHED = "QUEUED,STARTING,RUNNING"
TERMINAL = ("SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT")
_READY = "GPU Commons is ready at"
_SHOWN_BYTES = 20_000
T = TypeVar("T")

_numbers = itertools.count(100)
_living: list[System] = []


def eventually(probe: Callable[[], T | None], what: str, deadline_s: float = DEADLINE_S) -> T:
    """The probe's first true value; fails after the deadline."""
    deadline = time.monotonic() + deadline_s
    pause = 0.02
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {deadline_s} s: {what}")
        time.sleep(pause)
        pause = min(2 * pause, 0.25)


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: http.client.HTTPMessage

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Refused(Exception):
    """The portal answered with a problem."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status} {body[:500].decode(errors='replace')}")
        self.status = status


class Rest:
    """A client of the REST API that repeats a request, with its key, until it is answered."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token

    def once(self, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=40)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", text, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read(), response.headers)
        finally:
            connection.close()

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
        """Raises `Refused` for a 4xx; silence and 5xx are asked again."""
        last = "nothing"

        def answered() -> Answer | None:
            nonlocal last
            try:
                answer = self.once(method, path, body, key)
            except (OSError, http.client.HTTPException) as error:
                last = repr(error)
                return None
            if answer.status < 500:
                return answer
            last = f"{answer.status} {answer.body[:300]!r}"
            return None

        try:
            answer = eventually(answered, f"an answer to {method} {path}")
        except AssertionError as error:
            raise AssertionError(f"{error}; last: {last}") from None
        if answer.status >= 400:
            raise Refused(answer.status, answer.body)
        return answer

    def get(self, path: str) -> Any:
        return self.call("GET", path).json

    def post(self, path: str, body: Any = None, key: str | None = None) -> Any:
        return self.call("POST", path, body, key or str(uuid.uuid4())).json

    def submit(self, command: Sequence[str], key: str | None = None, **wanted: Any) -> Any:
        body = {"project": "", **wanted, "command": list(command)}
        return self.post("/jobs", body, key)

    def job(self, job_id: str) -> Any:
        return self.get(f"/jobs/{job_id}")

    def unfinished(self) -> list[Any]:
        items: list[Any] = self.get(f"/jobs?state={UNFINISHED}&limit=200")["items"]
        return items

    def wait_state(self, job_id: str, *states: str) -> Any:
        def reached() -> Any:
            job = self.job(job_id)
            if job["state"] in TERMINAL and job["state"] not in states:
                raise AssertionError(f"job {job_id} is {job['state']}, not {states}: {job}")
            return job if job["state"] in states else None

        return eventually(reached, f"job {job_id} in {states}")

    def wait_end(self, job_id: str) -> Any:
        return self.wait_state(job_id, *TERMINAL)

    def wait_all_ended(self, deadline_s: float = DEADLINE_S) -> None:
        eventually(lambda: not self.unfinished(), "every job ended", deadline_s)


class System:
    """One portal and its agent. `folder` must be empty, short, and passable for other users."""

    def __init__(
        self,
        folder: Path,
        addresses: Mapping[str, str],
        *,
        crash_points: bool = False,
        launcher: Sequence[str] = ("manage.py",),
        **settings: str,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.witness = folder / "witness"
        self.port = free_port()
        self._launcher = list(launcher)
        temporary = folder / "tmp"
        temporary.mkdir(mode=0o711)
        self.witness.mkdir()
        self.witness.chmod(0o777)
        self.environment = {
            **own_environment(),
            **addresses,
            "TMPDIR": str(temporary),
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            **({"GPUCOMMONS_CRASH_POINTS": "1"} if crash_points else {}),
            **settings,
        }
        self.output = folder / "portal.log"
        self.portal: subprocess.Popen[bytes] | None = None
        self.spoilt = False
        self._read_from = 0
        self._probe: Probe | None = None
        self._probe_lock = threading.Lock()
        _living.append(self)

    # -- its life --------------------------------------------------------------------------------

    def spawn(
        self, *, port: int | None = None, data: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """A process of `manage.py up`; the caller ends it."""
        with self.output.open("ab") as output:
            return subprocess.Popen(
                [
                    sys.executable,
                    *self._launcher,
                    "up",
                    *("--port", str(port or self.port)),
                    *("--data", str(data or self.data)),
                ],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def launch(self) -> None:
        """Start the portal and do not wait."""
        assert self.portal is None or self.portal.poll() is not None, "it runs already"
        self._read_from = self.output.stat().st_size if self.output.exists() else 0
        self.portal = self.spawn()

    def start(self) -> System:
        self.launch()
        self.wait_ready()
        return self

    def wait_ready(self) -> None:
        eventually(self._announced, "the portal is ready", 2 * DEADLINE_S)

    def _announced(self) -> bool:
        assert self.portal is not None
        with self.output.open("rb") as output:
            output.seek(self._read_from)
            said = _READY.encode() in output.read()
        status = self.portal.poll()
        if status is not None and not said:
            raise AssertionError(f"the portal ended with {status} before it was ready")
        return said and (self.data / "demo.json").exists()

    def serves(self) -> bool:
        return self.portal is not None and self.portal.poll() is None

    def running_portal(self) -> subprocess.Popen[bytes]:
        assert self.portal is not None, "the portal was not started"
        return self.portal

    def kill_portal(self) -> None:
        portal = self.running_portal()
        portal.kill()
        portal.wait(DEADLINE_S)

    def wait_portal_dead(self, deadline_s: float = DEADLINE_S) -> int:
        """Its exit status, negative for a signal."""
        try:
            return self.running_portal().wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the portal did not die within {deadline_s} s") from None

    def interrupt(self) -> int:
        """Ctrl-C; the exit status."""
        portal = self.running_portal()
        portal.send_signal(signal.SIGINT)
        return self.wait_portal_dead()

    def agent_pid(self) -> int | None:
        """Of the agent that serves; None while there is none."""
        try:
            pid = int(json.loads((self.data / "agent" / "agent.json").read_text())["pid"])
        except (OSError, ValueError, KeyError):
            return None
        return pid if is_alive(pid) else None

    def wait_agent(self, *, other_than: int | None = None) -> int:
        def fresh() -> int | None:
            pid = self.agent_pid()
            return pid if pid != other_than else None

        return eventually(fresh, "an agent serves")

    def kill_agent(self) -> int:
        pid = self.wait_agent()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid), "the agent is dead")
        return pid

    def close(self) -> None:
        """End everything that belongs to this system, by pid, and check nothing."""
        if self._probe is not None:
            self._probe.close()
        if self.portal is not None and self.portal.poll() is None:
            self.portal.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.portal.wait(20)
        end_processes(self.folder, but={self._probe.pid} if self._probe else set())
        if self.portal is not None:
            self.portal.wait(DEADLINE_S)
        if self in _living:
            _living.remove(self)

    # -- what belongs to it ----------------------------------------------------------------------

    def processes(self) -> list[psutil.Process]:
        """Every living process that names this folder in its command or environment."""
        return processes_of(self.folder, but={self._probe.pid} if self._probe else set())

    def at_rest(self) -> bool:
        return not (
            any(self.probe.ask("open_work").values()) or self.supervisors() or self.agent_is_busy()
        )

    @property
    def agent_folders(self) -> list[Path]:
        return [self.data / "agent"]

    def agent_is_busy(self) -> bool:
        return any(is_busy(folder) for folder in self.agent_folders)

    def wait_at_rest(self, deadline_s: float = DEADLINE_S) -> None:
        """Every job has ended and everything that was given away is back."""
        self.rest().wait_all_ended(deadline_s)
        eventually(self.at_rest, "everything is given back", deadline_s)

    def supervisors(self) -> list[psutil.Process]:
        return supervisors_of(self.agent_folders)

    # -- its doors -------------------------------------------------------------------------------

    def demo(self) -> Any:
        return json.loads((self.data / "demo.json").read_text())

    def user(self) -> Any:
        """Someone who may submit jobs."""
        users = [user for user in self.demo()["users"] if user.get("project")]
        members = [user for user in users if "admin" not in user["role"]]
        return (members or users)[0]

    def rest(self) -> Rest:
        return ProjectRest(self.port, self.user()["token"], self.user()["project"])

    def admin(self) -> Rest:
        admin = next(user for user in self.demo()["users"] if "admin" in user["role"])
        return Rest(self.port, admin["token"])

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).parent / "gpucommons"), *arguments],
            env={
                **self.environment,
                "GPUCOMMONS_URL": f"http://127.0.0.1:{self.port}",
                "GPUCOMMONS_TOKEN": self.user()["token"],
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    @property
    def probe(self) -> Probe:
        """A process that reads the portal's database with the product's own code."""
        with self._probe_lock:
            if self._probe is None:
                self._probe = Probe(self.environment, self.data, self.output)
            return self._probe

    def shown_output(self) -> str:
        if not self.output.exists():
            return ""
        text = self.output.read_bytes()
        return text[-_SHOWN_BYTES:].decode(errors="replace")


class ProjectRest(Rest):
    def __init__(self, port: int, token: str, project: str) -> None:
        super().__init__(port, token)
        self.project = project

    def submit(self, command: Sequence[str], key: str | None = None, **wanted: Any) -> Any:
        return super().submit(command, key, **{"project": self.project, **wanted})


def processes_of(folder: Path, *, but: Set[int]) -> list[psutil.Process]:
    """Every living process, except this one, that names the folder in command or environment."""
    mark = str(folder)
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid in {os.getpid(), *but} or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = [*process.cmdline(), *process.environ().values()]
            if any(mark in word for word in words):
                found.append(process)
    return found


def end_processes(folder: Path, *, but: Set[int]) -> None:
    """Kill, by id, what belongs to a folder and what it may still start."""
    for _ in range(5):
        strays = processes_of(folder, but=but)
        for process in strays:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(strays, timeout=2)


def supervisors_of(agent_folders: Sequence[Path]) -> list[psutil.Process]:
    leases = tuple(str(folder / "leases") for folder in agent_folders)
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(word.startswith(leases) for word in process.cmdline()):
                found.append(process)
    return found


def is_busy(agent_folder: Path) -> bool:
    """Whether an agent has a lease that has not ended, by its own record."""
    path = agent_folder / "agent.sqlite3"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
        query = "SELECT 1 FROM lease WHERE observed IN ('accepted', 'running') LIMIT 1"
        return connection.execute(query).fetchone() is not None


def own_environment() -> dict[str, str]:
    """This process' environment without what configures the product."""
    return {name: text for name, text in os.environ.items() if not _ours(name)}


def _ours(name: str) -> bool:
    return name.startswith(("GPUCOMMONS_", "DJANGO_", "PYTEST_"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def attach_outputs(report: pytest.TestReport) -> None:
    """Show what portal and agent wrote beside the failure of a test."""
    if report.failed:
        for system in _living:
            system.spoilt = True
            title = f"portal and agent of {system.folder.name}"
            report.sections.append((title, system.shown_output()))


class Stand:
    """Keeps one started system for many tests; after a failure the next test gets a new one."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._system: System | None = None

    def __enter__(self) -> Stand:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def sound(self) -> System:
        if self._system is None or self._system.spoilt or not self._system.serves():
            self._stack.close()
            makes = self._stack.enter_context(Makes(**self._settings))
            self._system = makes().start()
        return self._system


class Makes:
    """Makes systems, each in a folder of its own, and ends them all on exit."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._stack = ExitStack()

    def __enter__(self) -> Makes:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, **settings: Any) -> System:
        folder = Path(tempfile.mkdtemp(prefix="s-", dir=run_folder()))
        folder.chmod(0o711)
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        system = System(folder, new_service_addresses(next(_numbers)), **self._settings, **settings)
        self._stack.callback(system.close)
        return system
