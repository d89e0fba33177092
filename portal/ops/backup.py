"""Backup and restore of everything that a portal must not lose.

A backup holds the database and the data folder: the nodes' authority (``pki``), the signing key,
stored logs. It does not hold what belongs to nodes, nor what a start makes anew.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path

from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from jobs.services.after_restore import doubt_everything
from portal.config import config
from portal.ops import archive, database_copy

#: In the data folder and not in a backup: the local node's own data, the database (which is copied
#: by its own means) and what a start makes anew. Whatever is not named here is kept.
NOT_KEPT = (
    "agent",
    "backups",
    "portal.sqlite3*",
    "portal.lock",
    "beat-schedule*",
    "crash_at",
    "tmp",
    "*.partial",
)
_DATABASE = "database"
_DATA = "data"
_KEY = "secret_key"


class Refused(Exception):
    """Nothing was changed; the text says why."""


def backup(file: Path, *, now: datetime) -> archive.Manifest:
    """Write a backup while the portal runs. Raises `database_copy.CopyFailed`."""
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=file.parent) as scratch:
        # The database first: a file that it knows of is there when the files are read.
        copy = Path(scratch) / _DATABASE
        database_copy.save(copy)
        members = {_DATABASE: copy, _KEY: _key_file()}
        for path in _kept_files():
            members[f"{_DATA}/{path.relative_to(config.data).as_posix()}"] = path
        return archive.write(
            file,
            members,
            made_at=now.isoformat(),
            database=database_copy.kind(),
            migrations=_applied(),
        )


def restore(file: Path, *, replace: bool, now: datetime) -> archive.Manifest:
    """Put a backup back into a portal that stands still.

    Raises `Refused`, `archive.BadArchive` or `database_copy.CopyFailed`; until the database has
    been replaced, nothing has changed.
    """
    config.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (
        _standing_still(),
        tempfile.TemporaryDirectory(prefix=".restore-", dir=config.data) as scratch,
    ):
        manifest = archive.unpack(file, Path(scratch))
        _check_fits(manifest, replace=replace)
        _check_key(Path(scratch) / _KEY)
        database_copy.load(Path(scratch) / _DATABASE)
        _put_files_back(Path(scratch), but=file)
        call_command("migrate", verbosity=0, interactive=False)
        doubt_everything(now=now)
    return manifest


def _kept_files() -> Iterator[Path]:
    key = _key_file()
    for entry in sorted(config.data.iterdir()):
        if any(fnmatch(entry.name, pattern) for pattern in NOT_KEPT) or entry.name.startswith("."):
            continue
        files = sorted(entry.rglob("*")) if entry.is_dir() else [entry]
        yield from (path for path in files if path.is_file() and path != key)


def _key_file() -> Path:
    return config.secret_key_file or config.data / "secret_key"


def _applied() -> list[str]:
    return sorted(
        f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()
    )


@contextmanager
def _standing_still() -> Iterator[None]:
    """The lock that `manage.py up` holds while it serves this folder."""
    with (config.data / "portal.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"A portal serves {config.data}. Stop it first.") from None
        yield


def _check_fits(manifest: archive.Manifest, *, replace: bool) -> None:
    if manifest.database != database_copy.kind():
        raise Refused(
            f"The backup is of {manifest.database}; this portal uses {database_copy.kind()}."
        )
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    newer = sorted(set(manifest.migrations) - known)
    if newer:
        raise Refused(
            "The backup was made by a newer version, which has changed the database by "
            f"{', '.join(newer)}. Install that version first."
        )
    others = database_copy.others_connected()
    if others:
        raise Refused(
            f"{others} other sessions use the database. Stop web, workers, beat, scheduler and "
            "watcher first."
        )
    if not replace and (database_copy.has_tables() or any(_kept_files())):
        raise Refused("This portal is not empty. With --yes its content is replaced.")


def _check_key(kept: Path) -> None:
    """A key that comes from outside cannot be replaced here, so it must be the right one."""
    given = config.secret_key_file
    if (
        given is not None
        and given.exists()
        and given.read_text().strip() != kept.read_text().strip()
    ):
        raise Refused(
            f"{given} is not the key of the backup, with which tokens and sessions are signed. "
            "Put the backup's member secret_key there first."
        )


def _put_files_back(unpacked: Path, *, but: Path) -> None:
    for path in list(_kept_files()):
        if path != but:
            path.unlink()
    data = unpacked / _DATA
    for source in sorted(data.rglob("*")) if data.exists() else ():
        if source.is_file():
            target = config.data / source.relative_to(data)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.move(source, target)
    if config.secret_key_file is None or not config.secret_key_file.exists():
        shutil.move(unpacked / _KEY, _key_file())
