"""Bad input: a 4xx with a stable code, the field, and nothing half made."""

import pytest

JOB = {"project": "vision", "command": ["true"]}
HUGE = 10**30

BAD_BODIES = [
    ("api.malformed_body", 400, None, "{"),
    ("api.malformed_body", 400, None, "[]"),
    ("api.malformed_body", 400, None, '"x"'),
    ("api.malformed_body", 400, None, b"\xff\xfe"),
    ("api.malformed_body", 400, None, '{"project": NaN}'),
    ("api.malformed_body", 400, None, '{"project": "a", "project": "b"}'),
    ("api.malformed_body", 400, None, "[" * 100_000),
    ("api.malformed_body", 400, None, '{"memory_mib": ' + "9" * 5_000 + "}"),
    ("api.body_too_large", 413, None, b" " * (4 * 1024 * 1024 + 1)),
]

BAD_FIELDS = [
    ("api.field_missing", "project", {"command": ["true"]}),
    ("api.field_missing", "command", {"project": "vision"}),
    ("api.unknown_field", "colour", {**JOB, "colour": "red"}),
    ("api.field_invalid", "project", {**JOB, "project": 7}),
    ("api.field_invalid", "project", {**JOB, "project": "a\0b"}),
    ("api.field_invalid", "project", {**JOB, "project": "\ud800"}),
    ("api.field_invalid", "command", {**JOB, "command": "true"}),
    ("api.field_invalid", "command", {**JOB, "command": []}),
    ("api.field_invalid", "command.0", {**JOB, "command": [1]}),
    ("api.field_invalid", "command.1", {**JOB, "command": ["echo", "a\0b"]}),
    ("api.field_invalid", "command.1", {**JOB, "command": ["echo", "\udfff"]}),
    ("api.field_invalid", "memory_mib", {**JOB, "memory_mib": "8"}),
    ("api.field_invalid", "memory_mib", {**JOB, "memory_mib": 8.5}),
    ("api.field_invalid", "memory_mib", {**JOB, "memory_mib": True}),
    ("api.field_invalid", "memory_mib", {**JOB, "memory_mib": HUGE}),
    ("api.field_invalid", "compute_milli", {**JOB, "compute_milli": -HUGE}),
    ("api.field_invalid", "array_size", {**JOB, "array_size": HUGE}),
    ("api.field_invalid", "form", {**JOB, "form": "cube"}),
    ("api.field_invalid", "priority", {**JOB, "priority": 1}),
    ("api.field_invalid", "env", {**JOB, "env": ["A=1"]}),
    ("api.field_invalid", "env.A", {**JOB, "env": {"A": 1}}),
    ("api.field_invalid", "env.A", {**JOB, "env": {"A": "\0"}}),
    ("jobs.out_of_range", "memory_mib", {**JOB, "memory_mib": 0}),
    ("jobs.out_of_range", "memory_mib", {**JOB, "memory_mib": -1}),
    ("jobs.out_of_range", "compute_milli", {**JOB, "compute_milli": 1001}),
    ("jobs.out_of_range", "time_limit_s", {**JOB, "time_limit_s": 0}),
    ("jobs.never_fits", "memory_mib", {**JOB, "memory_mib": 10_000_000}),
    ("jobs.command_empty", "command", {**JOB, "command": [""]}),
]

BAD_QUERIES = [
    ("/api/v1/jobs?limit=0", "limit"),
    ("/api/v1/jobs?limit=x", "limit"),
    (f"/api/v1/jobs?limit={HUGE}", "limit"),
    ("/api/v1/jobs?colour=red", "colour"),
    ("/api/v1/jobs?state=HAPPY", "state"),
    ("/api/v1/jobs?cursor=%00", "cursor"),
    ("/api/v1/jobs?array=%00", "array"),
    ("/api/v1/usage?since=yesterday", "since"),
    ("/api/v1/usage?since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z", "since"),
    ("/api/v1/usage?group=planet", "group"),
]


@pytest.mark.parametrize(("code", "status", "field", "body"), BAD_BODIES)
def test_a_malformed_body_is_refused(here, code, status, field, body):
    answer = here.program("member").post("/api/v1/jobs", body, content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json().get("field") == field
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(("code", "field", "body"), BAD_FIELDS)
def test_a_wrong_field_is_named(here, code, field, body):
    client = here.program("member")

    answer = client.post("/api/v1/jobs", body, content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer.json()["field"] == field
    assert client.get("/api/v1/jobs").json()["items"] == []


@pytest.mark.parametrize(("address", "field"), BAD_QUERIES)
def test_a_wrong_query_is_named(here, address, field):
    answer = here.program("member").get(address)

    assert answer.status_code == 422
    assert answer.json()["field"] == field


@pytest.mark.parametrize(
    "address",
    [
        "/api/",
        "/api/v1/nope",
        "/api/v1/jobs/",
        "/api/v2/jobs",
        "/api/v1/jobs/%00",
        "/api/v1/jobs/a%0Ab",
        "/api/v1/jobs/vision/99999999999",
    ],
)
def test_an_unknown_address_answers_as_the_api_does(here, address):
    answer = here.program("member").get(address)

    assert answer.status_code == 404
    assert answer.json()["code"] == "api.no_such_address"


@pytest.mark.parametrize("reference", ["01890000-0000-7000-8000-000000000000", "vision/7", "x"])
def test_an_unknown_job_is_not_found(here, reference):
    answer = here.program("member").get(f"/api/v1/jobs/{reference}")

    assert (answer.status_code, answer.json()["code"]) == (404, "jobs.not_found")


def test_a_wrong_method_names_the_right_ones(here):
    answer = here.program("member").put("/api/v1/jobs", {}, content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (405, "api.method_not_allowed")
    assert "POST" in answer.headers["Allow"]


def test_another_media_type_is_refused(here):
    answer = here.program("member").post("/api/v1/jobs", "x=1", content_type="text/csv")

    assert (answer.status_code, answer.json()["code"]) == (415, "api.unsupported_media_type")


def test_a_key_that_is_no_key_is_refused(here):
    answer = here.program("member").post(
        "/api/v1/jobs",
        JOB,
        content_type="application/json",
        headers={"Idempotency-Key": "x" * 201},
    )

    assert answer.json()["code"] == "api.idempotency_key_invalid"


@pytest.mark.parametrize("token", ["", "x", "gpc_", "gpc_abc", "gpc_000000000000_wrong", "é"])
def test_a_wrong_token_is_refused(here, client, token):
    answer = client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {token}"})

    assert (answer.status_code, answer.json()["code"]) == (401, "api.token_invalid")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_nobody_is_asked_to_sign_in(here, client):
    answer = client.get("/api/v1/jobs")

    assert (answer.status_code, answer.json()["code"]) == (401, "api.not_signed_in")


def test_a_browser_needs_its_csrf_token_for_changes(here):
    browser = here.browser("member")
    browser.handler.enforce_csrf_checks = True

    without = browser.post("/api/v1/jobs", JOB, content_type="application/json")
    token = browser.get("/submit").context["csrf_token"]
    with_it = browser.post(
        "/api/v1/jobs",
        JOB,
        content_type="application/json",
        headers={"X-CSRFToken": str(token)},
    )

    assert (without.status_code, without.json()["code"]) == (403, "api.csrf_failed")
    assert with_it.status_code == 201


def test_a_bug_shows_no_details(here, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("secret")

    monkeypatch.setattr("jobs.selectors.job_page", broken)
    client = here.program("member")
    client.raise_request_exception = False

    answer = client.get("/api/v1/jobs")

    assert (answer.status_code, answer.json()["code"]) == (500, "portal.bug")
    assert b"secret" not in answer.content
