"""Fixtures for every test. The choice of the backend is made in `tests/plugin.py`."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.backends.sqlite3.base import DatabaseWrapper

from tests.plugin import new_service_addresses, run_folder

_service_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.config.getoption("--backend")
    return name


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, backend: str
) -> None:
    """SQLite in a file, as in the product: in memory it has other locks and no write-ahead log."""
    if backend == "sqlite":
        file = Path(os.environ["GPUCOMMONS_DATA"]) / "test.sqlite3"
        settings.DATABASES["default"].setdefault("TEST", {})["NAME"] = str(file)


@pytest.fixture(scope="session", autouse=True)
def _flush_append_only_tables() -> Iterator[None]:
    """Let tests that commit empty the append-only tables; PostgreSQL's TRUNCATE fires no trigger.

    SQLite empties by DELETE, so its triggers go before and come back after, in one transaction.
    """
    operations = DatabaseWrapper.ops_class
    plain_flush = operations.sql_flush

    def sql_flush(self: Any, *args: Any, **options: Any) -> list[str]:
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            triggers = cursor.fetchall()
        drop = [f"DROP TRIGGER {name}" for name, _ in triggers]
        return [*drop, *plain_flush(self, *args, **options), *(sql for _, sql in triggers)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "sql_flush", sql_flush)
        yield


@pytest.fixture
def short_path() -> Iterator[Path]:
    """An empty folder whose path is short enough for unix sockets."""
    with tempfile.TemporaryDirectory(dir=run_folder(), ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def portal_environment(short_path: Path) -> dict[str, str]:
    """Environment of a portal that a test starts as a process: own folder, database and broker."""
    data = short_path / "data"
    data.mkdir(mode=0o700)
    return {
        **os.environ,
        "GPUCOMMONS_DATA": str(data),
        **new_service_addresses(next(_service_numbers)),
    }
