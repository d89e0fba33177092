"""The audit as administrators read it: what happened in the places that they administer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from portal.accounts.access import (
    Principal,
    access_anywhere,
    access_project,
    accessible_project_ids,
    accessible_tenant_ids,
)
from portal.accounts.audit_words import Names, sentence
from portal.accounts.models import Project, Tenant, User
from portal.accounts.roles import EVERY_SCOPE, Scope
from portal.core.models import AuditEntry

MOST = 200


@dataclass(frozen=True)
class AuditFilter:
    """What is asked for; ``until`` is the first moment after. Empty texts filter nothing."""

    actor: str = ""
    verb: str = ""
    object_id: str = ""
    project: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class AuditLine:
    id: str
    at: datetime
    actor_id: str
    actor_name: str
    verb: str
    object_type: str
    object_id: str
    tenant_id: str
    project_id: str
    detail: dict[str, Any]
    sentence: str


@dataclass(frozen=True)
class AuditPage:
    """Newest first; ``next_before`` is None on the last page."""

    items: list[AuditLine]
    next_before: str | None


def audit_page(
    principal: Principal, *, asked: AuditFilter, before: str | None = None, limit: int = 50
) -> AuditPage:
    """Give what happened in the projects and tenants that the caller administers.

    The platform's own entries are for its administrators. Raises ``accounts.scope_missing`` for a
    caller who administers nothing, ``accounts.project_not_found`` for a filter by a project that
    the caller cannot see.
    """
    access_anywhere(principal, need=Scope.PROJECT_ADMIN)
    entries = AuditEntry.objects.filter(_visible(principal) & _asked(principal, asked))
    if before:
        entries = entries.filter(id__lt=before)
    rows = list(entries.order_by("-id")[: min(limit, MOST) + 1])
    more = len(rows) > min(limit, MOST)
    rows = rows[: min(limit, MOST)]
    return AuditPage(_lines(rows), rows[-1].id if more else None)


def _visible(principal: Principal) -> Q:
    may_tenants = Scope.TENANT_ADMIN in principal.narrowed(EVERY_SCOPE)
    if principal.is_platform_admin and may_tenants:
        return Q()
    projects = accessible_project_ids(principal, need=Scope.PROJECT_ADMIN)
    visible = Q(project_id__gt="") if projects is None else Q(project_id__in=projects)
    if may_tenants:
        visible |= Q(tenant_id__in=accessible_tenant_ids(principal, need=Scope.TENANT_ADMIN) or ())
    return visible


def _asked(principal: Principal, asked: AuditFilter) -> Q:
    wanted = Q()
    if asked.actor:
        wanted &= Q(actor_name=asked.actor) | Q(actor_id=asked.actor)
    if asked.verb:
        wanted &= Q(verb__startswith=asked.verb)
    if asked.object_id:
        wanted &= Q(object_id=asked.object_id)
    if asked.project:
        project = access_project(principal, asked.project, need=Scope.PROJECT_ADMIN)
        wanted &= Q(project_id=project.id)
    if asked.since:
        wanted &= Q(at__gte=asked.since)
    if asked.until:
        wanted &= Q(at__lt=asked.until)
    return wanted


def _lines(rows: Sequence[AuditEntry]) -> list[AuditLine]:
    names = _names(rows)
    return [
        AuditLine(
            id=row.id,
            at=row.at,
            actor_id=row.actor_id,
            actor_name=row.actor_name,
            verb=row.verb,
            object_type=row.object_type,
            object_id=row.object_id,
            tenant_id=row.tenant_id,
            project_id=row.project_id,
            detail=row.detail,
            sentence=sentence(
                actor=row.actor_name,
                verb=row.verb,
                object_type=row.object_type,
                object_id=row.object_id,
                tenant_id=row.tenant_id,
                project_id=row.project_id,
                detail=row.detail,
                names=names,
            ),
        )
        for row in rows
    ]


def _names(rows: Sequence[AuditEntry]) -> Names:
    """Name every user, tenant and project of a page in three queries."""
    ids = {row.object_id for row in rows} | {row.detail.get("user_id", "") for row in rows}
    places = ids | {row.tenant_id for row in rows} | {row.project_id for row in rows}
    for row in rows:
        places |= {str(row.detail.get(key)) for key in ("parent_id", "old_parent_id")}
    return Names(
        users=dict(User.objects.filter(pk__in=ids).values_list("pk", "name")),
        tenants=dict(Tenant.objects.filter(pk__in=places).values_list("pk", "name")),
        projects=dict(Project.objects.filter(pk__in=places).values_list("pk", "slug")),
    )
