"""What a project keeps for its jobs: templates of requests and secrets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.models import Secret, Template
from portal.accounts import access
from portal.accounts.access import Principal
from portal.accounts.roles import Scope
from portal.core import sealing
from portal.core.errors import NotFound


@dataclass(frozen=True)
class TemplateView:
    name: str
    fields: dict[str, Any]
    saved_by: str
    saved_at: datetime


@dataclass(frozen=True)
class SecretView:
    """A secret as people see it: without its value."""

    name: str
    set_by: str
    set_at: datetime


def template_views(principal: Principal, project: str) -> list[TemplateView]:
    place = access.access_project(principal, project, need=Scope.JOBS_READ)
    return [
        TemplateView(row.name, row.fields, row.saved_by, row.saved_at)
        for row in Template.objects.filter(project_id=place.id).order_by("name")
    ]


def template_fields(principal: Principal, project: str, name: str) -> dict[str, Any]:
    """The request that a template holds. Raises `NotFound` with the field ``template``."""
    place = access.access_project(principal, project, need=Scope.JOBS_READ)
    row = Template.objects.filter(project_id=place.id, name=name).first()
    if row is None:
        raise NotFound(
            "jobs.template_not_found",
            f"Project {place.slug} has no template {name!r}.",
            hint="The page of the project lists its templates.",
            field="template",
        )
    fields: dict[str, Any] = row.fields
    return fields


def secret_views(principal: Principal, project: str) -> list[SecretView]:
    place = access.access_project(principal, project, need=Scope.PROJECT_ADMIN)
    return [
        SecretView(row.name, row.set_by, row.set_at)
        for row in Secret.objects.filter(project_id=place.id).order_by("name")
    ]


def secret_names(project_id: str) -> set[str]:
    return set(Secret.objects.filter(project_id=project_id).values_list("name", flat=True))


def open_secrets(project_id: str, names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Values of secrets by name, and the names that are gone or cannot be read any more."""
    wanted = list(names)
    if not wanted:
        return {}, []
    rows = dict(
        Secret.objects.filter(project_id=project_id, name__in=wanted).values_list("name", "sealed")
    )
    values: dict[str, str] = {}
    for name, sealed in rows.items():
        try:
            values[name] = sealing.unseal(sealed, secret_purpose(project_id))
        except sealing.Unreadable:
            continue
    return values, [name for name in wanted if name not in values]


def secret_purpose(project_id: str) -> str:
    return f"project secret {project_id}"
