"""Idempotency keys: the same request sent twice has one effect and one answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from portal.core import crash
from portal.core.errors import Rejected
from portal.core.locks import guarded
from portal.core.models import IdempotencyRecord

KEPT = timedelta(days=2)


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]
    replayed: bool = False


def fingerprint(method: str, path: str, body: Any) -> str:
    text = json.dumps([method, path, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def once(
    *,
    principal_id: str,
    key: str | None,
    request_fingerprint: str,
    now: datetime,
    effect: Callable[[], Answer],
) -> Answer:
    """Run ``effect`` and keep its answer in one transaction, or give the kept answer.

    Without a key it runs as it is, in whatever transactions it has itself.

    Raises ``idempotency.key_reused`` when the key was used for another request. Refusals are not
    kept: nothing has happened, so the caller may mend the request under the same key.
    """
    if key is None:
        return effect()
    with guarded():
        answer = _answer(principal_id, key, request_fingerprint, now, effect)
    crash.point("idempotency.committed")
    return answer


def _answer(
    principal_id: str,
    key: str,
    request_fingerprint: str,
    now: datetime,
    effect: Callable[[], Answer],
) -> Answer:
    kept = IdempotencyRecord.objects.filter(principal_id=principal_id, key=key).first()
    if kept is None:
        record = IdempotencyRecord(
            principal_id=principal_id,
            key=key,
            fingerprint=request_fingerprint,
            status=0,
            body={},
            created_at=now,
        )
        kept, fresh = _claim(record)
        if fresh:
            answer = effect()
            kept.status, kept.body = answer.status, answer.body
            kept.save(update_fields=["status", "body"])
            crash.point("idempotency.kept")
            return answer
    if kept.fingerprint != request_fingerprint:
        raise Rejected(
            "idempotency.key_reused",
            "This Idempotency-Key was used for another request.",
            hint="Use a new key for a new request.",
            field="Idempotency-Key",
        )
    return Answer(kept.status, kept.body, replayed=True)


def _claim(record: IdempotencyRecord) -> tuple[IdempotencyRecord, bool]:
    """Insert the record; a competitor's commit is waited for by the unique index."""
    IdempotencyRecord.objects.bulk_create([record], ignore_conflicts=True)
    stored = IdempotencyRecord.objects.get(principal_id=record.principal_id, key=record.key)
    return stored, stored.status == 0


def forget_old(now: datetime) -> None:
    with guarded():
        IdempotencyRecord.objects.filter(created_at__lt=now - KEPT).delete()
