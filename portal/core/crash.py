"""Named points at which the crash harness kills this process, as a power cut would.

A point stands at every commit and every step outside the database. Without
``GPUCOMMONS_CRASH_POINTS=1`` a point costs one comparison. With it the process ends itself by
SIGKILL at the point that ``<data>/crash_at`` names, ``name:3`` at its third passing from then on;
the file is removed first, so that the next start lives.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter

from portal.config import config

_passed: Counter[str] = Counter()
_mutex = threading.Lock()


def point(name: str) -> None:
    if not config.crash_points:
        return
    order = config.data / "crash_at"
    with _mutex:
        try:
            wanted, _, passing = order.read_text().strip().partition(":")
        except FileNotFoundError:
            return
        if wanted != name:
            return
        _passed[name] += 1
        if _passed[name] < int(passing or 1):
            return
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
