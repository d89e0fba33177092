"""Users and one's own account, as forms without script."""

import pytest
from django.core.cache import cache
from django.test import Client

from portal.core.models import AuditEntry
from tests import builders

NEW = "another long password"
TWICE = {"password": NEW, "again": NEW}


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()


def link_of(answer):
    return "/password?key=" + answer.context["link"].partition("key=")[2]


def test_a_user_is_made_and_sets_a_password_by_the_link(here, caplog):
    root, guest = here.browser("platform_admin"), Client()

    made = root.post("/users/-/new", {"name": "new", "email": "new@example.org"})
    link = link_of(made)
    shown = guest.get(link, follow=True)
    apart = guest.post("/password/new", {"password": NEW, "again": "x"})
    done = guest.post("/password/new", TWICE, follow=True)
    again = Client().get(link, follow=True)

    assert made.headers["Cache-Control"] == "no-store"
    assert shown.redirect_chain == [("/password/new", 302)]
    assert b"<strong>new</strong>" in shown.content
    assert "not the same" in apart.content.decode()
    assert "Sign in with it" in done.content.decode()
    assert guest.login(username="new", password=NEW)
    assert (again.status_code, b"does not work" in again.content) == (404, True)
    secret = link.partition("key=")[2]
    assert secret not in caplog.text
    assert secret not in str(list(AuditEntry.objects.values()))
    assert secret not in root.get(f"/users/{made.context['person'].id}").content.decode()


def test_a_deactivated_user_is_out_at_once_and_stays_out(here):
    root, browser = here.browser("platform_admin"), here.browser("member")
    program = here.program("member")
    member = here.people["member"].user_id

    root.post(f"/users/{member}/deactivate")
    outside = browser.get("/jobs")
    refused = program.get("/api/v1/self")
    root.post(f"/users/{member}/reactivate")

    assert outside.headers["Location"].startswith("/sign-in")
    assert refused.status_code == 401
    assert browser.get("/jobs").status_code == 302
    assert program.get("/api/v1/self").status_code == 401
    assert here.browser("member").get("/jobs").status_code == 200


def test_a_changed_password_ends_other_sessions_only(here):
    mine, other = here.browser("member"), here.browser("member")

    changed = mine.post("/account/password", {"old": builders.PASSWORD, **TWICE}, follow=True)

    assert "is changed" in changed.content.decode()
    assert mine.get("/jobs").status_code == 200
    assert other.get("/jobs").status_code == 302


def test_guesses_of_the_password_are_limited(here):
    browser = here.browser("member")

    for _ in range(8):
        wrong = browser.post("/account/password", {"old": "wrong", **TWICE})
    limited = browser.post("/account/password", {"old": builders.PASSWORD, **TWICE})

    assert "not your password" in wrong.content.decode()
    assert limited.status_code == 429


def test_the_list_finds_people_and_the_page_tells_their_roles(here):
    root = here.browser("platform_admin")

    found = root.get("/users", {"search": "outs"}).content.decode()
    nobody = root.get("/users", {"search": "zzz"}).content.decode()
    member = root.get(f"/users/{here.people['member'].user_id}").content.decode()

    assert "outsider" in found
    assert "Nobody was found" in nobody
    assert "vision" in member
    assert "Your account" in here.browser("member").get("/account").content.decode()


def test_sign_in_says_the_same_of_unknown_and_deactivated_users(here):
    root = here.browser("platform_admin")
    root.post(f"/users/{here.people['viewer'].user_id}/deactivate")

    def refusal(name, password):
        answer = Client().post("/sign-in", {"username": name, "password": password})
        return answer.context["form"].non_field_errors()

    assert refusal("nobody", "x") == refusal("member", "x") == refusal("viewer", builders.PASSWORD)
