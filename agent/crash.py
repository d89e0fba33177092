"""Named points where a test kills this process, as a power cut would between two steps.

A point does nothing unless ``GPUCOMMONS_CRASH_POINTS=1`` is set and either the environment's
``GPUCOMMONS_CRASH_AT`` or the file ``crash_at`` in the data folder names it, as ``name`` or, for
the third passing, ``name:3``. The file is removed before the process dies, so that the next one
lives; the process dies by SIGKILL and runs no handler.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from pathlib import Path

POINTS = frozenset(
    {
        "agent.answer.ready",
        "agent.claim.taken",
        "agent.cleanup.done",
        "agent.ended.before_store",
        "agent.ended.stored",
        "agent.event.read",
        "agent.folder.prepared",
        "agent.lease.before_store",
        "agent.lease.stored",
        "agent.leftovers.killed",
        "agent.refused.stored",
        "agent.spawn.done",
        "agent.started.before_store",
        "agent.started.stored",
        "agent.stop.marked",
        "agent.stop.signalled",
    }
)

_enabled = os.environ.get("GPUCOMMONS_CRASH_POINTS") == "1"
_file: Path | None = None
_passed: Counter[str] = Counter()
_lock = threading.Lock()


def arm(data: Path) -> None:
    """Lets the file ``crash_at`` of this data folder name the point."""
    global _file  # noqa: PLW0603 - one process has one place to die
    _file = data / "crash_at"


def _wanted() -> str | None:
    if _file is not None:
        try:
            return _file.read_text().strip()
        except FileNotFoundError:
            pass
    return os.environ.get("GPUCOMMONS_CRASH_AT")


def point(name: str) -> None:
    """Dies here if a test asked for it."""
    if not _enabled:
        return
    with _lock:
        wanted, _, passing = (_wanted() or "").partition(":")
        if wanted != name:
            return
        _passed[name] += 1
        if _passed[name] < int(passing or 1):
            return
        if _file is not None:
            _file.unlink(missing_ok=True)
        os.kill(os.getpid(), signal.SIGKILL)
