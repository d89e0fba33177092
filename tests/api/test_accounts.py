"""Tokens and projects."""

from datetime import timedelta

from django.test import Client

from portal.core.clock import utc_now

JSON = "application/json"


def wish(**changes):
    expires = (utc_now() + timedelta(days=2)).isoformat()
    return {"name": "ci", "scopes": ["jobs:read"], "expires_at": expires, **changes}


def test_a_token_works_until_it_is_revoked(here):
    owner = here.program("member")

    issued = owner.post("/api/v1/tokens", wish(), content_type=JSON)
    program = Client(headers={"Authorization": f"Bearer {issued.json()['secret']}"})
    before = program.get("/api/v1/jobs")
    listed = [token["name"] for token in owner.get("/api/v1/tokens").json()["items"]]
    revoked = owner.delete(f"/api/v1/tokens/{issued.json()['id']}")
    after = program.get("/api/v1/jobs")

    assert issued.status_code == 201
    assert issued.headers["Cache-Control"] == "no-store"
    assert before.status_code == 200
    assert "ci" in listed
    assert revoked.status_code == 204
    assert after.status_code == 401


def test_the_list_never_shows_a_secret(here):
    owner = here.program("member")
    secret = owner.post("/api/v1/tokens", wish(), content_type=JSON).json()["secret"]

    assert secret.rpartition("_")[2] not in owner.get("/api/v1/tokens").content.decode()


def test_a_token_begets_no_wider_token(here):
    narrow = here.program("member", "jobs:read")

    wider = narrow.post(
        "/api/v1/tokens", wish(scopes=["jobs:read", "jobs:write"]), content_type=JSON
    )

    assert (wider.status_code, wider.json()["code"]) == (422, "accounts.token_scopes")


def test_a_token_that_never_expires_is_refused(here):
    answer = here.program("member").post(
        "/api/v1/tokens", wish(expires_at="2999-01-01T00:00:00Z"), content_type=JSON
    )

    assert (answer.json()["code"], answer.json()["field"]) == (
        "accounts.token_expiry",
        "expires_at",
    )


def test_nobody_revokes_the_token_of_another(here):
    issued = here.program("member").post("/api/v1/tokens", wish(), content_type=JSON).json()

    answer = here.program("project_admin").delete(f"/api/v1/tokens/{issued['id']}")

    assert answer.status_code == 404


def test_projects_are_those_with_a_role(here):
    assert [p["slug"] for p in here.program("viewer").get("/api/v1/projects").json()["items"]] == [
        "vision"
    ]
    assert here.browser("outsider").get("/api/v1/projects").json()["items"] == []


def test_the_caller_learns_who_it_is(here):
    shown = here.program("member").get("/api/v1/self").json()

    assert shown["name"] == "member"
    assert "jobs:write" in shown["scopes"]
