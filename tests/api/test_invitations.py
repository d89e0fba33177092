"""Invitations by REST."""

import pytest

from portal.accounts.models import Invitation

JSON = "application/json"


def test_one_is_issued_listed_accepted_and_another_revoked(here):
    boss = here.program("project_admin")
    wish = {"project": "vision", "role": "viewer", "email": "x@example.org"}

    first, second = (
        boss.post("/api/v1/invitations", wish, content_type=JSON).json() for _ in range(2)
    )
    listed = boss.get("/api/v1/invitations", {"project": "vision"})
    joined = here.program("outsider").post(
        "/api/v1/invitations/accept", {"key": first["url"].partition("key=")[2]}, content_type=JSON
    )
    revoked = boss.delete(f"/api/v1/invitations/{second['invitation']['id']}")
    after = boss.get("/api/v1/invitations", {"project": "vision"}).json()["items"]

    assert len(listed.json()["items"]) == 2
    assert "key=" not in listed.content.decode()
    assert (joined.status_code, joined.json()["place"]) == (200, "vision")
    assert (revoked.status_code, after) == (204, [])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"project": "vision", "role": "tenant_admin"}, "accounts.role_misplaced"),
        ({"project": "vision", "role": "root"}, "api.field_invalid"),
        ({"project": "vision", "role": "viewer", "days": 31}, "api.field_invalid"),
        ({"project": "vision", "role": "viewer", "email": "x"}, "api.field_invalid"),
        ({"project": "vi\0sion", "role": "viewer"}, "api.field_invalid"),
        ({"project": "vision", "role": "viewer", "digest": "x"}, "api.unknown_field"),
        ({"tenant": "research", "role": "viewer"}, "accounts.tenant_not_found"),
        ({"role": "viewer"}, "accounts.one_place"),
    ],
)
def test_what_makes_no_sense_invites_nobody(here, body, code):
    answer = here.program("project_admin").post("/api/v1/invitations", body, content_type=JSON)

    assert answer.json()["code"] == code
    assert not Invitation.objects.exists()
