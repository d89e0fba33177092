"""A consistent copy of the database, taken while the portal runs, and how it is put back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from django.conf import settings
from django.db import connection

_EMPTY_THE_SCHEMA = """
DO $$ DECLARE wanted record; BEGIN
  FOR wanted IN SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() LOOP
    EXECUTE format('DROP TABLE %I CASCADE', wanted.name);
  END LOOP;
  FOR wanted IN SELECT oid::regprocedure AS name FROM pg_proc
      WHERE pronamespace = current_schema()::regnamespace LOOP
    EXECUTE format('DROP ROUTINE %s CASCADE', wanted.name);
  END LOOP;
END $$;
"""


class CopyFailed(Exception):
    """The database's own tool failed, or is not there."""


def kind() -> str:
    return connection.vendor


def has_tables() -> bool:
    return bool(connection.introspection.table_names())


def others_connected() -> int:
    """How many other sessions use the database; SQLite cannot tell."""
    if kind() == "sqlite":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


def save(file: Path) -> None:
    """Write the copy. The portal may go on working meanwhile."""
    if kind() == "sqlite":
        with closing(sqlite3.connect(_sqlite_file(), timeout=30)) as source:
            source.execute("VACUUM INTO ?", (str(file),))
        return
    with _address() as address:
        _run(
            [
                "pg_dump",
                "--format=custom",
                "--no-owner",
                "--no-privileges",
                f"--file={file}",
                address,
            ]
        )


def load(file: Path) -> None:
    """Put the copy in the place of what the database holds: all of it or, on failure, nothing."""
    if kind() == "sqlite":
        _load_sqlite(file)
        return
    script = file.with_name("database.sql")
    _run(["pg_restore", "--no-owner", "--no-privileges", f"--file={script}", str(file)])
    connection.close()
    with _address() as address:
        _run(
            ["psql", "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1",
             f"--command={_EMPTY_THE_SCHEMA}", f"--file={script}", f"--dbname={address}"]
        )  # fmt: skip


def _load_sqlite(file: Path) -> None:
    with closing(sqlite3.connect(file)) as copy:
        (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
    if verdict != "ok":
        raise CopyFailed(f"the copy of the database is damaged: {verdict}")
    connection.close()
    target = _sqlite_file()
    partial = target.with_name(f"{target.name}.restored")
    shutil.copyfile(file, partial)
    partial.chmod(0o600)
    with partial.open("rb") as written:
        os.fsync(written.fileno())
    # The old log belongs to the old file: were it left, it would be replayed into the new one.
    for ending in ("-wal", "-shm"):
        target.with_name(target.name + ending).unlink(missing_ok=True)
    partial.replace(target)


def _sqlite_file() -> Path:
    return Path(settings.DATABASES["default"]["NAME"])


@contextmanager
def _address() -> Iterator[str]:
    """The database's address for its tools; the password goes by a file, not by an argument."""
    own = settings.DATABASES["default"]
    with tempfile.NamedTemporaryFile("w", prefix="gpucommons-") as passwords:
        password = own["PASSWORD"].replace("\\", r"\\").replace(":", r"\:")
        passwords.write(f"*:*:*:*:{password}\n")
        passwords.flush()
        place = f"{quote(own['USER'])}@{own['HOST']}" + (f":{own['PORT']}" if own["PORT"] else "")
        query = urlencode({"passfile": passwords.name})
        yield f"postgresql://{place}/{quote(own['NAME'])}?{query}"


def _run(command: Sequence[str]) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise CopyFailed(f"{command[0]} is not on the PATH (on Debian: postgresql-client)")
    done = subprocess.run(
        [program, *command[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CopyFailed(f"{command[0]} failed: {done.stderr.strip()[-2000:]}")
