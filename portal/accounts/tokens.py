"""API tokens: ``gpc_<prefix>_<secret>``. The secret is shown once; a keyed digest is kept."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils.crypto import constant_time_compare, salted_hmac

from portal.accounts.access import Principal, every_scope_of, principal_of_user
from portal.accounts.models import ApiToken, User
from portal.accounts.roles import Scope
from portal.core import audit
from portal.core.audit import Actor
from portal.core.errors import NotFound, Rejected, Unavailable
from portal.core.locks import guarded

LONGEST_LIFE = timedelta(days=366)
_MARK = "gpc"
_USE_NOTED_EVERY = timedelta(minutes=1)


def issue_token(
    *,
    actor: Actor,
    user_id: str,
    name: str,
    scopes: Iterable[Scope],
    expires_at: datetime,
    now: datetime,
    within: frozenset[Scope] | None = None,
) -> tuple[str, str]:
    """Issue a token of a user; give its id and its text, which is never shown again.

    ``within`` are the scopes of the token with which the caller asks (None for a session): a token
    never begets a wider one. Raises ``accounts.token_scopes``, ``accounts.token_expiry`` or
    ``accounts.user_not_found``.
    """
    wanted = frozenset(scopes)
    if not now < expires_at <= now + LONGEST_LIFE:
        raise Rejected(
            "accounts.token_expiry",
            f"A token expires within {LONGEST_LIFE.days} days from now.",
            hint=f"Choose a time before {(now + LONGEST_LIFE).isoformat()}.",
            field="expires_at",
        )
    with guarded():
        user = User.objects.filter(pk=user_id, is_active=True).first()
        if user is None:
            raise NotFound("accounts.user_not_found", "There is no such active user.")
        owner = Principal(user.id, user.name, user.is_platform_admin, token_scopes=within)
        allowed = every_scope_of(owner)
        if not wanted or not wanted <= allowed:
            excess = ", ".join(sorted(wanted - allowed)) or "none at all"
            raise Rejected(
                "accounts.token_scopes",
                f"A token carries a part of its owner's scopes; asked for: {excess}.",
                hint=f"Choose of: {', '.join(sorted(allowed))}.",
                field="scopes",
            )
        prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        token = ApiToken.objects.create(
            user=user,
            name=name,
            prefix=prefix,
            digest=_digest(secret),
            scopes=sorted(wanted),
            created_at=now,
            expires_at=expires_at,
        )
        audit.record(
            actor=actor,
            verb="token.issued",
            object_type="token",
            object_id=token.id,
            now=now,
            detail={"user_id": user.id, "name": name, "scopes": sorted(wanted)},
        )
    return token.id, f"{_MARK}_{prefix}_{secret}"


def authenticate_token(text: str, now: datetime) -> Principal | None:
    """Tell who holds the token; None when it is unknown, revoked, expired or its owner inactive."""
    mark, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    if mark != _MARK or not secret:
        return None
    token = ApiToken.objects.select_related("user").filter(prefix=prefix).first()
    if token is None or not constant_time_compare(token.digest, _digest(secret)):
        return None
    if token.revoked_at is not None or token.expires_at <= now or not token.user.is_active:
        return None
    _note_use(token, now)
    owner = principal_of_user(token.user)
    scopes = frozenset(Scope(scope) for scope in token.scopes)
    return Principal(owner.user_id, owner.name, owner.is_platform_admin, token_scopes=scopes)


def revoke_token(*, actor: Actor, user_id: str, token_id: str, now: datetime) -> bool:
    """Revoke a token of a user; false when it was revoked before.

    Raises ``accounts.token_not_found`` when the user has no such token.
    """
    with guarded():
        owned = ApiToken.objects.filter(pk=token_id, user_id=user_id)
        if not owned.exists():
            raise NotFound("accounts.token_not_found", "You have no such token.")
        if not owned.filter(revoked_at__isnull=True).update(revoked_at=now):
            return False
        audit.record(
            actor=actor, verb="token.revoked", object_type="token", object_id=token_id, now=now
        )
        return True


def _note_use(token: ApiToken, now: datetime) -> None:
    """Note the use at most once a minute; a busy database must not refuse a good token."""
    before = now - _USE_NOTED_EVERY
    if token.last_used_at is not None and token.last_used_at > before:
        return
    with suppress(Unavailable), guarded():
        ApiToken.objects.filter(
            Q(last_used_at__isnull=True) | Q(last_used_at__lte=before), pk=token.pk
        ).update(last_used_at=now)


def _digest(secret: str) -> str:
    return salted_hmac("portal.accounts.tokens", secret, algorithm="sha256").hexdigest()
