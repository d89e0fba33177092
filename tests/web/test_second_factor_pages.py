"""Turning the second factor on and off, and signing in with it, without script."""

import time

import pyotp
import pytest
from django.core.cache import cache
from django.test import Client

from portal.accounts import second_factor as accounts
from portal.core.models import AuditEntry
from tests import builders

SIGN_IN = {"username": "member", "password": builders.PASSWORD}


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()


def code(secret, steps=0):
    return pyotp.TOTP(secret).at(int(time.time()) + steps * 30)


@pytest.fixture
def on(here):
    """The member's browser with the factor on; secret and recovery codes."""
    browser = here.browser("member")
    begun = browser.post("/account/second-factor", {"old": builders.PASSWORD}, follow=True)
    secret = begun.context["setup"].secret
    done = browser.post("/account/second-factor/confirm", {"code": code(secret, -1)})
    return browser, secret, done.context["codes"]


def test_it_is_turned_on_with_a_picture_and_recovery_codes(here, caplog):
    browser, other = here.browser("member"), here.browser("member")

    begun = browser.post("/account/second-factor", {"old": builders.PASSWORD}, follow=True)
    secret = begun.context["setup"].secret
    wrong = browser.post("/account/second-factor/confirm", {"code": "000000"})
    done = browser.post("/account/second-factor/confirm", {"code": code(secret)})
    later = browser.get("/account/second-factor")

    page = begun.content.decode()
    assert "<svg" in page
    assert secret in page
    assert " style=" not in page
    assert begun.headers["Cache-Control"] == "no-store"
    assert (wrong.status_code, b"wrong, too old" in wrong.content) == (422, True)
    codes = done.context["codes"]
    assert all(one in done.content.decode() for one in codes)
    assert not any(text in later.content.decode() for text in (secret, *codes))
    assert not any(text in caplog.text for text in (secret, *codes))
    assert secret not in str(list(AuditEntry.objects.values()))
    assert browser.get("/jobs").status_code == 200
    assert other.get("/jobs").status_code == 302


def test_signing_in_asks_for_the_code(here, on):
    _, secret, codes = on
    guest = Client()

    half = guest.post("/sign-in", {**SIGN_IN, "next": "/usage"})
    not_yet = guest.get("/jobs")
    api_not_yet = guest.get("/api/v1/self")
    asked = guest.get(half.headers["Location"])
    wrong = guest.post("/sign-in/code", {"code": "000000"})
    right = guest.post("/sign-in/code", {"code": code(secret, 1)})

    assert half.headers["Location"] == "/sign-in/code"
    assert (not_yet.status_code, api_not_yet.status_code) == (302, 401)
    assert b"Now the code" in asked.content
    assert wrong.status_code == 422
    assert right.headers["Location"] == "/usage"
    assert guest.get("/jobs").status_code == 200
    again = Client()
    again.post("/sign-in", SIGN_IN)
    assert again.post("/sign-in/code", {"code": code(secret, 1)}).status_code == 422
    assert again.post("/sign-in/code", {"code": codes[0]}).status_code == 302


def test_guesses_are_limited(here, on):
    _, secret, _ = on
    guest = Client()
    guest.post("/sign-in", SIGN_IN)

    for _ in range(8):
        guest.post("/sign-in/code", {"code": "000000"})
    limited = guest.post("/sign-in/code", {"code": code(secret, 1)})

    assert limited.status_code == 429
    assert guest.get("/jobs").status_code == 302


def test_the_code_page_is_nothing_without_the_password(here, on):
    assert Client().get("/sign-in/code").headers["Location"] == "/sign-in"

    guest = Client()
    guest.post("/sign-in", {**SIGN_IN, "password": "wrong"})
    assert guest.post("/sign-in/code", {"code": on[2][0]}).headers["Location"] == "/sign-in"


def test_a_half_sign_in_ends_with_time_and_with_deactivation(here, on):
    slow, gone = Client(), Client()
    for guest in (slow, gone):
        guest.post("/sign-in", SIGN_IN)
    session = slow.session
    session["half_signed_in"] = {**session["half_signed_in"], "at": int(time.time()) - 601}
    session.save()

    here.browser("platform_admin").post(f"/users/{here.people['member'].user_id}/deactivate")

    for guest in (slow, gone):
        answer = guest.post("/sign-in/code", {"code": on[2][0]})
        assert answer.headers["Location"] == "/sign-in"


def test_it_is_turned_off_with_a_code(here, on):
    browser, _, codes = on

    wrong = browser.post("/account/second-factor/disable", {"code": "000000"})
    off = browser.post("/account/second-factor/disable", {"code": codes[0]}, follow=True)

    assert wrong.status_code == 422
    assert b"The second factor is off" in off.content
    assert Client().post("/sign-in", SIGN_IN).headers["Location"] == "/"


def test_an_administrator_removes_it(here, on):
    root = here.browser("platform_admin")
    member = here.people["member"].user_id

    before = root.get(f"/users/{member}")
    root.post(f"/users/{member}/second-factor")

    assert b"Remove the second factor" in before.content
    assert not accounts.has_second_factor(member)
    assert (
        here.program("platform_admin").delete(f"/api/v1/users/{member}/second-factor").status_code
        == 409
    )
