"""Reads the database of a portal that runs elsewhere, and speaks to its agent as the portal does.

One JSON question a line on standard input, one answer a line on standard output. It only reads the
database, so the portal under test knows nothing of it.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any

import django

django.setup()

from django.db import close_old_connections  # noqa: E402 - models need the settings
from django.db.models import Manager, QuerySet  # noqa: E402

from agent.wire import (  # noqa: E402
    Desired,
    LeaseSpec,
    ProcessSpec,
    SliceKind,
    SliceSpec,
)
from billing.models import Segment  # noqa: E402
from jobs.engines.agent import AgentEngine  # noqa: E402
from jobs.engines.base import EngineError, NodeTarget  # noqa: E402
from jobs.models import Attempt, Job, Transition  # noqa: E402
from portal.core.models import IdempotencyRecord, OutboxMessage  # noqa: E402
from portal.fleet import pki  # noqa: E402
from portal.fleet.models import Gpu, Lease, Node  # noqa: E402
from portal.fleet.selectors import proof_of_counters  # noqa: E402
from quotas.models import Hold  # noqa: E402
from quotas.selectors import proof_of_holds  # noqa: E402


def rows(query: QuerySet[Any] | Manager[Any], *columns: str) -> list[dict[str, Any]]:
    return [
        {name: _plain(value) for name, value in row.items()}
        for row in query.order_by("pk").values(*columns)
    ]


def _plain(value: Any) -> Any:
    """Moments as whole microseconds since 1970."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1_000_000)
    return value


def state() -> dict[str, Any]:
    return {
        "proofs": [*proof_of_counters(), *proof_of_holds()],
        "jobs": rows(Job.objects, "id", "state", "exit_code", "exit_signal", "reason_code"),
        "attempts": rows(
            Attempt.objects, "id", "job_id", "number", "lease_id", "started_at", "ended_at",
            "exit_code", "exit_signal", "end_reason",
        ),
        "transitions": rows(Transition.objects, "job_id", "from_state", "to_state", "event"),
        "leases": rows(
            Lease.objects, "id", "attempt_id", "gpu__uuid", "slice_id", "slice__kind",
            "memory_mib", "compute_milli", "generation", "created_at", "started_at", "ended_at",
            "released_at",
        ),
        "gpus": rows(Gpu.objects, "uuid", "memory_mib", "mode"),
        "segments": rows(Segment.objects, "lease_id", "started_at", "ended_at", "duration_ms"),
        "open_holds": rows(Hold.objects.filter(released_at__isnull=True), "attempt_id"),
        "keys": rows(IdempotencyRecord.objects, "key", "status", "body"),
        "outbox": rows(OutboxMessage.objects, "ref", "tries"),
        "nodes": rows(Node.objects, "id", "name", "state", "address"),
    }  # fmt: skip


def open_work() -> dict[str, int]:
    """What is still under way."""
    return {
        "leases": Lease.objects.filter(released_at__isnull=True).count(),
        "holds": Hold.objects.filter(released_at__isnull=True).count(),
        "outbox": OutboxMessage.objects.count(),
    }


def occupy(lease_id: str) -> str:
    """Give the whole shared GPU away on the node, behind the portal's back; why not, or empty."""
    node = Node.objects.get()
    gpu = Gpu.objects.get(mode="share")
    spec = LeaseSpec(
        lease_id=lease_id,
        generation=1,
        desired=Desired.RUNNING,
        slice=SliceSpec(
            gpu_uuid=gpu.uuid,
            kind=SliceKind.SHARE,
            memory_mib=gpu.memory_mib,
            compute_milli=1000,
        ),
        process=ProcessSpec(argv=["sleep", "1000"], stop_grace_s=1),
    )
    try:
        _engine.apply(NodeTarget(node.id, node.address), spec)
    except EngineError as error:
        return str(error)
    return ""


_engine = AgentEngine(pki.client_ssl_context, timeout_s=5)
_answers: dict[str, Callable[..., Any]] = {
    "state": state,
    "open_work": open_work,
    "occupy": occupy,
}


def main() -> None:
    for line in sys.stdin:
        details = json.loads(line)
        try:
            answer = {"answer": _answers[details.pop("question")](**details)}
        except Exception:  # noqa: BLE001 - the asker is told
            answer = {"error": traceback.format_exc()}
        close_old_connections()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
