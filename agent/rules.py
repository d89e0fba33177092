"""What an order about a lease means, given what is known of the lease. Pure."""

from __future__ import annotations

import json
import re
from enum import StrEnum

from agent.errors import Refused
from agent.runtime import files
from agent.store import Lease
from agent.wire import Desired, LeaseSpec, Observed

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Action(StrEnum):
    REPEAT = "repeat"
    BEGIN = "begin"
    STOP = "stop"
    NOTE = "note"


def canonical(spec: LeaseSpec) -> str:
    """One text for every order that means the same."""
    return json.dumps(spec.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def is_lease_id(text: str) -> bool:
    """Whether a text can name a lease; it also names folders."""
    return _ID.fullmatch(text) is not None


def check(spec: LeaseSpec) -> None:
    """Raises `Refused` for an order that no agent could carry out."""
    if not is_lease_id(spec.lease_id):
        raise _invalid("a lease id is 1 to 64 letters, digits, - and _", "lease_id")
    if spec.desired is Desired.ABSENT:
        return
    if spec.slice is None or spec.process is None:
        missing = "slice" if spec.slice is None else "process"
        raise _invalid(f"a lease that should run names its {missing}", missing)
    if any("\0" in word for word in spec.process.argv) or not spec.process.argv[0]:
        raise _invalid("an argument holds a NUL or the command is empty", "process.argv")
    try:
        files.check(spec.process.files)
    except files.UnsafeFiles as error:
        raise _invalid(str(error), "process.files") from error
    for key, value in spec.process.env.items():
        if not key or "=" in key or "\0" in key + value:
            raise _invalid(
                "a variable's name is empty or holds =, or a NUL is in it",
                "process.env",
            )


def _invalid(detail: str, field: str) -> Refused:
    return Refused(422, "agent.invalid", detail, field=field)


def decide(known: Lease | None, spec: LeaseSpec, body: str) -> Action:
    """What to do about an order. Raises `Refused` for a stale or a contradicting one."""
    wanted = Action.BEGIN if spec.desired is Desired.RUNNING else Action.NOTE
    if known is None:
        return wanted
    if spec.generation < known.generation:
        raise Refused(
            409,
            "agent.stale_generation",
            f"generation {spec.generation} is older than {known.generation}",
            field="generation",
            hint="read the lease and decide again",
        )
    if spec.generation == known.generation:
        if body == known.body:
            return Action.REPEAT
        raise Refused(
            409,
            "agent.generation_reused",
            f"generation {spec.generation} was given with another body",
            field="generation",
            hint="use a higher generation for another order",
        )
    if known.observed is Observed.ABSENT:
        return wanted
    if not known.active:
        return Action.NOTE
    if spec.desired is Desired.ABSENT:
        return Action.STOP
    if start_texts(spec) != (known.slice, known.process):
        raise Refused(
            409,
            "agent.lease_started",
            "a lease starts once, with one slice and one process",
            field="process" if start_texts(spec)[0] == known.slice else "slice",
            hint="end this lease and make another",
        )
    return Action.NOTE


def start_texts(spec: LeaseSpec) -> tuple[str | None, str | None]:
    """Slice and process as they are stored."""
    return (
        None if spec.slice is None else spec.slice.model_dump_json(),
        None if spec.process is None else spec.process.model_dump_json(),
    )
