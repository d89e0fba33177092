"""A portal with something to lose, made and read by processes of its own.

`python -m tests.ops.portal fill FILE`: a job has ended, one runs, one starts, one waits; then a
backup. `... restore FILE`: the way back. `... show` (and `fill`) prints every row as Django gives
it, the files, and who can still sign in.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import django

django.setup()

from django.contrib.auth import authenticate  # noqa: E402 - needs the settings
from django.core.management import CommandError, call_command  # noqa: E402

import portal.celery  # noqa: E402, F401 - the outbox sends tasks by this application
from portal.accounts.tokens import authenticate_token  # noqa: E402
from portal.config import config  # noqa: E402
from portal.core.clock import utc_now  # noqa: E402
from portal.ops.demo import ensure_demo, publish  # noqa: E402
from tests.fakes.engine import FakeEngine  # noqa: E402


def fill() -> None:
    from tests.factories import Desk

    call_command("migrate", verbosity=0)
    desk = Desk(FakeEngine())
    ended = desk.running()
    desk.passes(minutes=90)
    desk.engine.end(desk.lease_of(ended), exit_code=3)
    desk.listen()
    desk.running(memory_mib=8192, compute_milli=250)
    desk.admitted(memory_mib=8192, compute_milli=250)
    desk.submit(memory_mib=8192, compute_milli=1000)
    (config.data / "logs").mkdir()
    (config.data / "logs" / "attempt.log").write_text("what a job wrote\n")
    publish(ensure_demo(url="http://127.0.0.1", now=utc_now()))


def fill_and_backup(file: str) -> dict[str, Any]:
    fill()
    call_command("backup", file, stdout=io.StringIO())
    return show()


def restore(file: str) -> None:
    call_command("restore", file, stdout=io.StringIO())
    call_command("prove", stdout=io.StringIO())


def refuse(*files: str) -> list[str]:
    """Why each file is not restored here; the first is asked for without ``--yes``."""
    said = []
    for number, file in enumerate(files):
        try:
            call_command("restore", file, yes=number > 0, stdout=io.StringIO())
        except CommandError as error:
            said.append(str(error))
    return said


def show() -> dict[str, Any]:
    rows = io.StringIO()
    call_command("dumpdata", stdout=rows)
    return {"rows": json.loads(rows.getvalue()), "files": _files(), **_doors()}


def _files() -> dict[str, str]:
    kept = [
        config.data / "demo.json",
        *(config.data / "logs").glob("*"),
        *(config.data / "pki").glob("*"),
    ]
    return {path.name: path.read_text() for path in kept if path.exists()}


def _doors() -> dict[str, Any]:
    user = json.loads((config.data / "demo.json").read_text())["users"][2]
    principal = authenticate_token(user["token"], utc_now())
    signed_in = authenticate(username=user["name"], password=user["password"])
    return {
        "token_of": principal.name if principal else None,
        "password_of": signed_in.get_username() if signed_in else None,
    }


if __name__ == "__main__":
    acts: dict[str, Callable[..., Any]] = {
        "fill": fill_and_backup,
        "restore": restore,
        "show": show,
        "refuse": refuse,
    }
    print(json.dumps(acts[sys.argv[1]](*sys.argv[2:])))  # noqa: T201 - read by the test
