"""What stands beside figures so that they mean something: when, where, under which load, how."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MEASUREMENTS = Path(__file__).resolve().parent.parent / "docs" / "measurements"


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least ``percent`` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def circumstances(module: str) -> dict[str, Any]:
    """Taken before the run: the load average is then that of others."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(module, sys.argv[1:]),
        "machine": {
            "cpu": _cpu_model(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(
                os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1
            ),
            "kernel": platform.release(),
            "python": platform.python_version(),
        },
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
    }


def command_line(module: str, arguments: Sequence[str]) -> str:
    """How to repeat the run; folders of one machine are written as DIR."""
    words = ["DIR" if word.startswith("/") else word for word in arguments]
    return " ".join(["python", "-m", module, *words])


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")


def say(text: str) -> None:
    print(text, flush=True)


def print_figures(figures: dict[str, Any]) -> None:
    """The last line of a benchmark."""
    say(json.dumps(figures))
