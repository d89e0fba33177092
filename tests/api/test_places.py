"""Tenants, projects and members by REST."""

import pytest

from portal.accounts.models import Membership

JSON = "application/json"


def test_a_tenant_is_made_renamed_moved_and_staffed(here):
    root = here.program("platform_admin")

    made = root.post("/api/v1/tenants", {"name": "Lab", "slug": "lab"}, content_type=JSON)
    changed = root.patch(
        "/api/v1/tenants/lab", {"name": "Labs", "parent": "research"}, content_type=JSON
    )
    staffed = root.put(
        "/api/v1/tenants/lab/members/outsider", {"role": "tenant_admin"}, content_type=JSON
    )
    listed = here.program("tenant_admin").get("/api/v1/tenants").json()["items"]

    assert (made.status_code, made.json()["parent_id"]) == (201, None)
    assert (changed.json()["name"], changed.json()["parent_id"]) == ("Labs", here.place.research)
    assert staffed.json()["role"] == "tenant_admin"
    assert [(one["slug"], one["may_administer"]) for one in listed] == [
        ("research", True),
        ("lab", True),
    ]


def test_a_change_in_two_parts_is_whole_or_not_at_all(here_for_real):
    root = here_for_real.program("platform_admin")

    refused = root.patch(
        "/api/v1/tenants/acme", {"name": "Changed", "parent": "research"}, content_type=JSON
    )

    assert (refused.status_code, refused.json()["code"]) == (409, "accounts.tenant_in_circle")
    assert root.get("/api/v1/tenants/acme").json()["name"] == "Acme"


def test_a_project_is_made_once_for_a_key(here):
    boss = here.program("tenant_admin")
    wish = {"name": "New", "slug": "new", "tenant": "research"}

    first, again = (
        boss.post("/api/v1/projects", wish, content_type=JSON, headers={"Idempotency-Key": "k"})
        for _ in range(2)
    )
    renamed = boss.patch("/api/v1/projects/new", {"name": "Newer"}, content_type=JSON)

    assert first.json() == again.json()
    assert renamed.json() == {**first.json(), "name": "Newer"}


@pytest.mark.parametrize(
    ("who", "call", "body", "code"),
    [
        (
            "project_admin",
            ("put", "projects/vision/members/viewer"),
            {"role": "tenant_admin"},
            "api.field_invalid",
        ),
        (
            "project_admin",
            ("put", "projects/vision/members/viewer"),
            {"role": "member", "user_id": "x"},
            "api.unknown_field",
        ),
        (
            "project_admin",
            ("put", "projects/vision/members/nobody"),
            {"role": "member"},
            "accounts.user_not_found",
        ),
        (
            "project_admin",
            ("delete", "projects/vision/members/project_admin"),
            None,
            "accounts.last_project_admin",
        ),
        (
            "project_admin",
            ("patch", "projects/vision"),
            {"name": "x", "tenant_id": "y"},
            "api.unknown_field",
        ),
        ("project_admin", ("patch", "projects/vision"), {"name": "a\0b"}, "api.field_invalid"),
        ("project_admin", ("patch", "projects/vision"), {"name": "x" * 101}, "api.field_invalid"),
        ("tenant_admin", ("patch", "tenants/research"), {"path": "/"}, "api.unknown_field"),
        ("tenant_admin", ("patch", "tenants/research"), {}, "api.nothing_to_change"),
        (
            "tenant_admin",
            ("patch", "tenants/research"),
            {"parent": None},
            "accounts.tenant_not_found",
        ),
        ("tenant_admin", ("post", "tenants"), {"name": "T", "slug": "t"}, "accounts.scope_missing"),
        (
            "tenant_admin",
            ("post", "projects"),
            {"name": "T", "slug": "T!", "tenant": "research"},
            "accounts.slug_invalid",
        ),
        (
            "tenant_admin",
            ("put", "tenants/acme/members/tenant_admin"),
            {"role": "tenant_admin"},
            "accounts.tenant_not_found",
        ),
    ],
)
def test_nobody_climbs(here, who, call, body, code):
    before = list(Membership.objects.order_by("id").values())
    client = here.program(who)
    method, address = call

    answer = getattr(client, method)(f"/api/v1/{address}", body, content_type=JSON)

    assert answer.json()["code"] == code
    assert list(Membership.objects.order_by("id").values()) == before
