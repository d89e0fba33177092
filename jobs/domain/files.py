"""Files that come with a submission: which names and sizes are taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_FILES = 1000
MAX_FILES_BYTES = 1024 * 1024
MAX_SCRIPT_BYTES = 256 * 1024
_LONGEST_PART = 255
_LONGEST_PATH = 1024


@dataclass(frozen=True)
class JobFile:
    """A file for the work folder: a relative path and its bytes."""

    path: str
    content: bytes
    mode: int = 0o644


def fault(files: Sequence[JobFile]) -> str | None:
    """What is wrong with the files, as a sentence; None: nothing."""
    if len(files) > MAX_FILES:
        return f"There are {len(files)} files; at most {MAX_FILES} are taken."
    size = sum(len(file.content) for file in files)
    if size > MAX_FILES_BYTES:
        return f"The files have {size} bytes together; at most {MAX_FILES_BYTES} are taken."
    paths = set()
    for file in files:
        if not _is_safe(file.path):
            return f"{file.path[:100]!r} is no relative path of a file."
        if file.path in paths:
            return f"{file.path[:100]!r} stands twice."
        paths.add(file.path)
    for path in paths:
        parts = path.split("/")
        if any("/".join(parts[:length]) in paths for length in range(1, len(parts))):
            return f"{path[:100]!r} lies in a folder that is a file."
    return None


def _is_safe(path: str) -> bool:
    return (
        path.isprintable()
        and len(path.encode(errors="replace")) <= _LONGEST_PATH
        and all(
            part not in ("", ".", "..") and len(part.encode(errors="replace")) <= _LONGEST_PART
            for part in path.split("/")
        )
    )
