"""Real PostgreSQL and Redis for one test run: started on free ports, ended with the run.

They listen on loopback only, keep their files in one temporary folder, trade durability for speed
and die with the process that started them, also when that is killed.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import psycopg
import redis

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 10
PORT_ATTEMPTS = 5
REDIS_DATABASES = 4096
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


class Account(NamedTuple):
    """The user that a program runs as; None keeps the own one."""

    user: int | None
    group: int | None
    extra_groups: list[int] | None


OWN_ACCOUNT = Account(None, None, None)


class ServiceMissingError(Exception):
    """A program that the tests start is not installed."""


class ServiceFailedError(Exception):
    """A program was started and did not become ready."""


class Services:
    """Starts both programs on entry and ends them on exit.

    `folder` must be short (a unix socket's path has at most 107 bytes) and empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self.postgres_port = 0
        self.redis_port = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.postgres_port = stack.enter_context(_postgres(self._folder / "postgres")).port
            self.redis_port = stack.enter_context(_redis(self._folder / "redis")).port
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def database_url(port: int, name: str) -> str:
    return f"postgresql://gpucommons:gpucommons@127.0.0.1:{port}/{name}"


def redis_url(port: int, number: int) -> str:
    return f"redis://127.0.0.1:{port}/{number % REDIS_DATABASES}"


def create_database(port: int, name: str) -> str:
    with psycopg.connect(database_url(port, "postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return database_url(port, name)


class _Program:
    """One server process on a free port, ready on entry and gone on exit."""

    def __init__(
        self,
        *,
        log: Path,
        command: Callable[[int], list[str]],
        ready: Callable[[int], None],
        stop_signal: signal.Signals,
        account: Account,
    ) -> None:
        self._log = log
        self._command = command
        self._ready = ready
        self._stop_signal = stop_signal
        self._account = account
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        for _ in range(PORT_ATTEMPTS):
            self.port = _free_port()
            self._process = self._start()
            if self._becomes_ready(self._process):
                return self
            self._stop()
        raise ServiceFailedError(
            f"{self._command(0)[0]} did not start:\n{self._log.read_text()[-2000:]}"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command(self.port),
                cwd=self._log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent(self._stop_signal),  # noqa: PLW1509 - no threads yet
                user=self._account.user,
                group=self._account.group,
                extra_groups=self._account.extra_groups,
            )

    def _becomes_ready(self, process: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + START_TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                self._ready(self.port)
            except (OSError, psycopg.OperationalError, redis.RedisError):
                time.sleep(0.05)
            else:
                return True
        return False

    def _stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(self._stop_signal)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _postgres(folder: Path) -> _Program:
    binaries = _postgres_binaries()
    account = _unprivileged()
    data = folder / "data"
    folder.mkdir()
    if account.user is not None and account.group is not None:
        os.chown(folder, account.user, account.group)
    with (folder / "log").open("wb") as log:
        subprocess.run(
            [
                str(binaries / "initdb"),
                f"--pgdata={data}",
                "--username=gpucommons",
                "--auth=trust",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
            check=True,
        )
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "max_connections": "200",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "timezone": "UTC",
    }
    flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return _Program(
        log=folder / "log",
        command=lambda port: [str(binaries / "postgres"), "-D", str(data), "-p", str(port), *flags],
        ready=_postgres_answers,
        stop_signal=signal.SIGQUIT,
        account=account,
    )


def _redis(folder: Path) -> _Program:
    program = shutil.which("redis-server")
    if program is None:
        raise ServiceMissingError("redis-server")
    folder.mkdir()
    settings = {
        "--bind": "127.0.0.1",
        "--databases": str(REDIS_DATABASES),
        "--save": "",
        "--appendonly": "no",
        "--dir": str(folder),
    }
    flags = [part for pair in settings.items() for part in pair]
    return _Program(
        log=folder / "log",
        command=lambda port: [program, "--port", str(port), *flags],
        account=OWN_ACCOUNT,
        ready=_redis_answers,
        stop_signal=signal.SIGTERM,
    )


def _postgres_answers(port: int) -> None:
    psycopg.connect(database_url(port, "postgres"), connect_timeout=2).close()


def _redis_answers(port: int) -> None:
    with redis.Redis(port=port, socket_timeout=2) as client:
        client.ping()


def _postgres_binaries() -> Path:
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parents[1].name),
    )
    if installed:
        return installed[-1].parent
    found = shutil.which("initdb")
    if found is None:
        raise ServiceMissingError("PostgreSQL (initdb, postgres)")
    return Path(found).parent


def _unprivileged() -> Account:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return OWN_ACCOUNT
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return Account(entry.pw_uid, entry.pw_gid, [])


def _die_with_parent(stop_signal: signal.Signals) -> Callable[[], None]:
    """Runs in the child after its user has changed, which would clear the setting."""

    def ask() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, stop_signal)

    return ask


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
