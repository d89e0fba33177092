"""Users by REST."""

import pytest

from portal.accounts.models import User

JSON = "application/json"


def test_a_user_is_made_listed_deactivated_and_given_a_link(here):
    root = here.program("platform_admin")

    made = root.post("/api/v1/users", {"name": "new"}, content_type=JSON)
    user_id = made.json()["user"]["id"]
    found = root.get("/api/v1/users", {"search": "new"}).json()["items"]
    link = root.post(f"/api/v1/users/{user_id}/password-link")
    ended = root.post(f"/api/v1/users/{user_id}/deactivate").json()
    back = root.post(f"/api/v1/users/{user_id}/reactivate").json()

    assert (made.status_code, made.headers["Cache-Control"]) == (201, "no-store")
    assert "/password?key=" in link.json()["url"]
    assert link.json()["url"] != made.json()["url"]
    assert [one["id"] for one in found] == [user_id]
    assert (ended["is_active"], back["is_active"]) == (False, True)
    assert "password" not in str(root.get(f"/api/v1/users/{user_id}").json())


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"name": "member"}, "accounts.user_taken"),
        ({"name": "a\0b"}, "api.field_invalid"),
        ({"name": "x" * 151}, "api.field_invalid"),
        ({"name": "x", "email": "nonsense"}, "api.field_invalid"),
        ({"name": "x", "password": "12345678"}, "api.unknown_field"),
        ({"name": "x", "is_active": False}, "api.unknown_field"),
        ({"name": "x", "id": "y"}, "api.unknown_field"),
    ],
)
def test_a_body_with_more_or_worse_is_refused(here, body, code):
    before = User.objects.count()

    answer = here.program("platform_admin").post("/api/v1/users", body, content_type=JSON)

    assert answer.json()["code"] == code
    assert User.objects.count() == before


def test_a_narrow_token_makes_no_administrator(here):
    narrow = here.program("platform_admin", "tenant:admin", "fleet:admin")

    answer = narrow.post(
        "/api/v1/users", {"name": "x", "is_platform_admin": True}, content_type=JSON
    )

    assert (answer.status_code, answer.json()["code"]) == (403, "accounts.scope_missing")
