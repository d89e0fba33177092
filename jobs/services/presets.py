"""Keeping templates of requests and secrets for the jobs of a project."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobs.models import Secret, Template
from jobs.selectors.presets import secret_purpose
from portal.accounts import access
from portal.accounts.access import Principal, ProjectRef
from portal.accounts.roles import Scope
from portal.core import audit, sealing
from portal.core.errors import Conflict, NotFound, Rejected
from portal.core.locks import guarded

MOST_TEMPLATES = 100
MOST_SECRETS = 100
MAX_TEMPLATE_BYTES = 128 * 1024
MAX_SECRET_BYTES = 32 * 1024
_TEMPLATE_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]{0,49}")
_SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")


def save_template(
    *, principal: Principal, project: str, name: str, fields: Mapping[str, Any], now: datetime
) -> None:
    """Keep a set of request fields under a new name; the door has checked their kinds."""
    place = access.access_project(principal, project, need=Scope.JOBS_WRITE)
    if not _TEMPLATE_NAME.fullmatch(name):
        raise Rejected(
            "jobs.template_name_invalid",
            f"{name[:60]!r} is no name for a template.",
            hint="Use up to 50 letters, digits, - and _.",
            field="name",
        )
    if len(json.dumps(fields)) > MAX_TEMPLATE_BYTES:
        raise Rejected(
            "jobs.template_too_large",
            f"A template may have {MAX_TEMPLATE_BYTES} bytes.",
            field="fields",
        )
    with guarded():
        kept = Template.objects.filter(project_id=place.id)
        if kept.filter(name=name).exists():
            raise Conflict(
                "jobs.template_exists",
                f"Project {place.slug} has a template {name!r} already.",
                hint="Choose another name, or let an administrator of the project delete that one.",
                field="name",
            )
        if kept.count() >= MOST_TEMPLATES:
            raise Conflict(
                "jobs.too_many_templates", f"A project may have {MOST_TEMPLATES} templates."
            )
        Template.objects.create(
            project_id=place.id,
            name=name,
            fields=dict(fields),
            saved_by=principal.name,
            saved_at=now,
        )
        _record(principal, place, "template.saved", name, now=now)


def delete_template(*, principal: Principal, project: str, name: str, now: datetime) -> None:
    place = access.access_project(principal, project, need=Scope.PROJECT_ADMIN)
    with guarded():
        deleted, _ = Template.objects.filter(project_id=place.id, name=name).delete()
        if not deleted:
            raise NotFound(
                "jobs.template_not_found", f"Project {place.slug} has no template {name!r}."
            )
        _record(principal, place, "template.deleted", name, now=now)


def set_secret(*, principal: Principal, project: str, name: str, value: str, now: datetime) -> None:
    """Keep a value under a name, in place of an earlier one. It is never shown again."""
    place = access.access_project(principal, project, need=Scope.PROJECT_ADMIN)
    if not _SECRET_NAME.fullmatch(name) or name.upper().startswith("GPUCOMMONS_"):
        raise Rejected(
            "jobs.secret_name_invalid",
            f"{name[:60]!r} is no name for a secret.",
            hint="Use up to 50 letters, digits and _, as for a variable; not GPUCOMMONS_.",
            field="name",
        )
    if not value or "\0" in value or len(value.encode(errors="replace")) > MAX_SECRET_BYTES:
        raise Rejected(
            "jobs.secret_value_invalid",
            f"The value of a secret has 1 to {MAX_SECRET_BYTES} bytes and no NUL.",
            field="value",
        )
    with guarded():
        kept = Secret.objects.filter(project_id=place.id)
        if kept.exclude(name=name).count() >= MOST_SECRETS:
            raise Conflict("jobs.too_many_secrets", f"A project may have {MOST_SECRETS} secrets.")
        Secret.objects.update_or_create(
            project_id=place.id,
            name=name,
            defaults={
                "sealed": sealing.seal(value, secret_purpose(place.id)),
                "set_by": principal.name,
                "set_at": now,
            },
        )
        _record(principal, place, "secret.set", name, now=now)


def delete_secret(*, principal: Principal, project: str, name: str, now: datetime) -> None:
    """Forget the value. Waiting jobs that want it fail when they are to start."""
    place = access.access_project(principal, project, need=Scope.PROJECT_ADMIN)
    with guarded():
        deleted, _ = Secret.objects.filter(project_id=place.id, name=name).delete()
        if not deleted:
            raise NotFound("jobs.secret_not_found", f"Project {place.slug} has no secret {name!r}.")
        _record(principal, place, "secret.deleted", name, now=now)


def _record(
    principal: Principal, place: ProjectRef, verb: str, name: str, *, now: datetime
) -> None:
    audit.record(
        actor=principal.actor,
        verb=verb,
        object_type=verb.partition(".")[0],
        object_id=name[:36],
        project_id=place.id,
        tenant_id=place.tenant_id,
        now=now,
        detail={"name": name},
    )
