"""Chooses the database and broker of a test run before Django reads its settings.

`--backend sqlite` (default) is the embedded product: SQLite and the memory broker.
`--backend postgres` starts real PostgreSQL and Redis once per run; each xdist worker has databases
of its own in them.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.services import ServiceMissingError, Services, create_database, database_url, redis_url

FOLDER = "GPUC_TEST_FOLDER"
POSTGRES_PORT = "GPUC_TEST_POSTGRES_PORT"
REDIS_PORT = "GPUC_TEST_REDIS_PORT"
REDIS_NUMBERS_PER_WORKER = 256

_cleanup = ExitStack()
atexit.register(_cleanup.close)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="database and broker of the run (default: sqlite with the memory broker)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _prepare_run(early_config.known_args_namespace.backend)
    data = run_folder() / worker_name()
    data.mkdir(mode=0o700)
    os.environ["GPUCOMMONS_DATA"] = str(data)
    os.environ.update(service_addresses("gpucommons", 0))
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    return (yield)


def run_folder() -> Path:
    """A short path that lives as long as the run and that other users may pass through."""
    return Path(os.environ[FOLDER])


def worker_name() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


def service_addresses(database: str, redis_number: int) -> dict[str, str]:
    """What the product reads to find its database and broker; empty means the embedded ones."""
    if POSTGRES_PORT not in os.environ:
        return {"GPUCOMMONS_DATABASE_URL": "", "GPUCOMMONS_REDIS_URL": ""}
    worker_number = int(worker_name().removeprefix("gw").replace("main", "0"))
    return {
        "GPUCOMMONS_DATABASE_URL": database_url(int(os.environ[POSTGRES_PORT]), database),
        "GPUCOMMONS_REDIS_URL": redis_url(
            int(os.environ[REDIS_PORT]), worker_number * REDIS_NUMBERS_PER_WORKER + redis_number
        ),
    }


def new_service_addresses(number: int) -> dict[str, str]:
    """Addresses of an empty database and broker, the `number`th that this process asks for."""
    name = f"{worker_name()}_{number}"
    if POSTGRES_PORT in os.environ:
        create_database(int(os.environ[POSTGRES_PORT]), name)
    return service_addresses(name, number)


def _prepare_run(backend: str) -> None:
    for name in [name for name in os.environ if name.startswith("GPUCOMMONS_")]:
        del os.environ[name]
    # unix sockets need shorter paths than TMPDIR may give
    folder = Path(tempfile.mkdtemp(prefix="gpuc-", dir="/tmp"))
    folder.chmod(0o711)
    _cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
    os.environ[FOLDER] = str(folder)
    if backend == "postgres":
        try:
            services = _cleanup.enter_context(Services(folder))
        except ServiceMissingError as missing:
            raise pytest.UsageError(
                f"{missing} is not installed; deploy/scripts/install-test-services.sh installs it"
            ) from None
        create_database(services.postgres_port, "gpucommons")
        os.environ[POSTGRES_PORT] = str(services.postgres_port)
        os.environ[REDIS_PORT] = str(services.redis_port)
