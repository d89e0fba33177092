"""The file that a backup is: one tar with a manifest that names and sums all of its members."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

FORMAT = 1
_MANIFEST = "manifest.json"
_CHUNK = 1024 * 1024


class BadArchive(Exception):
    """The file is no backup, or not the one that was written."""


@dataclass(frozen=True)
class Manifest:
    """``migrations`` are the names, as ``app.name``, that the database had applied."""

    format: int
    made_at: str
    database: str
    migrations: tuple[str, ...]
    sha256: Mapping[str, str]


def write(
    file: Path,
    members: Mapping[str, Path],
    *,
    made_at: str,
    database: str,
    migrations: Iterable[str],
) -> Manifest:
    """Write an archive whole: it has its name only once it is complete. Mode 0600."""
    partial = file.with_name(f"{file.name}.partial")
    partial.unlink(missing_ok=True)
    sums: dict[str, str] = {}
    with (
        open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw,
        tarfile.open(fileobj=raw, mode="w:gz", compresslevel=6) as tar,
    ):
        for name, path in sorted(members.items()):
            with path.open("rb") as content:
                info = tarfile.TarInfo(name)
                info.size, info.mode = os.fstat(content.fileno()).st_size, 0o600
                info.mtime = int(os.fstat(content.fileno()).st_mtime)
                summing = _Summing(content, info.size)
                tar.addfile(info, summing)
                sums[name] = summing.digest()
        manifest = Manifest(FORMAT, made_at, database, tuple(migrations), sums)
        text = json.dumps(asdict(manifest), indent=1).encode()
        info = tarfile.TarInfo(_MANIFEST)
        info.size, info.mode = len(text), 0o600
        tar.addfile(info, io.BytesIO(text))
        tar.close()
        raw.flush()
        os.fsync(raw.fileno())
    partial.replace(file)
    return manifest


class _Summing:
    """Reads at most ``size`` bytes of a file that may still grow, and sums them up."""

    def __init__(self, content: io.BufferedReader, size: int) -> None:
        self._content, self._left = content, size
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._content.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        self._hash.update(data)
        return data

    def digest(self) -> str:
        return self._hash.hexdigest()


def unpack(file: Path, folder: Path) -> Manifest:
    """Unpack into an empty folder and check every sum. Raises `BadArchive`."""
    sums: dict[str, str] = {}
    try:
        with tarfile.open(file, "r:gz") as tar:
            for info in tar:
                sums[info.name] = _unpack_member(tar, info, folder)
        text = (folder / _MANIFEST).read_text()
        fields = json.loads(text)
        manifest = Manifest(**{**fields, "migrations": tuple(fields["migrations"])})
    except (tarfile.TarError, EOFError, OSError, ValueError, TypeError, KeyError) as error:
        raise BadArchive(f"{file} is no readable backup: {error}") from error
    sums.pop(_MANIFEST)
    if manifest.format != FORMAT:
        raise BadArchive(f"{file} has format {manifest.format}; this version reads {FORMAT}.")
    if sums != dict(manifest.sha256):
        wrong = sorted({name for name, _ in sums.items() ^ dict(manifest.sha256).items()})
        raise BadArchive(f"{file} is damaged: {', '.join(wrong)}")
    return manifest


def _unpack_member(tar: tarfile.TarFile, info: tarfile.TarInfo, folder: Path) -> str:
    path = PurePosixPath(info.name)
    content = tar.extractfile(info) if info.isfile() else None
    if content is None or path.is_absolute() or ".." in path.parts:
        raise BadArchive(f"{info.name!r} is no member of a backup.")
    target = folder / path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    summed = hashlib.sha256()
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while chunk := content.read(_CHUNK):
            summed.update(chunk)
            out.write(chunk)
    return summed.hexdigest()
