"""Files that an order brings, written into the work folder before its process begins."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from pathlib import Path

from agent.wire import MAX_FILES, MAX_FILES_BYTES, FileSpec

_LONGEST_PART = 255
_LONGEST_PATH = 1024


class UnsafeFiles(Exception):
    """The files cannot be written safely; the text says why."""


def check(files: Sequence[FileSpec]) -> None:
    """Raises `UnsafeFiles` for paths that leave the folder or clash, and for too much."""
    if len(files) > MAX_FILES:
        raise UnsafeFiles(f"there are {len(files)} files; at most {MAX_FILES} are taken")
    if sum(len(_content(file)) for file in files) > MAX_FILES_BYTES:
        raise UnsafeFiles(f"the files have more than {MAX_FILES_BYTES} bytes together")
    paths = {_parts(file.path) for file in files}
    if len(paths) < len(files):
        raise UnsafeFiles("a path stands twice")
    for path in paths:
        if any(path[:length] in paths for length in range(1, len(path))):
            raise UnsafeFiles(f"{'/'.join(path)!r} lies in a file")


def write(work: Path, files: Sequence[FileSpec], uid: int | None) -> None:
    """Write them into a folder that nobody else has had in hand. Raises `OSError`."""
    for file in files:
        *folders, name = _parts(file.path)
        place = work
        for part in folders:
            place = place / part
            place.mkdir(mode=0o700, exist_ok=True)
            _own(place, uid)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(place / name, flags, 0o600), "wb") as target:
            target.write(_content(file))
            os.fchmod(target.fileno(), file.mode)
        _own(place / name, uid)


def _own(path: Path, uid: int | None) -> None:
    if uid is not None:
        os.chown(path, uid, uid, follow_symlinks=False)


def _content(file: FileSpec) -> bytes:
    try:
        return base64.b64decode(file.content_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnsafeFiles(f"the content of {file.path[:100]!r} is no base64") from error


def _parts(path: str) -> tuple[str, ...]:
    parts = tuple(path.split("/"))
    if (
        not path.isprintable()
        or len(path.encode()) > _LONGEST_PATH
        or any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_PART for part in parts)
    ):
        raise UnsafeFiles(f"{path[:100]!r} is no path below the work folder")
    return parts
