"""Reading what a job printed, from the node where it ran."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from jobs.domain.kept_logs import Line, find_lines
from jobs.engines.base import Engine, EngineRejected, EngineTransient, LogChunk, NodeTarget
from jobs.models import Attempt
from jobs.selectors import access_job, attempt_for_log
from jobs.services.kept_logs import CHUNK, kept_chunks, read_kept
from portal.accounts.access import Principal
from portal.accounts.roles import Scope
from portal.core.errors import NotFound, Unavailable
from portal.fleet.selectors import node_target

MOST_SEARCHED = 64 * CHUNK
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
    if found.log_kept and found.log_size is not None:
        return read_kept(found, offset, limit)
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


def search_log(
    engine: Engine,
    *,
    principal: Principal,
    job_id: str,
    wanted: str,
    attempt: int | None = None,
    most: int = 100,
) -> list[Line]:
    """The first lines of an attempt's log that contain a text; case does not matter.

    Of a log that is still on its node the first `MOST_SEARCHED` bytes are read.
    """
    if not wanted:
        return []
    job = access_job(principal, job_id, need=Scope.JOBS_READ)
    found = attempt_for_log(job, attempt)
    if found is not None and found.log_kept and found.log_size is not None:
        return list(islice(_find_kept(found, wanted, most), most))

    def chunks() -> Iterator[bytes]:
        offset = 0
        while offset < MOST_SEARCHED:
            chunk = read_log(
                engine,
                principal=principal,
                job_id=job.pk,
                attempt=attempt,
                offset=offset,
                limit=CHUNK,
            )
            yield chunk.data
            offset = chunk.next_offset
            if chunk.final or not chunk.data:
                return

    return list(find_lines(chunks(), wanted, most=most))


def _find_kept(attempt: Attempt, wanted: str, most: int) -> Iterator[Line]:
    """In the first part, then in the last one."""
    tail_start = attempt.log_tail_start or 0
    for base, part in (
        (0, (data for offset, data in kept_chunks(attempt) if offset < tail_start)),
        (tail_start, (data for offset, data in kept_chunks(attempt) if offset >= tail_start)),
    ):
        for line in find_lines(part, wanted, most=most):
            yield Line(base + line.offset, line.text)
