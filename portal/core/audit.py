"""Audit rows, written in the transaction of the change that they tell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.core.models import AuditEntry


@dataclass(frozen=True)
class Actor:
    """Who acts: a person (id of the user) or a part of the platform (empty id)."""

    name: str
    user_id: str = ""


SYSTEM = Actor("system")


def record(
    *,
    actor: Actor,
    verb: str,
    object_type: str,
    object_id: str,
    now: datetime,
    tenant_id: str = "",
    project_id: str = "",
    detail: dict[str, Any] | None = None,
) -> None:
    """Append one entry; ``verb`` is past tense and dotted, as ``job.cancelled``."""
    AuditEntry.objects.create(
        at=now,
        actor_id=actor.user_id,
        actor_name=actor.name,
        verb=verb,
        object_type=object_type,
        object_id=object_id,
        tenant_id=tenant_id,
        project_id=project_id,
        detail=detail or {},
    )
