"""The parts of a production portal as processes: started, killed and started again by name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.probe_client import Probe
from tests.e2e.system import (
    DEADLINE_S,
    ROOT,
    ProjectRest,
    Rest,
    end_processes,
    eventually,
    free_port,
    is_alive,
    is_busy,
    own_environment,
    supervisors_of,
)
from tests.topology.compose import Command, Places

AGENTS = ("agent-1", "agent-2")
LOOPS = ("worker-outbox", "worker-default", "beat", "scheduler", "watcher")
#: Everything that may be killed. PostgreSQL is the one part that must not lose what it has.
PARTS = ("redis", "web", *LOOPS, *AGENTS)
_SHOWN_BYTES = 6_000

_living: list[Topology] = []


def shown_logs() -> list[tuple[str, str]]:
    return [shown for topology in _living for shown in topology.logs()]


class Topology:
    """``folder`` must be empty, short, and passable for other users."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self.witness = folder / "witness"
        self.port = free_port()
        ports = {"web": self.port, **{name: free_port() for name in ("redis", *AGENTS)}}
        self.places = Places(folder, database_url, ports)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._probe: Probe | None = None
        self._probe_lock = threading.Lock()
        self._make_folders()
        _living.append(self)

    def _make_folders(self) -> None:
        self.witness.mkdir()
        self.witness.chmod(0o777)
        for name in ("logs", "secrets", "volumes", "own", "tmp"):
            (self.folder / name).mkdir(mode=0o711)
        for name in (
            "portal-data",
            *(f"{agent}-{what}" for agent in AGENTS for what in ("code", "data")),
        ):
            self.places.volume(name).mkdir(mode=0o711)
        for name in PARTS:
            for place in ("tmp", "data"):
                (self.folder / "own" / name / place).mkdir(parents=True)
        self.places.secret("database_password").write_text("gpucommons\n")
        self.places.secret("secret_key").write_text(
            "a key of this test alone, long enough for it\n"
        )

    # -- its life --------------------------------------------------------------------------------

    def start(self) -> Topology:
        """Set the database up, enrol the agents, start every part and wait until all is ready."""
        self.launch("redis")
        self.once("setup")
        for name in ("web", *LOOPS):
            self.launch(name)
        self.manage("demo")
        self._side_by_side([f"code-{number}" for number in (1, 2)])
        self.wait_ready("web")
        self._side_by_side([f"enrol-{number}" for number in (1, 2)])
        for name in AGENTS:
            self.launch(name)
        admin = self.admin()
        eventually(
            lambda: [node["state"] for node in admin.get("/nodes")["items"]] == ["ready"] * 2,
            "both nodes are ready",
        )
        return self

    def launch(self, name: str) -> None:
        assert not self.runs(name), f"{name} runs already"
        self._processes[name] = self._spawn(name, self.places.command(name))

    def once(self, name: str) -> None:
        """Run a service that ends by itself."""
        self._wait_once(name, self._spawn(name, self.places.command(name)))

    def manage(self, *words: str) -> None:
        """An operator's command, in the environment of the portal's parts."""
        setup = self.places.command("setup")
        command = Command([*setup.words[:2], *words], setup.environment)
        self._wait_once(words[0], self._spawn(words[0], command))

    def _side_by_side(self, names: Iterable[str]) -> None:
        started = [(name, self._spawn(name, self.places.command(name))) for name in names]
        for name, process in started:
            self._wait_once(name, process)

    def _wait_once(self, name: str, process: subprocess.Popen[bytes]) -> None:
        status = process.wait(DEADLINE_S)
        assert status == 0, f"{name} ended with {status}:\n{self._log(name)}"

    def _spawn(self, name: str, command: Command) -> subprocess.Popen[bytes]:
        with self._log_file(name).open("ab") as log:
            return subprocess.Popen(
                command.words,
                cwd=ROOT,
                env={
                    **own_environment(),
                    **command.environment,
                    "TMPDIR": str(self.folder / "tmp"),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def runs(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def kill(self, name: str) -> None:
        assert self.runs(name), f"{name} has ended by itself:\n{self._log(name)}"
        self._processes[name].kill()
        self._processes[name].wait(DEADLINE_S)

    def stop(self, name: str) -> int:
        """SIGTERM; the exit status."""
        self._processes[name].send_signal(signal.SIGTERM)
        return self._processes[name].wait(DEADLINE_S)

    def wait_ready(self, name: str) -> None:
        """Until a part that listens does."""
        if name == "web":
            eventually(self._answers, "the portal answers")
        elif name in AGENTS:
            eventually(lambda: self._serves(name), f"{name} serves")

    def _answers(self) -> bool:
        assert self.runs("web"), f"the web process ended:\n{self._log('web')}"
        with suppress(OSError):
            return Rest(self.port, "").once("GET", "/openapi.json").status < 500
        return False

    def _serves(self, name: str) -> bool:
        try:
            record = json.loads((self.places.volume(f"{name}-data") / "agent.json").read_text())
        except (OSError, ValueError):
            return False
        return bool(record["pid"] == self._processes[name].pid) and is_alive(record["pid"])

    def close(self) -> None:
        """End everything that belongs to this topology, by id, and check nothing."""
        if self._probe is not None:
            self._probe.close()
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(DEADLINE_S)
        end_processes(self.folder, but=set())
        _living.remove(self)

    # -- what the laws look at -------------------------------------------------------------------

    @property
    def agent_folders(self) -> list[Path]:
        return [self.places.volume(f"{name}-data") for name in AGENTS]

    @property
    def probe(self) -> Probe:
        with self._probe_lock:
            if self._probe is None:
                environment = {**os.environ, **self.places.command("setup").environment}
                data = self.places.volume("portal-data")
                self._probe = Probe(environment, data, self._log_file("probe"))
            return self._probe

    def supervisors(self) -> list[psutil.Process]:
        return supervisors_of(self.agent_folders)

    def at_rest(self) -> bool:
        return not (
            any(self.probe.ask("open_work").values())
            or self.supervisors()
            or any(is_busy(folder) for folder in self.agent_folders)
        )

    # -- its doors -------------------------------------------------------------------------------

    def _people(self) -> Any:
        return json.loads((self.places.volume("portal-data") / "demo.json").read_text())["users"]

    def rest(self) -> ProjectRest:
        """Of someone who may submit jobs."""
        user = next(user for user in self._people() if user["role"] == "member")
        return ProjectRest(self.port, user["token"], user["project"])

    def admin(self) -> Rest:
        admin = next(user for user in self._people() if user["role"] == "platform_admin")
        return Rest(self.port, admin["token"])

    # -- its logs --------------------------------------------------------------------------------

    def _log_file(self, name: str) -> Path:
        return self.folder / "logs" / name

    def _log(self, name: str) -> str:
        file = self._log_file(name)
        return file.read_bytes()[-_SHOWN_BYTES:].decode(errors="replace") if file.exists() else ""

    def logs(self) -> list[tuple[str, str]]:
        files = sorted((self.folder / "logs").iterdir())
        return [(f"{file.name} of {self.folder.name}", self._log(file.name)) for file in files]
