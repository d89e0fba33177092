"""Inviting and joining, as forms without script."""

from django.contrib.sessions.models import Session
from django.test import Client

from portal.accounts.models import Membership
from portal.core.models import AuditEntry

NEW = {"name": "new", "password": "a long enough word", "again": "a long enough word"}


def invited(here, who="project_admin", address="/projects/vision/invitations", role="member"):
    answer = here.browser(who).post(address, {"role": role, "days": "7", "email": "x@example.org"})
    return answer, "/invitation?key=" + answer.context["link"].partition("key=")[2]


def role_of(name):
    return Membership.objects.filter(user__name=name).values_list("role", flat=True).first()


def test_a_stranger_makes_an_account_and_joins(here, caplog):
    made, link = invited(here)
    guest = Client()

    offer = guest.get(link, follow=True)
    weak = guest.post("/invitation/join", {**NEW, "password": "12345678", "again": "12345678"})
    taken = guest.post("/invitation/join", {**NEW, "name": "member"})
    done = guest.post("/invitation/join", NEW, follow=True)
    again = Client().get(link, follow=True)

    assert made.headers["Cache-Control"] == "no-store"
    assert b"x@example.org" in made.content
    assert offer.redirect_chain == [("/invitation/join", 302)]
    assert b"<strong>Member</strong>" in offer.content
    assert (weak.status_code, taken.status_code, again.status_code) == (422, 422, 404)
    assert b"Sign in with it" in done.content
    assert role_of("new") == "member"
    assert guest.login(username="new", password=NEW["password"])
    secret = link.partition("key=")[2]
    assert secret not in caplog.text
    assert secret not in str(list(AuditEntry.objects.values()))
    assert (
        secret
        not in here.browser("project_admin").get("/projects/vision/invitations").content.decode()
    )


def test_whoever_is_signed_in_joins_with_one_button(here):
    _, link = invited(here, "tenant_admin", "/tenants/research/invitations", "viewer")
    browser = here.browser("outsider")

    offer = browser.get(link, follow=True)
    joined = browser.post("/invitation/join", {"role": "tenant_admin"}, follow=True)

    assert b"Join as outsider" in offer.content
    assert b"You have joined research" in joined.content
    assert role_of("outsider") == "viewer"


def test_signing_in_on_the_way_keeps_the_invitation(here):
    _, link = invited(here)
    guest = Client()
    guest.get(link)

    inside = guest.post(
        "/sign-in",
        {
            "username": "outsider",
            "password": "a long enough word",
            "next": "/invitation/join",
        },
        follow=True,
    )

    assert b"Join as outsider" in inside.content


def test_an_invitation_is_revoked_on_the_page(here):
    _, link = invited(here)
    browser = here.browser("project_admin")
    [item] = browser.get("/projects/vision/invitations").context["items"]

    gone = browser.post(f"/invitations/{item['one'].id}/revoke", follow=True)

    assert b"None is open" in gone.content
    assert Client().get(link, follow=True).status_code == 404


def test_joining_needs_the_token_of_the_form(here):
    _, link = invited(here)
    browser = here.browser("outsider")
    browser.get(link)
    browser.handler.enforce_csrf_checks = True

    assert browser.post("/invitation/join").status_code == 403
    assert role_of("outsider") is None


def test_an_opened_link_lies_in_the_browser_alone(here):
    _, link = invited(here)
    guest = Client()

    opened = guest.get(link)
    guest.get("/invitation?key=a%00%E2%82%AC%0D%0Ab")

    cookie = opened.cookies["invitation_link"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert opened.headers["Location"] == "/invitation/join"
    assert opened.headers["Cache-Control"] == "no-store"
    assert link.partition("key=")[2] not in str(list(Session.objects.values()))
    assert "sessionid" not in guest.cookies
    assert guest.get("/invitation/join").status_code == 404
