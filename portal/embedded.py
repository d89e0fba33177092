"""The one-process default: web, worker, scheduling and watching in threads, plus one agent.

`manage.py up` runs it. Everything lies in one data folder, which one portal at a time may use.
"""

from __future__ import annotations

import fcntl
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import structlog
import uvicorn
from celery.apps.worker import Worker
from celery.exceptions import SecurityWarning
from django.core.management import call_command
from django.db import close_old_connections

from jobs.services.engine import agent_engine
from jobs.services.loops import run_scheduler
from jobs.services.watch import watch_nodes
from portal.asgi import application
from portal.celery import PERIODIC, app
from portal.config import config
from portal.core.clock import utc_now
from portal.fleet.selectors import fleet_view
from portal.ops import demo
from portal.ops.local_agent import LocalAgent

_log = structlog.get_logger(__name__)
OWNER = "embedded"
NODE_NAME = "local"
READY_TIMEOUT_S = 120
STOP_TIMEOUT_S = 10


class AlreadyRunning(Exception):
    """Another portal uses the data folder."""


class PortTaken(Exception):
    """Something else listens at the address."""


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        return f"http://{host}:{self.port}"


def up(address: Address, *, announce: Callable[[demo.Demo], None]) -> None:
    """Serve until SIGINT or SIGTERM; then stop everything, jobs included, and return."""
    with _lock_data(config.data):
        listener = _listen(address)
        call_command("migrate", verbosity=0, interactive=False)
        app.loader.import_default_modules()
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        shown = demo.ensure_demo(url=address.url, now=utc_now())
        server = _Web(listener)
        agent = LocalAgent(config.data / "agent", NODE_NAME)
        loops = _Loops()
        worker = _Worker()
        server.start()
        try:
            agent.ensure(portal_url=address.url, actor=shown.admin, now=utc_now())
            if _wait_ready(stop, agent):
                announce(demo.publish(shown))
            while not stop.wait(0.5):
                agent.restart_if_dead()
        finally:
            _log.info("embedded.stopping")
            # Nothing new is placed, then the ends of what ran are still taken in.
            loops.stop_placing()
            agent.stop()
            loops.stop()
            server.stop()
            worker.stop()


def _lock_data(data: Path) -> IO[str]:
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = (data / "portal.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise AlreadyRunning(str(data)) from None
    return lock


def _listen(address: Address) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # uvicorn writes head and body apart: with Nagle's algorithm each answer waits 40 ms between.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        raise PortTaken(f"{address.host}:{address.port}: {error.strerror}") from error
    listener.listen(512)
    return listener


class _Web:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._server = uvicorn.Server(
            uvicorn.Config(
                application, log_config=None, access_log=False, timeout_graceful_shutdown=2
            )
        )
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    def _run(self) -> None:
        self._server.run(sockets=[self._listener])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=STOP_TIMEOUT_S)


class _Worker:
    """The Celery worker in a thread of this process, on the in-process broker."""

    def __init__(self) -> None:
        # Messages are JSON and come from this process alone, so root is no danger here.
        warnings.filterwarnings("ignore", category=SecurityWarning)
        self._worker = Worker(
            app=app,
            pool="threads",
            concurrency=config.worker_threads,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            quiet=True,
            loglevel="WARNING",
        )
        self._thread = threading.Thread(target=self._worker.start, name="worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._worker.stop(in_sighandler=False)
        self._thread.join(timeout=STOP_TIMEOUT_S)


class _Loops:
    """Scheduling, watching and what runs at an interval, each in a thread."""

    def __init__(self) -> None:
        self._placing_stop = threading.Event()
        self._stop = threading.Event()
        self._placing = _thread("scheduler", lambda: run_scheduler(OWNER, self._placing_stop))
        self._others = [
            _thread("watcher", lambda: watch_nodes(agent_engine(), self._stop)),
            _thread("periodic", lambda: _run_periodic(self._stop)),
        ]

    def stop_placing(self) -> None:
        self._placing_stop.set()
        self._placing.join(timeout=STOP_TIMEOUT_S)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._others:
            thread.join(timeout=STOP_TIMEOUT_S)


def _thread(name: str, loop: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=loop, name=name, daemon=True)
    thread.start()
    return thread


def _run_periodic(stop: threading.Event) -> None:
    """What Celery's beat does in production."""
    due = {entry.task: time.monotonic() + entry.every_s for entry in PERIODIC}
    while not stop.wait(0.25):
        for entry in PERIODIC:
            if time.monotonic() < due[entry.task]:
                continue
            due[entry.task] = time.monotonic() + entry.every_s
            try:
                app.tasks[entry.task].run()
            except Exception:  # noqa: BLE001 - one failure may not end the others
                _log.exception("periodic.failed", task=entry.task)
            finally:
                close_old_connections()


def _wait_ready(stop: threading.Event, agent: LocalAgent) -> bool:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline and not stop.is_set():
        if any(node.name == NODE_NAME and node.ready for node in fleet_view()):
            return True
        agent.restart_if_dead()
        stop.wait(0.05)
    if not stop.is_set():
        _log.error("embedded.node_not_ready", node=NODE_NAME, timeout_s=READY_TIMEOUT_S)
    return False
