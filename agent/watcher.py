"""One thread that learns of changes at once: supervisors' datagrams and their deaths.

Nothing depends on it: every second it also asks for a look at everything.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent import log

SCAN_EVERY_S = 1.0
_DATAGRAM_BYTES = 128


class Watcher:
    """Calls ``changed(lease_id)`` and ``scan()`` from its own thread, one at a time."""

    def __init__(
        self, path: Path, *, changed: Callable[[str], None], scan: Callable[[], None]
    ) -> None:
        self._changed = changed
        self._scan = scan
        self._lock = threading.Lock()
        self._supervisors: dict[int, tuple[str, int]] = {}
        self._watched: set[str] = set()
        self._stopping = False
        self._socket = _bind(path)
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll = select.epoll()
        self._epoll.register(self._socket.fileno(), select.EPOLLIN)
        self._epoll.register(self._wake_fd, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; supervisors live on."""
        self._stopping = True
        os.eventfd_write(self._wake_fd, 1)
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            for fd in self._supervisors:
                os.close(fd)
            self._supervisors.clear()
        self._epoll.close()
        os.close(self._wake_fd)
        self._socket.close()

    def watching(self, lease_id: str) -> bool:
        """Whether the lease has a supervisor that was alive at the last look."""
        with self._lock:
            return lease_id in self._watched

    def watch(self, lease_id: str, pid: int) -> None:
        """Reports the supervisor's death as a change; reaps it if it is a child."""
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return
        with self._lock:
            self._supervisors[fd] = (lease_id, pid)
            self._watched.add(lease_id)
        self._epoll.register(fd, select.EPOLLIN)

    def _forget(self, fd: int) -> str | None:
        with self._lock:
            known = self._supervisors.pop(fd, None)
            if known is None:
                return None
            lease_id, pid = known
            self._watched.discard(lease_id)
        self._epoll.unregister(fd)
        os.close(fd)
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return lease_id

    def _datagrams(self) -> list[str]:
        found = []
        with suppress(BlockingIOError):
            while True:
                found.append(self._socket.recv(_DATAGRAM_BYTES).decode(errors="replace"))
        return found

    def _run(self) -> None:
        deadline = time.monotonic() + SCAN_EVERY_S
        changed: dict[str, None] = {}
        while not self._stopping:
            wait_s = 0.0 if changed else max(0.0, deadline - time.monotonic())
            for fd, _ in self._epoll.poll(wait_s):
                if fd == self._socket.fileno():
                    changed |= dict.fromkeys(self._datagrams())
                elif fd != self._wake_fd and (lease_id := self._forget(fd)) is not None:
                    changed[lease_id] = None
            if self._stopping:
                return
            if changed:
                lease_id = next(iter(changed))
                del changed[lease_id]
                self._guard(partial(self._changed, lease_id))
            if time.monotonic() >= deadline:
                self._guard(self._scan)
                deadline = time.monotonic() + SCAN_EVERY_S

    def _guard(self, call: Callable[[], None]) -> None:
        """A failure is logged and met again at the next scan; the thread goes on."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the thread must go on
            log.error("watcher.failed", error=repr(error))


def _bind(path: Path) -> socket.socket:
    """Binds through the folder's descriptor, since a socket's path holds 108 bytes only."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        path.unlink(missing_ok=True)
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
    path.chmod(0o600)
    listener.setblocking(False)
    return listener
