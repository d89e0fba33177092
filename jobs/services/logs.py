"""Reading what a job printed, from the node where it ran."""

from __future__ import annotations

from jobs.engines.base import Engine, EngineRejected, EngineTransient, LogChunk, NodeTarget
from jobs.selectors import access_job, attempt_for_log
from portal.accounts.access import Principal
from portal.accounts.roles import Scope
from portal.core.errors import NotFound, Unavailable
from portal.fleet.selectors import node_target

_ENDED_BEFORE_IT_RAN = LogChunk(b"", 0, True)


def read_log(
    engine: Engine,
    *,
    principal: Principal,
    job_id: str,
    attempt: int | None = None,
    offset: int = 0,
    limit: int = 65_536,
    wait_ms: int = 0,
) -> LogChunk:
    """Bytes of an attempt's log from ``offset``; of the newest attempt unless one is named.

    Before the first attempt there is an empty log that is not final. Raises `NotFound` for an
    attempt that is not there, `Unavailable` when the node does not answer.
    """
    job = access_job(principal, job_id, need=Scope.JOBS_READ)
    found = attempt_for_log(job, attempt)
    if found is None:
        if attempt is not None:
            raise NotFound(
                "jobs.attempt_not_found",
                f"The job has no attempt {attempt}.",
                field="attempt",
            )
        return LogChunk(b"", 0, job.ended_at is not None)
    if found.ended_at is not None and found.started_at is None:
        return _ENDED_BEFORE_IT_RAN
    node = node_target(found.node_id)
    target = NodeTarget(node.id, node.address)
    try:
        return engine.read_log(target, found.lease_id, offset=offset, limit=limit, wait_ms=wait_ms)
    except EngineTransient as error:
        raise Unavailable(
            "jobs.node_unreachable",
            f"Node {node.name}, which has the log, does not answer now.",
            hint="The job may still be running; try again later.",
        ) from error
    except EngineRejected as error:
        if found.started_at is None:
            return LogChunk(b"", offset, False)
        raise NotFound("jobs.log_gone", f"Node {node.name} no longer has this log.") from error
