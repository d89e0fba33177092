"""What every long-running command does: it names itself, shows that it turns, and ends cleanly."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from argparse import ArgumentParser
from pathlib import Path

ALIVE_EVERY_S = 5.0


class Stop(threading.Event):
    """Set by SIGTERM and SIGINT. Each look at it touches the alive file: the loop turns."""

    def __init__(self, alive: Path | None) -> None:
        super().__init__()
        self._alive = alive
        self._touched = -ALIVE_EVERY_S
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.set())

    def is_set(self) -> bool:
        if self._alive is not None and time.monotonic() - self._touched >= ALIVE_EVERY_S:
            self._alive.touch()
            self._touched = time.monotonic()
        return super().is_set()


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--alive-file", type=Path, help="touched every few seconds while the loop turns"
    )


def owner() -> str:
    """The name of this process in row leases."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}"
