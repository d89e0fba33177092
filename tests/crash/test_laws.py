"""Each law finds what it is there for, and nothing in sound records."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.jobs import Witness
from tests.e2e.laws import Expected, Records, violations

START, END = 1_000_000_000, 1_001_000_000
WISH = Expected("job", "file", frozenset({("SUCCEEDED", 0)}))
Tables = dict[str, Any]


def lease(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": name,
        "attempt_id": f"attempt of {name}",
        "gpu__uuid": "gpu",
        "slice_id": f"slice of {name}",
        "slice__kind": "share",
        "memory_mib": 600,
        "compute_milli": 600,
        "generation": 1,
        "created_at": START - 1000,
        "started_at": START,
        "ended_at": END,
        "released_at": END + 1000,
        **changes,
    }


def seen(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "lease_id": name,
        "generation": 1,
        "observed": "ended",
        "end_reason": "exited",
        "exit_code": 0,
        "gpu_uuid": "gpu",
        "memory_mib": 600,
        "compute_milli": 600,
        "started_wall_ns": START * 1000,
        "started_mono_ns": 5,
        "ended_wall_ns": END * 1000,
        "ended_mono_ns": 5 + (END - START) * 1000,
        **changes,
    }


def sound() -> Tables:
    step = {"job_id": "job", "event": ""}
    return {
        "proofs": [],
        "jobs": [{"id": "job", "state": "SUCCEEDED", "exit_code": 0}],
        "attempts": [
            {
                "id": "attempt",
                "job_id": "job",
                "number": 1,
                "lease_id": "lease",
                "started_at": START,
                "ended_at": END,
                "exit_code": 0,
            }
        ],
        "transitions": [
            {**step, "from_state": before, "to_state": after}
            for before, after in (
                ("", "QUEUED"),
                ("QUEUED", "STARTING"),
                ("STARTING", "RUNNING"),
                ("RUNNING", "SUCCEEDED"),
            )
        ],
        "leases": [lease("lease")],
        "gpus": [{"uuid": "gpu", "memory_mib": 1000}],
        "segments": [
            {"lease_id": "lease", "started_at": START, "ended_at": END, "duration_ms": 1000}
        ],
        "open_holds": [],
        "keys": [{"key": "key", "status": 201, "body": {"job_ids": ["job"]}}],
        "outbox": [],
        "agent": [seen("lease")],
        "witness": Witness((START + 10,), (END - 10,)),
        "strays": (),
    }


def check(tables: Tables) -> list[str]:
    records = Records(
        portal=tables,
        agent=tuple(tables["agent"]),
        witnesses={"file": tables["witness"]},
        strays=tables["strays"],
    )
    return violations(records, [WISH])


def test_sound_records_break_no_law() -> None:
    assert check(sound()) == []


BREACHES: dict[str, tuple[Callable[[Tables], Any], str]] = {
    "a counter is wrong": (lambda t: t["proofs"].append("wrong"), "wrong"),
    "a job has not ended": (lambda t: t["jobs"][0].update(state="RUNNING"), "is RUNNING"),
    "an attempt is open": (lambda t: t["attempts"][0].update(ended_at=None), "is open"),
    "a lease is not released": (
        lambda t: t["leases"][0].update(released_at=None),
        "is not released",
    ),
    "a hold is left": (lambda t: t["open_holds"].append({"attempt_id": "a"}), "still holds"),
    "a message is left": (lambda t: t["outbox"].append({"ref": "r"}), "outbox"),
    "the agent's lease is left": (lambda t: t["agent"][0].update(observed="running"), "as running"),
    "a process is left": (lambda t: t.update(strays=("supervisor",)), "a process is left"),
    "a job ended twice": (
        lambda t: t["transitions"].append(copy.copy(t["transitions"][-1])),
        "the story of job",
    ),
    "an exit code was changed": (lambda t: t["jobs"][0].update(exit_code=3), "exit code 3"),
    "the agent saw another exit code": (
        lambda t: t["agent"][0].update(exit_code=3),
        "the agent saw 3",
    ),
    "a second was not metered": (lambda t: t["segments"].clear(), "metered 0 ms"),
    "a second was metered twice": (
        lambda t: t["segments"].append({**t["segments"][0], "started_at": START + 1}),
        "metered twice",
    ),
    "a lease that never started is metered": (
        lambda t: t["leases"][0].update(started_at=None),
        "never started and is metered",
    ),
    "the node knows another start": (
        lambda t: t["agent"][0].update(started_wall_ns=START * 1000 + 9000),
        "at another time on the node",
    ),
    "the node knows another duration": (
        lambda t: t["agent"][0].update(ended_mono_ns=9),
        "us on the node",
    ),
    "the node does not know it": (lambda t: t["agent"].clear(), "not on the node"),
    "a GPU is given away twice": (
        lambda t: t["leases"].append(
            lease("other", started_at=None, created_at=START + 5, released_at=START + 6)
        ),
        "by the portal's record GPU gpu gave away 1200",
    ),
    "the agent gave a GPU away twice": (
        lambda t: t["agent"].append(seen("other")),
        "by the agent's record GPU gpu gave away 1200",
    ),
    "a slice is leased twice": (
        lambda t: t["leases"].append(
            lease("other", started_at=None, slice_id="slice of lease", created_at=START + 5)
        ),
        "is leased twice",
    ),
    "a key made two jobs": (
        lambda t: t["jobs"].append({"id": "second", "state": "", "exit_code": None}),
        "job second belongs to 0 keys",
    ),
    "a kept job is lost": (lambda t: t["jobs"].clear(), "job job is lost"),
    "a job ended wrongly": (lambda t: t["jobs"][0].update(state="FAILED"), "not as one of"),
    "a job ran twice": (
        lambda t: t.update(witness=Witness((START + 10, START + 20), (END - 10,))),
        "2 starts in 1 attempts",
    ),
    "a job did not run": (lambda t: t.update(witness=Witness((), ())), "wrote 0 ends"),
    "a job ran on after its lease": (
        lambda t: t.update(witness=Witness((START + 10,), (END + 100_000,))),
        "outside its leases",
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_found(breach: str) -> None:
    spoil, told = BREACHES[breach]
    tables = sound()

    spoil(tables)

    assert any(told in sentence for sentence in check(tables)), check(tables)
