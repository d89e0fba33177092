"""The pages of tenants and projects, as forms without script."""

import pytest

from portal.accounts.models import Membership, Tenant
from tests import builders

HOSTILE = "<script>alert(1)</script>"


def role_of(name):
    return Membership.objects.filter(user__name=name).values_list("role", flat=True).first()


def member(user, role, prefix="member-"):
    return {f"{prefix}user": user, f"{prefix}role": role}


def test_a_project_administrator_manages_members(here):
    browser = here.browser("project_admin")

    added = browser.post("/projects/vision/members", member("outsider", "viewer"), follow=True)
    viewer_id = here.people["viewer"].user_id
    browser.post("/projects/vision/members", member(viewer_id, "member"))
    changed = role_of("viewer")
    browser.post("/projects/vision/members/remove", {"user": viewer_id})

    assert b"outsider has the role now" in added.content
    assert (role_of("outsider"), changed, role_of("viewer")) == ("viewer", "member", None)


def test_mistakes_are_told_in_the_form(here):
    browser = here.browser("project_admin")

    unknown = browser.post("/projects/vision/members", member("nobody", "viewer"))
    higher = browser.post("/projects/vision/members", member("viewer", "tenant_admin"))
    last = browser.post("/projects/vision/members", member("project_admin", "viewer"))
    removed = browser.post(
        "/projects/vision/members/remove", {"user": here.people["project_admin"].user_id}
    )
    nul = browser.post("/projects/vision/members", member("a\0b", "viewer"))

    assert "no such active user" in unknown.content.decode()
    assert "not one of the available choices" in higher.content.decode()
    assert "only administrator" in last.content.decode()
    assert "only administrator" in removed.content.decode()
    assert {page.status_code for page in (unknown, higher, last, removed, nul)} == {422}


def test_members_see_the_project_without_buttons(here):
    page = here.browser("viewer").get("/projects/vision").content.decode()

    assert "project_admin" in page
    assert "from tenant" in page
    assert "/members" not in page
    assert "Change the project" not in page
    assert (
        "Change the project"
        in here.browser("tenant_admin").get("/projects/vision").content.decode()
    )


def test_a_tenant_administrator_builds_below(here):
    browser = here.browser("tenant_admin")

    browser.post("/tenants/research/tenants", {"child-name": "Lab", "child-slug": "lab"})
    browser.post("/tenants/lab/projects", {"project-name": HOSTILE, "project-slug": "new"})
    browser.post("/tenants/lab/name", {"name-name": "Laboratory"})
    browser.post("/tenants/lab/members", member("outsider", "tenant_admin"))
    taken = browser.post("/tenants/lab/projects", {"project-name": "V", "project-slug": "vision"})
    page = browser.get("/tenants").content.decode()

    assert "Laboratory" in page
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert role_of("outsider") == "tenant_admin"
    assert (taken.status_code, b"is taken" in taken.content) == (422, True)


def test_a_tenant_is_moved_on_its_page(here):
    browser = here.browser("platform_admin")
    browser.post("/tenants/-/new", {"name": "Other", "slug": "other"})
    other = Tenant.objects.get(slug="other")

    circle = browser.post("/tenants/acme/move", {"move-parent": here.place.research})
    moved = browser.post("/tenants/research/move", {"move-parent": other.id})
    here_again = Tenant.objects.get(slug="research")
    browser.post("/tenants/research/move", {"move-parent": "-"})

    assert circle.status_code == 422
    assert moved.status_code == 302
    assert here_again.parent_id == other.id
    assert Tenant.objects.get(slug="research").parent_id is None


def test_changes_need_the_token_of_the_form(here):
    browser = here.browser("project_admin")
    browser.handler.enforce_csrf_checks = True

    answer = browser.post("/projects/vision/members", member("outsider", "viewer"))

    assert answer.status_code == 403
    assert role_of("outsider") is None


@pytest.mark.parametrize("address", ["/tenants", "/tenants/research", "/projects/vision"])
def test_pages_take_a_constant_number_of_queries(here, address, django_assert_max_num_queries):
    for number in range(20):
        builders.user(f"user{number}", role="viewer", project_id=here.place.project)
    browser = here.browser("tenant_admin")

    with django_assert_max_num_queries(34):
        browser.get(address)
