"""Submit, list, read, cancel and wait."""

import threading
import time

import pytest
from django.db import connection

from jobs.services.cancel import cancel_job
from portal.core.clock import utc_now

JSON = "application/json"
JOB = {"project": "vision", "command": ["true"], "memory_mib": 8192, "compute_milli": 250}


def submit(client, body=JOB, **headers):
    return client.post("/api/v1/jobs", body, content_type=JSON, headers=headers)


def test_a_job_is_accepted_and_shown(here):
    client = here.program("member")

    accepted = submit(client)
    shown = client.get(f"/api/v1/jobs/{accepted.json()['id']}").json()

    assert accepted.status_code == 201
    assert accepted.json()["state"] == "QUEUED"
    assert accepted.json()["kind"] == "job"
    assert shown["short_name"] == "vision/1"
    assert shown["command"] == ["true"]
    assert [step["event"] for step in shown["transitions"]] == ["submitted"]
    assert shown["usage"]["cost"]["amount_micros"] == 0


def test_a_job_is_found_by_its_short_name(here):
    job_id = here.job()

    shown = here.program("viewer").get("/api/v1/jobs/vision/1").json()

    assert shown["id"] == job_id


def test_an_array_is_one_submission(here):
    client = here.program("member")

    accepted = submit(client, {**JOB, "array_size": 3}).json()
    shown = client.get(f"/api/v1/arrays/{accepted['id']}").json()
    members = client.get("/api/v1/jobs", {"array": accepted["id"]}).json()["items"]

    assert accepted["kind"] == "array"
    assert shown["state"] == "QUEUED"
    assert shown["counts"] == {"QUEUED": 3}
    assert sorted(job["array_index"] for job in members) == [0, 1, 2]


def test_the_same_key_gives_the_same_job(here):
    client = here.program("member")

    first = submit(client, **{"Idempotency-Key": "k1"})
    second = submit(client, **{"Idempotency-Key": "k1"})

    assert second.json() == first.json()
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(client.get("/api/v1/jobs").json()["items"]) == 1


def test_the_same_key_for_another_request_is_refused(here):
    client = here.program("member")
    submit(client, **{"Idempotency-Key": "k1"})

    other = submit(client, {**JOB, "memory_mib": 1}, **{"Idempotency-Key": "k1"})

    assert other.status_code == 422
    assert other.json()["code"] == "idempotency.key_reused"


def test_a_refused_submission_leaves_nothing_and_its_key_free(here_for_real):
    client = here_for_real.program("member")

    refused = submit(client, {**JOB, "memory_mib": 0}, **{"Idempotency-Key": "k1"})
    mended = submit(client, **{"Idempotency-Key": "k1"})

    assert refused.status_code == 422
    assert refused.json()["field"] == "memory_mib"
    assert mended.status_code == 201
    assert mended.json()["number"] == 1


def test_pages_go_on_where_the_last_one_ended(here):
    for _ in range(5):
        here.job()
    client = here.program("viewer")

    first = client.get("/api/v1/jobs", {"limit": 3}).json()
    rest = client.get("/api/v1/jobs", {"limit": 3, "cursor": first["next_cursor"]}).json()

    assert [job["number"] for job in first["items"] + rest["items"]] == [5, 4, 3, 2, 1]
    assert rest["next_cursor"] is None


def test_jobs_are_listed_by_state(here):
    here.job()
    client = here.program("viewer")

    waiting = client.get("/api/v1/jobs", {"state": "queued,RUNNING"}).json()["items"]
    ended = client.get("/api/v1/jobs", {"state": "FAILED"}).json()["items"]

    assert [job["state"] for job in waiting] == ["QUEUED"]
    assert ended == []


def test_an_outsider_sees_no_job(here):
    job_id = here.job()
    outsider = here.program("outsider", "fleet:read")

    assert outsider.get(f"/api/v1/jobs/{job_id}").status_code == 404
    assert here.browser("outsider").get(f"/api/v1/jobs/{job_id}").status_code == 404
    assert here.browser("outsider").get("/api/v1/jobs").json()["items"] == []


def test_a_waiting_job_is_cancelled(here):
    job_id = here.job()
    client = here.program("member")

    cancelled = client.post(f"/api/v1/jobs/{job_id}/cancel", content_type=JSON)
    again = client.post(f"/api/v1/jobs/{job_id}/cancel", content_type=JSON)

    assert cancelled.status_code == 202
    assert cancelled.json()["state"] == "CANCELLED"
    assert again.json()["state"] == "CANCELLED"


def test_the_log_of_a_job_that_never_ran_is_empty(here):
    job_id = here.job()

    log = here.program("viewer").get(f"/api/v1/jobs/{job_id}/log")

    assert log.content == b""
    assert log.headers["Content-Type"].startswith("text/plain")
    assert log.headers["X-Log-Next-Offset"] == "0"
    assert log.headers["X-Log-Final"] == "false"


def test_a_poll_answers_when_its_time_is_over(here):
    job_id = here.job()
    began = time.monotonic()

    shown = here.program("viewer").get(
        f"/api/v1/jobs/{job_id}", {"wait_ms": 300, "unless_state": "QUEUED"}
    )

    assert shown.json()["state"] == "QUEUED"
    assert 0.25 < time.monotonic() - began < 5


def test_a_poll_answers_as_soon_as_the_state_changes(here_for_real):
    here = here_for_real
    job_id = here.job()

    def cancel_soon():
        time.sleep(0.2)
        cancel_job(principal=here.people["member"], job_id=job_id, now=utc_now())
        connection.close()

    other = threading.Thread(target=cancel_soon)
    client = here.program("viewer")
    began = time.monotonic()
    other.start()
    shown = client.get(f"/api/v1/jobs/{job_id}", {"wait_ms": 20_000, "unless_state": "QUEUED"})
    other.join()

    assert shown.json()["state"] == "CANCELLED"
    assert time.monotonic() - began < 10


def test_submitting_and_reading_take_few_queries(here, django_assert_max_num_queries):
    client = here.program("member")
    submit(client)

    with django_assert_max_num_queries(22):
        accepted = submit(client, **{"Idempotency-Key": "k1"})
    with django_assert_max_num_queries(11):
        client.get(f"/api/v1/jobs/{accepted.json()['id']}")


def test_conditions_are_sent_read_and_changed(here):
    here.job(array_size=3)
    program = here.program("member")
    sent = {
        "project": "vision",
        "command": ["true"],
        "array_size": 2,
        "max_running": 1,
        "retry_exit_codes": [75, "100-110"],
        "not_before": "2026-12-24T18:00:00+01:00",
        "after_ok": ["vision/1"],
        "after_any": ["vision/2"],
        "hold": True,
    }

    accepted = program.post("/api/v1/jobs", sent, content_type="application/json").json()
    address = f"/api/v1/jobs/{accepted['job_ids'][0]}"
    read = program.get(address).json()
    released = program.post(f"{address}/release", {}, content_type="application/json").json()
    held = program.post(f"{address}/hold", {}, content_type="application/json").json()

    assert read["retry_exit_codes"] == ["75", "100-110"]
    assert read["not_before"] == "2026-12-24T17:00:00Z"
    assert [(one["short_name"], one["need"]) for one in read["dependencies"]] == [
        ("vision/2", "any"),
        ("vision/1", "ok"),
    ]
    assert (read["wish"], read["wait_code"], read["array_max_running"]) == ("hold", "jobs.held", 1)
    assert (released["wish"], released["wait_code"]) == ("run", "jobs.waits_for_jobs")
    assert held["wait_code"] == "jobs.held"
    assert program.get(f"/api/v1/arrays/{accepted['id']}").json()["max_running"] == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("not_before", "2026-12-24T18:00:00"),
        ("not_before", "soon"),
        ("not_before", 5),
        ("hold", "true"),
        ("retry_exit_codes", [True]),
        ("retry_exit_codes", ["x"]),
        ("retry_exit_codes", "75"),
        ("after_ok", "vision/1"),
        ("after_ok", ["a\0b"]),
        ("max_running", 1),
    ],
)
def test_a_condition_of_the_wrong_kind_is_refused_by_its_name(here, field, value):
    answer = here.program("member").post(
        "/api/v1/jobs",
        {"project": "vision", "command": ["true"], field: value},
        content_type="application/json",
    )

    assert answer.status_code == 422
    assert answer.json()["field"].startswith(field)


def test_a_job_is_run_again(here):
    job_id = here.job(name="again")
    program = here.program("member")

    accepted = program.post(
        f"/api/v1/jobs/{job_id}/rerun", {}, content_type="application/json"
    ).json()

    assert program.get(f"/api/v1/jobs/{accepted['id']}").json()["name"] == "again"
    assert accepted["number"] == 2


def test_a_template_gives_what_was_not_sent(here):
    program = here.program("member")
    kept = {"command": ["train", "x"], "memory_mib": 8192, "priority": "high", "env": {"A": "1"}}

    saved = program.post(
        "/api/v1/projects/vision/templates",
        {"name": "nightly", "request": kept},
        content_type="application/json",
    )
    accepted = program.post(
        "/api/v1/jobs",
        {"project": "vision", "template": "nightly", "priority": "low"},
        content_type="application/json",
    ).json()
    read = program.get(f"/api/v1/jobs/{accepted['id']}").json()
    unknown = program.post(
        "/api/v1/jobs",
        {"project": "vision", "template": "none"},
        content_type="application/json",
    )
    neither = program.post("/api/v1/jobs", {"project": "vision"}, content_type="application/json")

    assert saved.json()["items"][0]["request"] == kept
    assert (read["command"], read["memory_mib"]) == (["train", "x"], 8192)
    assert (read["priority"], read["env_names"]) == ("low", ["A"])
    assert (unknown.status_code, unknown.json()["field"]) == (404, "template")
    assert (neither.status_code, neither.json()["field"]) == (422, "command")


def test_the_value_of_a_secret_is_never_told_again(here):
    boss = here.program("project_admin")

    answer = boss.put(
        "/api/v1/projects/vision/secrets/TOKEN",
        {"value": "do-not-tell"},
        content_type="application/json",
    )
    listed = boss.get("/api/v1/projects/vision/secrets")

    assert answer.status_code == 204
    assert b"do-not-tell" not in listed.content
    assert listed.json()["items"][0]["name"] == "TOKEN"


def test_a_script_is_run_by_bash_unless_told_otherwise(here):
    program = here.program("member")

    def submitted(**body):
        answer = program.post(
            "/api/v1/jobs", {"project": "vision", **body}, content_type="application/json"
        )
        assert answer.status_code == 201, answer.json()
        return program.get(f"/api/v1/jobs/{answer.json()['id']}").json()

    alone = submitted(script="echo hello\n")
    beside = submitted(
        script="x",
        script_name="a.py",
        command=["python3", "a.py"],
        files=[{"path": "d/b", "content_base64": "AA==", "executable": True}],
    )

    assert (alone["command"], alone["files"]) == (["bash", "script.sh"], ["script.sh"])
    assert (beside["command"], beside["files"]) == (["python3", "a.py"], ["d/b", "a.py"])


@pytest.mark.parametrize(
    "body",
    [
        {"script": "x", "script_name": "../x"},
        {"script": "x" * 262_145},
        {"files": [{"path": "a", "content_base64": "?"}], "command": ["x"]},
        {"files": [{"path": "/a", "content_base64": ""}], "command": ["x"]},
        {"files": "a", "command": ["x"]},
    ],
)
def test_files_that_cannot_be_taken_are_refused(here, body):
    answer = here.program("member").post(
        "/api/v1/jobs", {"project": "vision", **body}, content_type="application/json"
    )

    assert answer.status_code == 422
