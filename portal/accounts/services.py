"""Make tenants, projects, users and memberships."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F

from portal.accounts.models import Membership, Project, Tenant, User
from portal.accounts.roles import Role
from portal.core import audit
from portal.core.audit import Actor
from portal.core.errors import Conflict, NotFound, Rejected
from portal.core.ids import new_id
from portal.core.locks import guarded, lock_rows
from portal.core.rows import save_rows

_SLUG = re.compile(r"[a-z](?:[a-z0-9-]{0,29}[a-z0-9])?")
_DEEPEST_PATH = 1000
LONGEST_NAME = 100
LONGEST_USER_NAME = 150
LONGEST_PASSWORD = 1000


def create_tenant(
    *, actor: Actor, name: str, slug: str, parent_id: str | None, now: datetime
) -> str:
    """Make a tenant below ``parent_id``, or a root; give its id.

    Raises ``accounts.slug_invalid``, ``accounts.slug_taken``, ``accounts.tenant_not_found`` or
    ``accounts.tenant_too_deep``.
    """
    _check_slug(slug)
    check_name(name)
    tenant_id = new_id()
    with guarded():
        parent_path = "/" if parent_id is None else _locked_tenant(parent_id).path
        path = f"{parent_path}{tenant_id}/"
        _check_depth(path)
        with _slug_free(slug):
            Tenant.objects.create(
                id=tenant_id, name=name, slug=slug, parent_id=parent_id, path=path, created_at=now
            )
        audit.record(
            actor=actor,
            verb="tenant.created",
            object_type="tenant",
            object_id=tenant_id,
            tenant_id=tenant_id,
            now=now,
            detail={"name": name, "slug": slug, "parent_id": parent_id},
        )
    return tenant_id


def rename_tenant(*, actor: Actor, tenant_id: str, name: str, now: datetime) -> None:
    """Raises ``accounts.name_invalid`` or ``accounts.tenant_not_found``."""
    check_name(name)
    with guarded():
        tenant = _locked_tenant(tenant_id)
        if tenant.name == name:
            return
        Tenant.objects.filter(pk=tenant_id).update(name=name)
        audit.record(
            actor=actor,
            verb="tenant.renamed",
            object_type="tenant",
            object_id=tenant_id,
            tenant_id=tenant_id,
            now=now,
            detail={"old_name": tenant.name, "new_name": name},
        )


def move_tenant(*, actor: Actor, tenant_id: str, parent_id: str | None, now: datetime) -> bool:
    """Put a tenant and all below it under another one, or make it a root; false if it is there.

    Every tenant is locked: two moves at once make no circle. Whether the move is right for holds is
    asked above this room. Raises ``accounts.tenant_not_found``, ``accounts.tenant_in_circle`` or
    ``accounts.tenant_too_deep``.
    """
    with guarded():
        tenants = {tenant.id: tenant for tenant in lock_rows(Tenant.objects.all())}
        tenant = tenants.get(tenant_id)
        parent = None if parent_id is None else tenants.get(parent_id)
        if tenant is None or (parent is None and parent_id is not None):
            raise _tenant_not_found()
        if tenant.parent_id == parent_id:
            return False
        if parent is not None and parent.path.startswith(tenant.path):
            raise Conflict(
                "accounts.tenant_in_circle",
                f"{parent.name} lies below {tenant.name} or is it.",
                hint="Choose a tenant outside of its subtree.",
                field="parent",
            )
        old_path, old_parent_id = tenant.path, tenant.parent_id
        new_path = f"{parent.path if parent else '/'}{tenant.id}/"
        moved = [one for one in tenants.values() if one.path.startswith(old_path)]
        for one in moved:
            one.path = new_path + one.path.removeprefix(old_path)
            _check_depth(one.path)
        tenant.parent_id = parent_id
        save_rows(moved, ["path", "parent"])
        audit.record(
            actor=actor,
            verb="tenant.moved",
            object_type="tenant",
            object_id=tenant_id,
            tenant_id=tenant_id,
            now=now,
            detail={"old_parent_id": old_parent_id, "parent_id": parent_id},
        )
        return True


def create_project(*, actor: Actor, tenant_id: str, name: str, slug: str, now: datetime) -> str:
    """Make a project of a tenant; give its id.

    Raises ``accounts.slug_invalid``, ``accounts.slug_taken`` or ``accounts.tenant_not_found``.
    """
    _check_slug(slug)
    check_name(name)
    with guarded():
        tenant = _tenant(tenant_id)
        with _slug_free(slug):
            project = Project.objects.create(tenant=tenant, name=name, slug=slug, created_at=now)
        audit.record(
            actor=actor,
            verb="project.created",
            object_type="project",
            object_id=project.id,
            tenant_id=tenant.id,
            project_id=project.id,
            now=now,
            detail={"name": name, "slug": slug},
        )
    return project.id


def rename_project(*, actor: Actor, project_id: str, name: str, now: datetime) -> None:
    """Raises ``accounts.name_invalid``."""
    check_name(name)
    with guarded():
        project = lock_rows(Project.objects.filter(pk=project_id))[0]
        if project.name == name:
            return
        Project.objects.filter(pk=project_id).update(name=name)
        audit.record(
            actor=actor,
            verb="project.renamed",
            object_type="project",
            object_id=project_id,
            tenant_id=project.tenant_id,
            project_id=project_id,
            now=now,
            detail={"old_name": project.name, "new_name": name},
        )


def create_user(
    *,
    actor: Actor,
    name: str,
    email: str,
    password: str | None,
    is_platform_admin: bool = False,
    now: datetime,
) -> str:
    """Make a user; give its id. Without a password they sign in once a link has set one.

    Raises ``accounts.user_taken``, ``accounts.name_invalid`` or ``accounts.password_weak``.
    """
    check_name(name, longest=LONGEST_USER_NAME)
    user = User(name=name, email=email, is_platform_admin=is_platform_admin, created_at=now)
    if password is None:
        user.set_unusable_password()
    else:
        check_password_strength(password, user)
        user.set_password(password)
    with guarded():
        with _unique(Conflict("accounts.user_taken", f"There is a user {name!r}.", field="name")):
            user.save(force_insert=True)
        audit.record(
            actor=actor,
            verb="user.created",
            object_type="user",
            object_id=user.id,
            now=now,
            detail={"name": name, "is_platform_admin": is_platform_admin},
        )
    return user.id


def set_membership(
    *,
    actor: Actor,
    user_id: str,
    role: Role | None,
    now: datetime,
    project_id: str | None = None,
    tenant_id: str | None = None,
) -> None:
    """Give a user one role in one project, or in a tenant and all below it; None takes it away.

    Raises ``accounts.role_misplaced`` for the role of a tenant in a project.
    """
    if (project_id is None) == (tenant_id is None):
        raise ValueError("a membership is in a project or in a tenant")
    if role is Role.TENANT_ADMIN and project_id is not None:
        raise Rejected(
            "accounts.role_misplaced",
            "tenant_admin is a role in a tenant, not in a project.",
            hint="Use project_admin, or name a tenant.",
            field="role",
        )
    with guarded():
        place: dict[str, Any] = {
            "user_id": user_id,
            "project_id": project_id,
            "tenant_id": tenant_id,
        }
        if role is None:
            Membership.objects.filter(**place).delete()
        else:
            Membership.objects.update_or_create(**place, defaults={"role": role})
        audit.record(
            actor=actor,
            verb="membership.set",
            object_type="user",
            object_id=user_id,
            tenant_id=tenant_id or _tenant_of(project_id),
            project_id=project_id or "",
            now=now,
            detail={"role": role},
        )


def next_job_numbers(project_id: str, count: int) -> range:
    """Take the next ``count`` job numbers of a project inside the caller's transaction.

    The project's row stays locked until that ends, so numbers have no gaps.
    """
    project = Project.objects.filter(pk=project_id)
    project.update(last_job_number=F("last_job_number") + count)
    last = project.values_list("last_job_number", flat=True).get()
    return range(last - count + 1, last + 1)


def _tenant(tenant_id: str) -> Tenant:
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        raise _tenant_not_found()
    return tenant


def _locked_tenant(tenant_id: str) -> Tenant:
    """For changes that depend on the path: a move waits, or is waited for."""
    for tenant in lock_rows(Tenant.objects.filter(pk=tenant_id)):
        return tenant
    raise _tenant_not_found()


def _tenant_not_found() -> NotFound:
    return NotFound("accounts.tenant_not_found", "There is no such tenant.", field="tenant")


def check_name(name: str, *, longest: int = LONGEST_NAME) -> None:
    """Refuse with ``accounts.name_invalid`` what no list could show as a name."""
    if not (0 < len(name) <= longest and name == name.strip() and name.isprintable()):
        raise Rejected(
            "accounts.name_invalid",
            f"A name has 1 to {longest} printable characters and no space at its ends.",
            field="name",
        )


def check_password_strength(password: str, user: User) -> None:
    """Refuse with ``accounts.password_weak`` what the validators of the settings refuse."""
    try:
        if "\0" in password or len(password) > LONGEST_PASSWORD:
            raise ValidationError("A password has no NUL and at most 1000 characters.")
        validate_password(password, user)
    except ValidationError as error:
        raise Rejected(
            "accounts.password_weak", " ".join(error.messages), field="password"
        ) from error


def _check_depth(path: str) -> None:
    if len(path) > _DEEPEST_PATH:
        raise Rejected(
            "accounts.tenant_too_deep",
            f"Tenants nest at most {_DEEPEST_PATH // (len(new_id()) + 1)} deep.",
            field="parent",
        )


def _tenant_of(project_id: str | None) -> str:
    return Project.objects.filter(pk=project_id).values_list("tenant_id", flat=True).get()


def _check_slug(slug: str) -> None:
    if not _SLUG.fullmatch(slug):
        raise Rejected(
            "accounts.slug_invalid",
            f"{slug!r} is no short name.",
            hint="Use 1 to 31 of a-z, 0-9 and '-', a letter first and no '-' last.",
            field="slug",
        )


@contextmanager
def _slug_free(slug: str) -> Iterator[None]:
    with _unique(
        Conflict(
            "accounts.slug_taken",
            f"The short name {slug!r} is taken.",
            hint="Choose another one.",
            field="slug",
        )
    ):
        yield


@contextmanager
def _unique(otherwise: Conflict) -> Iterator[None]:
    """Translate the refusal of a unique index; the savepoint keeps the transaction usable."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise otherwise from error
