"""The second factor: codes are good once, secrets are sealed, and who may take it away."""

from dataclasses import replace
from functools import partial

import pyotp
import pytest

from portal.accounts import second_factor, users
from portal.accounts.models import RecoveryCode, SecondFactor, User
from portal.accounts.roles import EVERY_SCOPE, Scope
from portal.core.errors import Conflict, Forbidden, NotFound, Rejected
from portal.core.models import AuditEntry
from tests.builders import NOW, PASSWORD, later, user
from tests.racing import race


@pytest.fixture
def ada(db):
    return user("ada")


def begin(who):
    second_factor.begin_second_factor(who, password=PASSWORD, now=NOW)
    setup = second_factor.setup_of(who)
    assert setup is not None
    return setup.secret


def code(secret, now=NOW):
    return pyotp.TOTP(secret).at(int(now.timestamp()))


def turn_on(who):
    secret = begin(who)
    return secret, second_factor.confirm_second_factor(who, code=code(secret), now=NOW)


def verify(who, text, now=NOW):
    return second_factor.verify_second_factor(user_id=who.user_id, code=text, now=now)


def test_nothing_is_asked_for_until_a_code_confirms(ada):
    secret = begin(ada)
    before = second_factor.has_second_factor(ada.user_id)
    unconfirmed = verify(ada, code(secret))

    with pytest.raises(Rejected, match=r"accounts\.code_wrong"):
        second_factor.confirm_second_factor(ada, code="000000x", now=NOW)
    codes = second_factor.confirm_second_factor(ada, code=code(secret), now=NOW)

    assert (before, unconfirmed) == (False, False)
    assert second_factor.has_second_factor(ada.user_id)
    assert len(set(codes)) == second_factor.recovery_codes_left(ada.user_id) == 10
    assert second_factor.setup_of(ada) is None
    with pytest.raises(Conflict, match=r"accounts\.second_factor_is_on"):
        begin(ada)
    with pytest.raises(Conflict, match=r"accounts\.second_factor_not_begun"):
        second_factor.confirm_second_factor(ada, code=code(secret), now=NOW)


def test_a_code_is_good_once_and_for_its_minute(ada):
    secret, _ = turn_on(ada)
    next_code = code(secret, later(30))

    assert not verify(ada, code(secret))
    assert not verify(ada, code(secret, later(-30)))
    assert not verify(ada, code(secret, later(90)), later(0))
    assert verify(ada, f" {next_code[:3]} {next_code[3:]}", later(30))
    assert not verify(ada, next_code, later(31))
    assert not verify(ada, code(secret, later(60)), later(200))


@pytest.mark.parametrize(
    "text",
    ["", "12345", "1234567", "abcdef", "\uff11\uff12\uff13\uff14\uff15\uff16", "a\0b", "x" * 40],
)
def test_what_is_no_code_is_wrong(ada, text):
    turn_on(ada)

    assert not verify(ada, text)


def test_a_recovery_code_is_good_once_and_for_its_user(ada):
    _, codes = turn_on(ada)
    bob = user("bob")
    turn_on(bob)

    assert not verify(bob, codes[0])
    assert verify(ada, codes[0].upper().replace("-", " "))
    assert not verify(ada, codes[0])
    assert second_factor.recovery_codes_left(ada.user_id) == 9
    assert AuditEntry.objects.filter(verb="second_factor.recovered").count() == 1


def test_no_secret_lies_open(ada):
    secret, codes = turn_on(ada)
    verify(ada, codes[0])

    stored = str(
        [list(model.objects.values()) for model in (SecondFactor, RecoveryCode, AuditEntry, User)]
    )
    assert secret not in stored
    assert not any(one in stored or one.replace("-", "") in stored for one in codes)


def test_turning_on_ends_other_sessions(ada):
    before = User.objects.get(pk=ada.user_id).get_session_auth_hash()

    turn_on(ada)

    assert User.objects.get(pk=ada.user_id).get_session_auth_hash() != before


def test_turning_off_needs_a_code_and_beginning_the_password(ada):
    _, codes = turn_on(ada)
    off = partial(second_factor.disable_second_factor, ada, now=NOW)

    with pytest.raises(Rejected, match=r"accounts\.code_wrong"):
        off(code="000000")
    off(code=codes[0])
    assert not second_factor.has_second_factor(ada.user_id)
    assert not RecoveryCode.objects.exists()
    with pytest.raises(Rejected, match=r"accounts\.password_wrong"):
        second_factor.begin_second_factor(ada, password="wrong", now=NOW)


def test_a_token_changes_nothing_of_it(ada):
    token = replace(ada, token_scopes=EVERY_SCOPE)

    for act in (
        partial(second_factor.begin_second_factor, password=PASSWORD, now=NOW),
        partial(second_factor.confirm_second_factor, code="1", now=NOW),
        partial(second_factor.disable_second_factor, code="1", now=NOW),
        second_factor.setup_of,
    ):
        with pytest.raises(Forbidden, match=r"accounts\.session_needed"):
            act(token)


def test_only_the_whole_platform_resets_it(ada):
    root = user("root", is_platform_admin=True)
    turn_on(ada)
    reset = partial(second_factor.reset_second_factor, user=ada.user_id, now=NOW)

    for who in (ada, replace(root, token_scopes=frozenset({Scope.TENANT_ADMIN}))):
        with pytest.raises(Forbidden, match=r"accounts\.scope_missing"):
            reset(who)
    reset(root)
    assert not second_factor.has_second_factor(ada.user_id)
    assert AuditEntry.objects.get(verb="second_factor.reset").actor_name == "root"
    with pytest.raises(Conflict, match=r"accounts\.second_factor_is_off"):
        reset(root)
    with pytest.raises(NotFound, match=r"accounts\.user_not_found"):
        second_factor.reset_second_factor(root, user="none", now=NOW)


def test_a_deactivated_user_verifies_nothing(ada):
    root = user("root", is_platform_admin=True)
    _, codes = turn_on(ada)

    users.deactivate_user(root, user=ada.user_id, now=NOW)

    assert not verify(ada, codes[0])


def test_another_secret_key_is_told(ada, settings):
    secret, _ = turn_on(ada)
    settings.SECRET_KEY = "another"

    with pytest.raises(Conflict, match=r"accounts\.second_factor_unreadable"):
        verify(ada, code(secret, later(30)), later(30))


@pytest.mark.django_db(transaction=True)
def test_a_code_used_at_once_by_many_is_good_once():
    ada = user("ada")
    secret, codes = turn_on(ada)
    at = later(30)

    by_app = race(*(partial(verify, ada, code(secret, at), at) for _ in range(5)))
    by_recovery = race(*(partial(verify, ada, codes[0], at) for _ in range(5)))

    assert (sum(by_app), sum(by_recovery)) == (1, 1)
