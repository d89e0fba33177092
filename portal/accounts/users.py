"""Users as the platform's administrators manage them, and what people change of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q

from portal.accounts.access import (
    Principal,
    access_platform,
    access_whole_platform,
)
from portal.accounts.links import digest_of, link_invalid, new_secret
from portal.accounts.models import ApiToken, Membership, PasswordLink, User
from portal.accounts.roles import Role, Scope
from portal.accounts.services import check_password_strength, create_user
from portal.core import audit
from portal.core.audit import Actor
from portal.core.errors import Conflict, Forbidden, NotFound, Rejected
from portal.core.locks import guarded, lock_rows

LINK_LIFE = timedelta(days=1)
MOST = 200
_PURPOSE = "password"


@dataclass(frozen=True)
class UserInfo:
    id: str
    name: str
    email: str
    is_active: bool
    is_platform_admin: bool
    created_at: datetime
    last_login: datetime | None


@dataclass(frozen=True)
class UserPage:
    """By name; ``next_after`` is None on the last page."""

    items: list[UserInfo]
    next_after: str | None


@dataclass(frozen=True)
class RoleSomewhere:
    role: Role
    kind: str
    slug: str


@dataclass(frozen=True)
class NewLink:
    """A link to set a password; ``secret`` is shown once and kept nowhere."""

    user: UserInfo
    secret: str
    expires_at: datetime


def user_page(
    principal: Principal, *, search: str = "", after: str = "", limit: int = 100
) -> UserPage:
    """List users whose name or address holds the text; for administrators of the platform."""
    access_platform(principal, need=Scope.TENANT_ADMIN)
    users = User.objects.filter(name__gt=after).order_by("name")
    if search:
        users = users.filter(Q(name__icontains=search) | Q(email__icontains=search))
    rows = list(users[: min(limit, MOST) + 1])
    shown = rows[: min(limit, MOST)]
    return UserPage([_info(user) for user in shown], shown[-1].name if len(rows) > limit else None)


def user_detail(principal: Principal, user: str) -> UserInfo:
    access_platform(principal, need=Scope.TENANT_ADMIN)
    return _info(_user(user))


def roles_of(principal: Principal, user_id: str) -> list[RoleSomewhere]:
    """Give where a user has which role; of another user to the platform's administrators only."""
    if principal.user_id != user_id:
        access_platform(principal, need=Scope.TENANT_ADMIN)
    memberships = Membership.objects.filter(user_id=user_id).select_related("project", "tenant")
    found = [
        RoleSomewhere(Role(one.role), "project", one.project.slug)
        if one.project
        else RoleSomewhere(Role(one.role), "tenant", one.tenant.slug if one.tenant else "")
        for one in memberships
    ]
    return sorted(found, key=lambda one: (one.kind, one.slug))


def make_user(
    principal: Principal, *, name: str, email: str, is_platform_admin: bool, now: datetime
) -> NewLink:
    """Make a user without a password, and the link with which they set one."""
    access_whole_platform(principal)
    with guarded():
        user_id = create_user(
            actor=principal.actor,
            name=name,
            email=email,
            password=None,
            is_platform_admin=is_platform_admin,
            now=now,
        )
        return _new_link(principal.actor, _user(user_id), now)


def deactivate_user(principal: Principal, *, user: str, now: datetime) -> UserInfo:
    """End a user's sessions, tokens and links at once; nothing of them revives later.

    Raises ``accounts.own_account``, which also keeps one administrator of the platform.
    """
    access_whole_platform(principal)
    with guarded():
        rows = lock_rows(User.objects.filter(Q(pk=user) | Q(is_platform_admin=True)))
        found = next((row for row in rows if row.id == user), None)
        if found is None:
            raise _user_not_found()
        if found.id == principal.user_id:
            raise Conflict(
                "accounts.own_account",
                "You cannot deactivate yourself.",
                hint="Ask another administrator of the platform.",
            )
        if not any(row.id == principal.user_id and row.is_active for row in rows):
            raise Forbidden("accounts.not_active", "You were deactivated meanwhile.")
        if found.is_active:
            User.objects.filter(pk=found.id).update(
                is_active=False, session_generation=F("session_generation") + 1
            )
            ApiToken.objects.filter(user=found, revoked_at__isnull=True).update(revoked_at=now)
            _void_links(found, now)
            _record(principal.actor, "user.deactivated", found, now)
        found.is_active = False
        return _info(found)


def reactivate_user(principal: Principal, *, user: str, now: datetime) -> UserInfo:
    """Let a user sign in again, with the password of before; tokens stay revoked."""
    access_whole_platform(principal)
    with guarded():
        found = _locked(user)
        if not found.is_active:
            User.objects.filter(pk=found.id).update(is_active=True)
            _record(principal.actor, "user.reactivated", found, now)
        found.is_active = True
        return _info(found)


def issue_password_link(principal: Principal, *, user: str, now: datetime) -> NewLink:
    """Make a link with which an active user sets a new password; older ones stop working.

    Raises ``accounts.user_not_found`` or ``accounts.user_inactive``.
    """
    access_whole_platform(principal)
    with guarded():
        found = _locked(user)
        if not found.is_active:
            raise Conflict(
                "accounts.user_inactive",
                f"{found.name} is deactivated.",
                hint="Reactivate the user first.",
            )
        return _new_link(principal.actor, found, now)


def owner_of_password_link(secret: str, now: datetime) -> str:
    """Give the name of whose password the link sets, or raise ``accounts.link_invalid``."""
    link = (
        PasswordLink.objects.select_related("user")
        .filter(digest=digest_of(_PURPOSE, secret), used_at__isnull=True, expires_at__gt=now)
        .first()
    )
    if link is None or not link.user.is_active:
        raise link_invalid()
    return link.user.name


def set_password_by_link(*, secret: str, password: str, now: datetime) -> None:
    """Set the password once and end all sessions of the user.

    Raises ``accounts.link_invalid``, the same for whatever is wrong with it, or
    ``accounts.password_weak``, which uses nothing up.
    """
    with guarded():
        links = lock_rows(PasswordLink.objects.filter(digest=digest_of(_PURPOSE, secret)))
        if not links or links[0].used_at is not None or links[0].expires_at <= now:
            raise link_invalid()
        found = _locked(links[0].user_id)
        if not found.is_active:
            raise link_invalid()
        check_password_strength(password, found)
        _set_password(found, password)
        _void_links(found, now)
        _record(Actor(found.name, found.id), "password.reset", found, now)


def change_password(principal: Principal, *, old: str, new: str, now: datetime) -> None:
    """Change one's own password; every other session ends.

    Raises ``accounts.session_needed`` for a token, ``accounts.password_wrong`` or
    ``accounts.password_weak``.
    """
    if principal.token_scopes is not None:
        raise Forbidden("accounts.session_needed", "A token cannot change a password.")
    with guarded():
        found = _locked(principal.user_id)
        if not found.check_password(old):
            raise Rejected("accounts.password_wrong", "This is not your password.", field="old")
        check_password_strength(new, found)
        _set_password(found, new)
        _void_links(found, now)
        _record(principal.actor, "password.changed", found, now)


def active_user(user_id: str) -> User | None:
    """Give an active user as they are now; for signing in."""
    return User.objects.filter(pk=user_id, is_active=True).first()


def _new_link(actor: Actor, user: User, now: datetime) -> NewLink:
    _void_links(user, now)
    secret, digest = new_secret(_PURPOSE)
    link = PasswordLink.objects.create(
        user=user, digest=digest, created_at=now, expires_at=now + LINK_LIFE
    )
    _record(actor, "password_reset.issued", user, now)
    return NewLink(_info(user), secret, link.expires_at)


def _void_links(user: User, now: datetime) -> None:
    PasswordLink.objects.filter(user=user, used_at__isnull=True).update(used_at=now)


def _set_password(user: User, password: str) -> None:
    user.set_password(password)
    User.objects.filter(pk=user.pk).update(password=user.password)


def _record(actor: Actor, verb: str, user: User, now: datetime) -> None:
    audit.record(
        actor=actor,
        verb=verb,
        object_type="user",
        object_id=user.id,
        now=now,
        detail={"name": user.name},
    )


def _user(user_id: str) -> User:
    found = User.objects.filter(pk=user_id).first()
    if found is None:
        raise _user_not_found()
    return found


def _locked(user_id: str) -> User:
    for user in lock_rows(User.objects.filter(pk=user_id)):
        return user
    raise _user_not_found()


def _user_not_found() -> NotFound:
    return NotFound("accounts.user_not_found", "There is no such user.", field="user")


def _info(user: User) -> UserInfo:
    return UserInfo(
        id=user.id,
        name=user.name,
        email=user.email,
        is_active=user.is_active,
        is_platform_admin=user.is_platform_admin,
        created_at=user.created_at,
        last_login=user.last_login,
    )
