"""Invitations: a role in one place for whoever holds the link, once.

The right to invite is asked again when an invitation is accepted: whoever has lost it meanwhile has
invited nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from portal.accounts.access import (
    Principal,
    ProjectRef,
    TenantRef,
    access_project,
    access_tenant,
    principal_of_user,
)
from portal.accounts.links import digest_of, link_invalid, new_secret
from portal.accounts.members import require_role_within
from portal.accounts.models import Invitation, Membership
from portal.accounts.roles import SCOPES_OF, Role, Scope
from portal.accounts.services import create_user, set_membership
from portal.core import audit
from portal.core.audit import Actor
from portal.core.errors import NotFound, PortalError, Rejected
from portal.core.locks import guarded, lock_rows

LONGEST_LIFE = timedelta(days=30)
_PURPOSE = "invitation"


@dataclass(frozen=True)
class InvitationInfo:
    """An invitation as administrators of the place see it: without its secret."""

    id: str
    place: str
    kind: str
    role: Role
    email: str
    invited_by: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class NewInvitation:
    """``secret`` is shown once and kept nowhere."""

    invitation: InvitationInfo
    secret: str


def invite(
    principal: Principal,
    *,
    role: Role,
    life: timedelta,
    now: datetime,
    project: str | None = None,
    tenant: str | None = None,
    email: str = "",
) -> NewInvitation:
    """Invite whoever gets the link to a project or to a tenant and all below it.

    ``email`` is a note of whom it is for, and becomes the new user's address. Raises
    ``accounts.role_above_own``, ``accounts.role_misplaced`` or ``accounts.invitation_expiry``.
    """
    place = _place(principal, project, tenant)
    if isinstance(place, ProjectRef) and role is Role.TENANT_ADMIN:
        raise Rejected(
            "accounts.role_misplaced",
            "tenant_admin is a role in a tenant, not in a project.",
            hint="Use project_admin, or name a tenant.",
            field="role",
        )
    require_role_within(place.scopes, role)
    if not timedelta(0) < life <= LONGEST_LIFE:
        raise Rejected(
            "accounts.invitation_expiry",
            f"An invitation lives at most {LONGEST_LIFE.days} days.",
            field="days",
        )
    secret, digest = new_secret(_PURPOSE)
    with guarded():
        row = Invitation.objects.create(
            digest=digest,
            project_id=place.id if isinstance(place, ProjectRef) else None,
            tenant_id=place.id if isinstance(place, TenantRef) else None,
            role=role,
            email=email,
            invited_by_id=principal.user_id,
            created_at=now,
            expires_at=now + life,
        )
        _record(principal.actor, "invitation.issued", row, now)
    return NewInvitation(_info(_with_places(Invitation.objects.filter(pk=row.pk)).get()), secret)


def open_invitations(
    principal: Principal, *, now: datetime, project: str | None = None, tenant: str | None = None
) -> list[InvitationInfo]:
    """List what may still be accepted, newest first; for administrators of the place."""
    place = _place(principal, project, tenant)
    rows = _open(now).filter(Q(project=place.id) | Q(tenant=place.id))
    return [_info(row) for row in _with_places(rows).order_by("-id")]


def revoke_invitation(principal: Principal, *, invitation_id: str, now: datetime) -> InvitationInfo:
    """Make a link useless; for administrators of the place.

    Raises ``accounts.invitation_not_found``, also when it was accepted, revoked or is too old.
    """
    with guarded():
        rows = lock_rows(_open(now).filter(pk=invitation_id))
        try:
            row = rows[0]
            _place(principal, row.project_id, row.tenant_id)
        except (IndexError, NotFound):
            raise NotFound(
                "accounts.invitation_not_found", "There is no such open invitation."
            ) from None
        Invitation.objects.filter(pk=row.pk).update(revoked_at=now)
        _record(principal.actor, "invitation.revoked", row, now)
        return _info(_with_places(Invitation.objects.filter(pk=row.pk)).get())


def read_invitation(secret: str, now: datetime) -> InvitationInfo:
    """Tell the holder of a link what it offers, or raise ``accounts.link_invalid``."""
    row = _with_places(_open(now).filter(digest=digest_of(_PURPOSE, secret))).first()
    if row is None or not _inviter_may(row):
        raise link_invalid()
    return _info(row)


def accept_invitation(principal: Principal, *, secret: str, now: datetime) -> InvitationInfo:
    """Give the caller the role, unless they have one there that gives as much.

    Raises ``accounts.link_invalid``, the same for whatever is wrong with the link.
    """
    with guarded():
        row = _taken(secret, now)
        return _join(row, principal.actor, now)


def accept_as_new_user(*, secret: str, name: str, password: str, now: datetime) -> InvitationInfo:
    """Make a user who has the role.

    Raises ``accounts.link_invalid``; or ``accounts.user_taken``, ``accounts.name_invalid`` or
    ``accounts.password_weak``, which leave the link as it was.
    """
    with guarded():
        row = _taken(secret, now)
        inviter = Actor(row.invited_by.name, row.invited_by_id)
        user_id = create_user(actor=inviter, name=name, email=row.email, password=password, now=now)
        return _join(row, Actor(name, user_id), now)


def _taken(secret: str, now: datetime) -> Invitation:
    """Lock the invitation; whoever comes second finds it accepted."""
    rows = lock_rows(Invitation.objects.filter(digest=digest_of(_PURPOSE, secret)))
    row = _with_places(_open(now).filter(pk__in=[one.pk for one in rows])).first()
    if row is None or not _inviter_may(row):
        raise link_invalid()
    return row


def _join(row: Invitation, actor: Actor, now: datetime) -> InvitationInfo:
    Invitation.objects.filter(pk=row.pk).update(accepted_at=now, accepted_by_id=actor.user_id)
    had = Membership.objects.filter(
        user_id=actor.user_id, project_id=row.project_id, tenant_id=row.tenant_id
    ).first()
    role = Role(row.role)
    if had is None or not SCOPES_OF[role] <= SCOPES_OF[Role(had.role)]:
        set_membership(
            actor=Actor(row.invited_by.name, row.invited_by_id),
            user_id=actor.user_id,
            role=role,
            project_id=row.project_id,
            tenant_id=row.tenant_id,
            now=now,
        )
    _record(actor, "invitation.accepted", row, now)
    return _info(row)


def _inviter_may(row: Invitation) -> bool:
    if not row.invited_by.is_active:
        return False
    try:
        place = _place(principal_of_user(row.invited_by), row.project_id, row.tenant_id)
        require_role_within(place.scopes, Role(row.role))
    except PortalError:
        return False
    return True


def _place(principal: Principal, project: str | None, tenant: str | None) -> ProjectRef | TenantRef:
    if project is not None and tenant is None:
        return access_project(principal, project, need=Scope.PROJECT_ADMIN)
    if tenant is not None and project is None:
        return access_tenant(principal, tenant, need=Scope.TENANT_ADMIN)
    raise Rejected(
        "accounts.one_place",
        "Name either a project or a tenant.",
        hint="Leave one of them out.",
        field="project",
    )


def _open(now: datetime) -> QuerySet[Invitation]:
    return Invitation.objects.filter(
        accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now
    )


def _with_places(rows: QuerySet[Invitation]) -> QuerySet[Invitation]:
    return rows.select_related("project", "tenant", "invited_by")


def _record(actor: Actor, verb: str, row: Invitation, now: datetime) -> None:
    audit.record(
        actor=actor,
        verb=verb,
        object_type="invitation",
        object_id=row.pk,
        tenant_id=row.tenant_id or (row.project.tenant_id if row.project else ""),
        project_id=row.project_id or "",
        now=now,
        detail={"role": row.role},
    )


def _info(row: Invitation) -> InvitationInfo:
    place = row.project or row.tenant
    return InvitationInfo(
        id=row.pk,
        place=place.slug if place else "",
        kind="project" if row.project_id else "tenant",
        role=Role(row.role),
        email=row.email,
        invited_by=row.invited_by.name,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
