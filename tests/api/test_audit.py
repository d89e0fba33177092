"""The audit: who sees what, filters, pages, sentences."""

import pytest

from portal.accounts.services import create_project, create_tenant, set_membership
from portal.core.audit import SYSTEM, Actor, record
from quotas.services.limits import set_limit
from tests import builders
from tests.builders import NOW, later


def listed(client, **query):
    answer = client.get("/api/v1/audit", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["items"]


def verbs(client, **query):
    return {entry["verb"] for entry in listed(client, limit=200, **query)}


@pytest.fixture
def beside(here):
    """A tenant of which nobody here is an administrator."""
    tenant = create_tenant(actor=SYSTEM, name="Other", slug="other", parent_id=None, now=NOW)
    return create_project(actor=SYSTEM, tenant_id=tenant, name="Secret", slug="secret", now=NOW)


def test_each_administrator_sees_their_own_places_and_nothing_beside(here, beside):
    here.job()
    set_limit(
        actor=SYSTEM, owner_id=here.place.research, limit_milli=1000, queued_limit=None, now=NOW
    )

    projects = {entry["project_id"] for entry in listed(here.program("project_admin"))}
    of_tenant = listed(here.program("tenant_admin"), limit=200)
    of_all = listed(here.program("platform_admin"), limit=200)

    assert projects == {here.place.project}
    assert {entry["tenant_id"] for entry in of_tenant} == {here.place.research}
    assert {"quota.set", "membership.set", "job.submitted"} <= {e["verb"] for e in of_tenant}
    assert beside in {entry["project_id"] for entry in of_all}
    assert {"user.created", "price.published"} <= {entry["verb"] for entry in of_all}


def test_a_token_without_the_tenant_sees_projects_alone(here):
    narrow = here.program("platform_admin", "project:admin")

    assert verbs(narrow) == {"project.created", "membership.set"}
    assert all(entry["project_id"] for entry in listed(narrow))


def test_filters_narrow_the_list(here, beside):
    job_id = here.job()
    root = here.program("platform_admin")

    assert verbs(root, verb="job.") == {"job.submitted"}
    assert verbs(root, actor="member") == {"job.submitted"}
    assert verbs(root, actor=here.people["member"].user_id) == {"job.submitted"}
    assert verbs(root, object=job_id) == {"job.submitted"}
    assert verbs(root, project="secret") == {"project.created"}
    assert verbs(root, since=later(1).isoformat()) == {"job.submitted", "token.issued"}
    assert "job.submitted" not in verbs(root, until=later(1).isoformat())
    assert listed(root, actor="nobody") == []
    refused = here.program("project_admin").get("/api/v1/audit", {"project": "secret"})
    assert (refused.status_code, refused.json()["code"]) == (404, "accounts.project_not_found")


def test_pages_hold_every_entry_once(here):
    root = here.program("platform_admin")
    every = [entry["id"] for entry in listed(root, limit=200)]

    seen, cursor = [], None
    while True:
        answer = root.get("/api/v1/audit", {"limit": 3, **({"cursor": cursor} if cursor else {})})
        seen += [entry["id"] for entry in answer.json()["items"]]
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            break

    assert seen == every == sorted(set(every), reverse=True)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": "0"}, "api.field_invalid"),
        ({"limit": "201"}, "api.field_invalid"),
        ({"actor": "a\0b"}, "api.field_invalid"),
        ({"verb": "x" * 65}, "api.field_invalid"),
        ({"since": "yesterday"}, "api.field_invalid"),
        ({"nonsense": "1"}, "api.unknown_field"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(here, query, code):
    answer = here.program("platform_admin").get("/api/v1/audit", query)

    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_an_entry_is_a_sentence(here):
    job_id = here.job(name="first")
    set_membership(
        actor=Actor("grace"),
        user_id=here.people["outsider"].user_id,
        role=None,
        project_id=here.place.project,
        now=NOW,
    )
    set_limit(
        actor=Actor("edsger"),
        owner_id=here.place.project,
        limit_milli=2500,
        queued_limit=None,
        now=NOW,
    )
    record(
        actor=SYSTEM,
        verb="thing.never_seen",
        object_type="thing",
        object_id="1",
        project_id=here.place.project,
        now=NOW,
    )

    said = {entry["sentence"] for entry in listed(here.program("platform_admin"), limit=200)}

    assert {
        "member submitted a job 'first' in project vision.",
        "grace removed outsider from project vision.",
        "edsger set the limit of project vision from no limit to 2.5 GPUs.",
        "system noted: thing never seen in project vision.",
        "system made the tenant Research below Acme.",
        "system made viewer viewer of project vision.",
    } <= said
    assert any(entry["object_id"] == job_id for entry in listed(here.program("tenant_admin")))


def test_the_page_takes_a_constant_number_of_queries(here, django_assert_max_num_queries):
    for number in range(20):
        builders.user(f"user{number}", role="viewer", project_id=here.place.project)
    browser = here.browser("tenant_admin")

    with django_assert_max_num_queries(18):
        browser.get("/audit")
