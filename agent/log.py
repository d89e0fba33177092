"""Structured log lines: one JSON object a line on standard error."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from agent import clock

_lock = threading.Lock()


def info(event: str, **values: Any) -> None:
    _write("info", event, values)


def error(event: str, **values: Any) -> None:
    _write("error", event, values)


def _write(level: str, event: str, values: dict[str, Any]) -> None:
    line = {"at": clock.now().isoformat(), "level": level, "event": event, **values}
    with _lock:
        sys.stderr.write(json.dumps(line, default=str) + "\n")
        sys.stderr.flush()
