"""Copying the logs of ended attempts to the portal's storage, before their nodes forget them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import structlog
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from jobs.domain.kept_logs import gap_note, parts
from jobs.engines.base import Engine, EngineRejected, EngineTransient, LogChunk, NodeTarget
from jobs.models import Attempt
from jobs.selectors.logs import logs_to_keep
from portal.config import config
from portal.fleet.selectors import node_target

_log = structlog.get_logger(__name__)
CHUNK = 1024 * 1024
_MOST_AT_ONCE = 100


def keep_logs(engine: Engine, *, now: datetime) -> int:
    """Copy what is not copied yet, the oldest end first; how many logs were completed.

    May be stopped anywhere and run twice: a part lies under the offset where it begins.
    """
    kept = 0
    silent: set[str] = set()
    for attempt in logs_to_keep(_MOST_AT_ONCE):
        if attempt.node_id in silent:
            continue
        try:
            kept += _keep(engine, attempt)
        except EngineTransient as error:
            silent.add(attempt.node_id)
            _log.info("keep_logs.later", attempt_id=attempt.pk, error=str(error))
        except EngineRejected as refusal:
            # The node has no such log (any more): it is never asked again.
            Attempt.objects.filter(pk=attempt.pk).update(log_kept=True, log_size=None)
            _log.warning("keep_logs.gone", attempt_id=attempt.pk, code=refusal.code)
    return kept


def _keep(engine: Engine, attempt: Attempt) -> bool:
    node = node_target(attempt.node_id)
    target = NodeTarget(node.id, node.address)

    def read(offset: int, limit: int) -> LogChunk:
        return engine.read_log(target, attempt.lease_id, offset=offset, limit=limit, wait_ms=0)

    size = read(0, 1).size
    if size is None:
        return False
    (_, head_end), (tail_start, _) = parts(size, config.log_keep_mib * 1024 * 1024)
    offset = attempt.log_kept_bytes
    while offset < size:
        if head_end <= offset < tail_start:
            offset = tail_start
        end = min(offset + CHUNK, head_end if offset < head_end else size)
        _save(attempt, offset, _read_exactly(read, offset, end))
        offset = end
        Attempt.objects.filter(pk=attempt.pk).update(log_kept_bytes=offset)
    if not read(size, 1).final:
        return False
    Attempt.objects.filter(pk=attempt.pk).update(
        log_kept=True, log_size=size, log_head_end=head_end, log_tail_start=tail_start
    )
    return True


def _read_exactly(read: Callable[[int, int], LogChunk], offset: int, end: int) -> bytes:
    data = b""
    while offset + len(data) < end:
        chunk = read(offset + len(data), end - offset - len(data))
        if not chunk.data:
            raise EngineTransient("the log became shorter")
        data += chunk.data
    return data


def _name(attempt: Attempt, offset: int) -> str:
    return f"{attempt.pk}/{offset:015d}"


def _save(attempt: Attempt, offset: int, data: bytes) -> None:
    storage = storages["logs"]
    name = _name(attempt, offset)
    storage.delete(name)
    storage.save(name, ContentFile(data))


def read_kept(attempt: Attempt, offset: int, limit: int) -> LogChunk:
    """Bytes of a kept log; where bytes are missing stands one line that says so."""
    size, head_end = attempt.log_size or 0, attempt.log_head_end or 0
    tail_start = attempt.log_tail_start or 0
    if offset >= size:
        return LogChunk(b"", offset, True, size)
    if head_end <= offset < tail_start:
        return LogChunk(gap_note(head_end, tail_start), tail_start, False, size)
    base = 0 if offset < head_end else tail_start
    start = base + (offset - base) // CHUNK * CHUNK
    with storages["logs"].open(_name(attempt, start)) as file:
        file.seek(offset - start)
        data = file.read(limit)
    end = offset + len(data)
    return LogChunk(data, end, end >= size, size)


def kept_chunks(attempt: Attempt) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of everything that is kept, without what stands for the gap."""
    offset = 0
    while True:
        chunk = read_kept(attempt, offset, CHUNK)
        if not (attempt.log_head_end or 0) <= offset < (attempt.log_tail_start or 0):
            yield offset, chunk.data
        if chunk.final or chunk.next_offset <= offset:
            return
        offset = chunk.next_offset
