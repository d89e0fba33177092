"""Jobs that write down themselves when they ran."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

#: The shell's own clock, first and last statement: no interpreter's start is measured.
_SCRIPT = (
    'a=$EPOCHREALTIME; echo "start $a" >>"$0" || exit 99; sleep "$1"; '
    'echo "end $EPOCHREALTIME" >>"$0" || exit 99; exit "$2"'
)


def command(witness: Path, *, seconds: float = 0.3, code: int = 0) -> list[str]:
    """Sleeps, then exits with the code; each run adds to the witness file."""
    return ["bash", "-c", _SCRIPT, str(witness), str(seconds), str(code)]


def new_witness(folder: Path) -> Path:
    """A file that no other job writes; each attempt may run as another user."""
    path = folder / uuid.uuid4().hex
    path.touch()
    path.chmod(0o666)
    return path


@dataclass(frozen=True)
class Witness:
    """Moments in microseconds since 1970 that a job wrote."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def seconds(self) -> float:
        assert len(self.starts) == len(self.ends) == 1, self
        return (self.ends[0] - self.starts[0]) / 1_000_000


def read_witness(path: Path) -> Witness:
    lines = path.read_text().splitlines() if path.exists() else []
    moments = [
        (word, int(text.replace(".", ""))) for word, text in (line.split() for line in lines)
    ]
    return Witness(
        tuple(at for word, at in moments if word == "start"),
        tuple(at for word, at in moments if word == "end"),
    )
