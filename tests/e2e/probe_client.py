"""The test's end of `tests.e2e.probe`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Probe:
    """Asks the probe's process; one question at a time."""

    def __init__(self, environment: Mapping[str, str], data: Path, output: Path) -> None:
        wanted = {**environment, "GPUCOMMONS_DATA": str(data)}
        wanted.pop("GPUCOMMONS_CRASH_POINTS", None)
        with output.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.probe"],
                cwd=ROOT,
                env=wanted,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, question: str, **details: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps({"question": question, **details}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise AssertionError("the probe ended; its output lies beside the portal's")
        answer = json.loads(line)
        if "error" in answer:
            raise AssertionError(f"the probe failed: {answer['error']}")
        return answer["answer"]

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
