"""The second factor: six digits of an app (RFC 6238), or a recovery code.

The shared secret is encrypted with a key derived from the portal's own; of recovery codes a keyed
digest is kept. A code is good once: the time step that was used is remembered.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from datetime import datetime

import pyotp
from django.db.models import F
from django.utils.crypto import constant_time_compare, salted_hmac

from portal.accounts.access import Principal, access_whole_platform
from portal.accounts.models import RecoveryCode, SecondFactor, User
from portal.core import audit, sealing
from portal.core.audit import Actor
from portal.core.errors import Conflict, Forbidden, NotFound, Rejected
from portal.core.locks import guarded, lock_rows

ISSUER = "GPU Commons"
STEP_S = 30
STEPS_AROUND = 1
RECOVERY_CODES = 10


@dataclass(frozen=True)
class Setup:
    """What an app needs to know; shown until the first code confirms that it does."""

    secret: str
    uri: str


def has_second_factor(user_id: str) -> bool:
    return SecondFactor.objects.filter(pk=user_id, confirmed_at__isnull=False).exists()


def recovery_codes_left(user_id: str) -> int:
    return RecoveryCode.objects.filter(user_id=user_id, used_at__isnull=True).count()


def begin_second_factor(principal: Principal, *, password: str, now: datetime) -> None:
    """Draw a secret that the next code has to confirm.

    Raises ``accounts.session_needed``, ``accounts.password_wrong`` or
    ``accounts.second_factor_is_on``.
    """
    _session_only(principal)
    with guarded():
        user = _user(principal.user_id)
        if not user.check_password(password):
            raise Rejected("accounts.password_wrong", "This is not your password.", field="old")
        if has_second_factor(user.id):
            raise Conflict(
                "accounts.second_factor_is_on",
                "The second factor is on already.",
                hint="Turn it off first.",
            )
        SecondFactor.objects.update_or_create(
            user=user,
            defaults={
                "sealed_secret": sealing.seal(pyotp.random_base32(), _purpose(user.id)),
                "created_at": now,
                "last_step": 0,
            },
        )


def setup_of(principal: Principal) -> Setup | None:
    """Give what the app needs while it is not confirmed; None at any other time."""
    _session_only(principal)
    factor = SecondFactor.objects.filter(pk=principal.user_id, confirmed_at__isnull=True).first()
    if factor is None:
        return None
    secret = _unseal(factor)
    uri = pyotp.TOTP(secret).provisioning_uri(name=principal.name, issuer_name=ISSUER)
    return Setup(secret, uri)


def confirm_second_factor(principal: Principal, *, code: str, now: datetime) -> list[str]:
    """Turn the factor on and end other sessions; give the recovery codes, shown this once.

    Raises ``accounts.code_wrong`` or ``accounts.second_factor_not_begun``.
    """
    _session_only(principal)
    with guarded():
        user = _user(principal.user_id)
        factor = SecondFactor.objects.filter(user=user, confirmed_at__isnull=True).first()
        if factor is None:
            raise Conflict(
                "accounts.second_factor_not_begun",
                "There is nothing to confirm.",
                hint="Begin anew.",
            )
        if not _take_step(factor, code, now):
            raise _code_wrong()
        SecondFactor.objects.filter(pk=factor.pk).update(confirmed_at=now)
        User.objects.filter(pk=user.pk).update(session_generation=F("session_generation") + 1)
        RecoveryCode.objects.filter(user=user).delete()
        codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
        RecoveryCode.objects.bulk_create(
            RecoveryCode(user=user, digest=_digest(user.id, code)) for code in codes
        )
        _record(principal.actor, "second_factor.enabled", user, now)
    return codes


def verify_second_factor(*, user_id: str, code: str, now: datetime) -> bool:
    """Use up a code of the app or a recovery code; false when it is neither."""
    with guarded():
        user = _user(user_id)
        factor = SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).first()
        if factor is None or not user.is_active:
            return False
        if _take_step(factor, code, now):
            return True
        digest = _digest(user.id, code)
        if RecoveryCode.objects.filter(user=user, digest=digest, used_at__isnull=True).update(
            used_at=now
        ):
            _record(Actor(user.name, user.id), "second_factor.recovered", user, now)
            return True
        return False


def disable_second_factor(principal: Principal, *, code: str, now: datetime) -> None:
    """Turn one's own factor off, which needs a code of it. Raises ``accounts.code_wrong``."""
    _session_only(principal)
    with guarded():
        if not verify_second_factor(user_id=principal.user_id, code=code, now=now):
            raise _code_wrong()
        user = _user(principal.user_id)
        _forget(user)
        _record(principal.actor, "second_factor.disabled", user, now)


def reset_second_factor(principal: Principal, *, user: str, now: datetime) -> None:
    """Take the factor from a user who has lost it; for administrators of the platform.

    Raises ``accounts.user_not_found`` or ``accounts.second_factor_is_off``.
    """
    access_whole_platform(principal)
    with guarded():
        found = _user(user)
        if not has_second_factor(found.id):
            raise Conflict("accounts.second_factor_is_off", f"{found.name} has no second factor.")
        _forget(found)
        _record(principal.actor, "second_factor.reset", found, now)


def _take_step(factor: SecondFactor, code: str, now: datetime) -> bool:
    """Find the time step that the code is of and use it up, with all before it."""
    digits = code.replace(" ", "")
    if len(digits) != 6 or not (digits.isascii() and digits.isdigit()):
        return False
    totp = pyotp.TOTP(_unseal(factor))
    current = int(now.timestamp()) // STEP_S
    for step in range(current - STEPS_AROUND, current + STEPS_AROUND + 1):
        if step > factor.last_step and constant_time_compare(totp.generate_otp(step), digits):
            rows = SecondFactor.objects.filter(pk=factor.pk, last_step__lt=step)
            return bool(rows.update(last_step=step))
    return False


def _forget(user: User) -> None:
    SecondFactor.objects.filter(user=user).delete()
    RecoveryCode.objects.filter(user=user).delete()


def _session_only(principal: Principal) -> None:
    if principal.token_scopes is not None:
        raise Forbidden(
            "accounts.session_needed",
            "A token cannot change how its owner signs in.",
            hint="Sign in with a browser.",
        )


def _user(user_id: str) -> User:
    """Locked: codes of one user are taken one after another."""
    for user in lock_rows(User.objects.filter(pk=user_id)):
        return user
    raise NotFound("accounts.user_not_found", "There is no such user.", field="user")


def _code_wrong() -> Rejected:
    return Rejected(
        "accounts.code_wrong",
        "This code is wrong, too old or was used.",
        hint="Wait for the next one; the clock of the phone must be right.",
        field="code",
    )


def _new_recovery_code() -> str:
    text = base64.b32encode(secrets.token_bytes(10)).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, 16, 4))


def _digest(user_id: str, code: str) -> str:
    text = "".join(code.split()).replace("-", "").lower()
    return salted_hmac(
        "portal.accounts.recovery", f"{user_id}:{text}", algorithm="sha256"
    ).hexdigest()


def _unseal(factor: SecondFactor) -> str:
    try:
        return sealing.unseal(factor.sealed_secret, _purpose(factor.user_id))
    except sealing.Unreadable as error:
        raise Conflict(
            "accounts.second_factor_unreadable",
            "The second factor was made under another secret key of the portal.",
            hint="Ask an administrator of the platform to reset it.",
        ) from error


def _purpose(user_id: str) -> str:
    """Another key for each user: a secret moved to another row does not open."""
    return f"second_factor:{user_id}"


def _record(actor: Actor, verb: str, user: User, now: datetime) -> None:
    audit.record(
        actor=actor,
        verb=verb,
        object_type="user",
        object_id=user.id,
        now=now,
        detail={"name": user.name},
    )
