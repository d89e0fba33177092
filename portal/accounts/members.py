"""Who has which role where: read and changed by the administrators of the place.

A role is given by its scopes: nobody gives one that carries more than they may do there themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from portal.accounts.access import (
    Principal,
    ProjectRef,
    TenantRef,
    access_project,
    access_tenant,
    tenant_ids_of_path,
)
from portal.accounts.models import Membership, User
from portal.accounts.roles import SCOPES_OF, Role, Scope
from portal.accounts.services import set_membership
from portal.core.errors import Forbidden, NotFound, Rejected
from portal.core.locks import guarded, lock_rows

PROJECT_ROLES = (Role.VIEWER, Role.MEMBER, Role.PROJECT_ADMIN)
TENANT_ROLES = tuple(Role)


@dataclass(frozen=True)
class Member:
    """A person with a role. ``tenant`` names the tenant above from which the role comes, if so."""

    user_id: str
    name: str
    is_active: bool
    role: Role
    tenant: str = ""


def members_of_project(project: ProjectRef) -> list[Member]:
    """Give who has a role in a project, its own members first; for whoever may look into it."""
    above = Membership.objects.filter(tenant__in=tenant_ids_of_path(project.tenant_path))
    own = _members(Membership.objects.filter(project_id=project.id))
    return [*own, *_members(above)]


def members_of_tenant(tenant: TenantRef) -> list[Member]:
    """Give who has a role in all of a tenant: its own, then those from the tenants above."""
    above = Membership.objects.filter(tenant__in=tenant_ids_of_path(tenant.path)[:-1])
    own = _members(Membership.objects.filter(tenant_id=tenant.id))
    return [*[_own(member) for member in own], *_members(above)]


def put_project_member(
    principal: Principal, *, project: str, user: str, role: Role, now: datetime
) -> Member:
    """Give an active user, named exactly or by id, a role in a project, instead of an older one.

    Raises ``accounts.user_not_found``, ``accounts.role_misplaced``, ``accounts.role_above_own`` or
    ``accounts.last_project_admin``.
    """
    place = access_project(principal, project, need=Scope.PROJECT_ADMIN)
    require_role_within(place.scopes, role)
    with guarded():
        found = _user(user)
        if role is not Role.PROJECT_ADMIN:
            _keep_an_administrator(place, found.id)
        set_membership(
            actor=principal.actor, user_id=found.id, role=role, project_id=place.id, now=now
        )
    return Member(found.id, found.name, found.is_active, role)


def remove_project_member(principal: Principal, *, project: str, user: str, now: datetime) -> None:
    """Take the role of a user in a project away; roles from tenants above stay.

    Raises ``accounts.member_not_found`` or ``accounts.last_project_admin``.
    """
    place = access_project(principal, project, need=Scope.PROJECT_ADMIN)
    with guarded():
        member = _member(Membership.objects.filter(project_id=place.id), user)
        _keep_an_administrator(place, member.user_id)
        set_membership(
            actor=principal.actor, user_id=member.user_id, role=None, project_id=place.id, now=now
        )


def put_tenant_member(
    principal: Principal, *, tenant: str, user: str, role: Role, now: datetime
) -> Member:
    """Give an active user, named exactly or by id, a role in a tenant and in all below it.

    Raises ``accounts.user_not_found`` or ``accounts.role_above_own``.
    """
    place = access_tenant(principal, tenant, need=Scope.TENANT_ADMIN)
    require_role_within(place.scopes, role)
    with guarded():
        found = _user(user)
        set_membership(
            actor=principal.actor, user_id=found.id, role=role, tenant_id=place.id, now=now
        )
    return Member(found.id, found.name, found.is_active, role)


def remove_tenant_member(principal: Principal, *, tenant: str, user: str, now: datetime) -> None:
    """Take the role of a user in a tenant away. Raises ``accounts.member_not_found``."""
    place = access_tenant(principal, tenant, need=Scope.TENANT_ADMIN)
    with guarded():
        member = _member(Membership.objects.filter(tenant_id=place.id), user)
        set_membership(
            actor=principal.actor, user_id=member.user_id, role=None, tenant_id=place.id, now=now
        )


def require_role_within(scopes: frozenset[Scope], role: Role) -> None:
    """Refuse with ``accounts.role_above_own`` a role that gives more than these scopes."""
    if not SCOPES_OF[role] <= scopes:
        missing = ", ".join(sorted(SCOPES_OF[role] - scopes))
        raise Forbidden(
            "accounts.role_above_own",
            f"The role {role} gives more than you may do here: {missing}.",
            hint="Give a lesser role, or ask an administrator of the tenant.",
            field="role",
        )


def _keep_an_administrator(place: ProjectRef, user_id: str) -> None:
    """Only whoever administers the tenant may leave a project without an administrator."""
    if Scope.TENANT_ADMIN in place.scopes:
        return
    administrators = lock_rows(
        Membership.objects.filter(project_id=place.id, role=Role.PROJECT_ADMIN)
    )
    if [one.user_id for one in administrators] == [user_id]:
        raise Rejected(
            "accounts.last_project_admin",
            f"This is the only administrator of project {place.slug}.",
            hint="Make another one first, or ask an administrator of the tenant.",
            field="user",
        )


def _user(id_or_name: str) -> User:
    found = User.objects.filter(pk=id_or_name, is_active=True).first()
    found = found or User.objects.filter(name=id_or_name, is_active=True).first()
    if found is None:
        raise NotFound(
            "accounts.user_not_found",
            "There is no such active user.",
            hint="Write the name exactly, or invite the person by a link.",
            field="user",
        )
    return found


def _member(memberships: QuerySet[Membership], id_or_name: str) -> Membership:
    found = memberships.filter(user=id_or_name).first()
    found = found or memberships.filter(user__name=id_or_name).first()
    if found is None:
        raise NotFound(
            "accounts.member_not_found",
            "No such user has a role of their own here.",
            hint="Roles from a tenant above are taken away there.",
            field="user",
        )
    return found


def _members(memberships: QuerySet[Membership]) -> list[Member]:
    return [
        Member(
            user_id=one.user_id,
            name=one.user.name,
            is_active=one.user.is_active,
            role=Role(one.role),
            tenant="" if one.tenant is None else one.tenant.slug,
        )
        for one in memberships.select_related("user", "tenant").order_by("user__name")
    ]


def _own(member: Member) -> Member:
    return Member(member.user_id, member.name, member.is_active, member.role)
