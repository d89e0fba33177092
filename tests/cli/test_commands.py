"""What each command sends, prints and exits with."""

import json

import pytest
from typer.testing import CliRunner

from portal.cli.main import app
from tests.cli.stub import Answer, StubPortal

JOB = {
    "id": "j1",
    "short_name": "vision/12",
    "name": "train",
    "user": "ada",
    "state": "QUEUED",
    "memory_mib": 8192,
    "compute_milli": 250,
    "wait_reason": "No GPU of that size is free.",
    "wait_position": 3,
    "reason": "",
}
ACCEPTED = {"id": "j1", "kind": "job", "state": "QUEUED", "number": 12, "size": 1}
NOT_FOUND = Answer(
    {"code": "jobs.not_found", "detail": "There is no job.", "hint": "Look."}, status=404
)


@pytest.fixture
def stub(monkeypatch):
    with StubPortal() as portal:
        monkeypatch.setenv("GPUCOMMONS_URL", portal.url)
        monkeypatch.setenv("GPUCOMMONS_TOKEN", "gpc_a_b")
        monkeypatch.setattr("portal.cli.client.time.sleep", lambda seconds: None)
        yield portal


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_submit_sends_the_request_in_the_units_of_the_api(stub):
    stub.will(Answer(ACCEPTED, status=201))

    result = run(
        *("submit", "--project", "vision", "--memory", "8GiB", "--compute", "12.5"),
        *("--time-limit", "1h30m", "--env", "A=1", "--env", "B=x=y", "--json"),
        *("--", "python3", "-c", "print('hi')"),
    )

    assert result.exit_code == 0
    assert json.loads(result.stdout) == ACCEPTED
    assert stub.calls[0].path == "/api/v1/jobs"
    assert stub.calls[0].body == {
        "project": "vision",
        "command": ["python3", "-c", "print('hi')"],
        "memory_mib": 8192,
        "compute_milli": 125,
        "time_limit_s": 5400,
        "env": {"A": "1", "B": "x=y"},
    }
    assert stub.calls[0].headers["Authorization"] == "Bearer gpc_a_b"


def test_submit_needs_no_dashes_before_the_command(stub):
    stub.will(Answer(ACCEPTED, status=201))

    run("submit", "--project", "vision", "ls", "-l", "--json")

    assert stub.calls[0].body["command"] == ["ls", "-l", "--json"]


def test_a_lost_answer_is_asked_for_again_with_the_same_key(stub):
    stub.will(Answer({}, status=503), Answer({}, status=502), Answer(ACCEPTED, status=201))

    result = run("submit", "--project", "vision", "--", "true")

    assert result.exit_code == 0
    assert len({call.headers["Idempotency-Key"] for call in stub.calls}) == 1
    assert len(stub.calls) == 3


@pytest.mark.parametrize(
    ("state", "code"), [("SUCCEEDED", 0), ("FAILED", 1), ("CANCELLED", 3), ("TIMED_OUT", 4)]
)
def test_wait_exits_by_the_end_of_the_job(stub, state, code):
    stub.will(JOB, JOB, {**JOB, "state": state})

    result = run("wait", "vision/12", "--json")

    assert result.exit_code == code
    assert json.loads(result.stdout)["state"] == state
    assert "unless_state=QUEUED%2CSTARTING%2CRUNNING" in stub.calls[1].path


def test_wait_gives_up_after_its_own_time(stub):
    stub.will(JOB, JOB)

    result = run("wait", "j1", "--timeout", "0s")

    assert result.exit_code == 5
    assert "still QUEUED" in result.stderr


def test_wait_waits_for_arrays_as_well(stub):
    array = {"id": "a1", "state": "SUCCEEDED", "counts": {"SUCCEEDED": 2}}
    stub.will(NOT_FOUND, array, array)

    result = run("wait", "a1")

    assert result.exit_code == 0
    assert stub.calls[2].path.startswith("/api/v1/arrays/a1")


def test_submit_and_wait_is_one_command(stub):
    stub.will(Answer(ACCEPTED, status=201), {**JOB, "state": "FAILED"})

    result = run("submit", "--project", "vision", "--wait", "--json", "--", "false")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["state"] == "FAILED"


def test_logs_go_on_until_the_last_byte(stub):
    def chunk(data, end, final):
        return Answer(data, headers={"X-Log-Next-Offset": str(end), "X-Log-Final": final})

    stub.will(chunk(b"he", 2, "false"), chunk(b"", 2, "false"), chunk(b"llo\xff\n", 7, "true"))

    result = run("logs", "-f", "vision/12")

    assert result.stdout_bytes == b"hello\xff\n"
    assert ["offset=0" in stub.calls[0].path, "offset=2" in stub.calls[2].path] == [True, True]
    assert "/jobs/vision/12/log" in stub.calls[0].path


def test_cancel_says_what_happens(stub):
    stub.will({**JOB, "state": "RUNNING"}, Answer({**JOB, "state": "RUNNING"}, status=202))

    result = run("cancel", "vision/12")

    assert result.stdout == "j1 RUNNING, is being cancelled\n"
    assert stub.calls[1].path == "/api/v1/jobs/j1/cancel"


def test_ps_prints_a_table(stub):
    stub.will({"items": [JOB], "next_cursor": None})

    result = run("ps", "--project", "vision")

    assert result.stdout.splitlines() == [
        "JOB        NAME   STATE   MEMORY  COMPUTE  USER  ID  NOTE",
        "vision/12  train  QUEUED  8 GiB   25 %     ada   j1  "
        "No GPU of that size is free. (place 3)",
    ]
    assert "state=QUEUED%2CSTARTING%2CRUNNING" in stub.calls[0].path


def test_a_name_cannot_steer_the_terminal(stub):
    stub.will({"items": [{**JOB, "name": "\x1b[2Jgone"}], "next_cursor": None})

    assert "\x1b" not in run("ps", "--all").stdout


def test_usage_is_one_object(stub):
    usage = {"items": [], "total": {"seconds": 0}}
    stub.will(usage)

    result = run("usage", "--since", "2026-03-01", "--by", "job", "--json")

    assert json.loads(result.stdout) == usage
    assert "since=2026-03-01T00%3A00%3A00%2B00%3A00" in stub.calls[0].path
    assert "group=job" in stub.calls[0].path


def test_a_refusal_is_a_sentence_with_a_way_out(stub):
    problem = {"code": "jobs.queue_full", "detail": "Too many wait.", "hint": "Cancel some."}
    stub.will(Answer(problem, status=429), Answer({**problem, "field": "f"}, status=422))

    said = run("submit", "--project", "vision", "--", "true")
    as_json = run("submit", "--project", "vision", "--json", "--", "true")

    assert (said.exit_code, said.stderr) == (7, "gpucommons: Too many wait. Cancel some.\n")
    assert json.loads(as_json.stderr) == {
        "error": {
            "category": "refused",
            "code": "jobs.queue_full",
            "message": "Too many wait.",
            "hint": "Cancel some.",
            "field": "f",
        }
    }
    assert as_json.stdout == ""


def test_a_wrong_token_exits_with_eight(stub):
    stub.will(Answer({"code": "api.token_invalid", "detail": "Unknown token."}, status=401))

    assert run("ps").exit_code == 8


def test_no_token_exits_with_eight(stub, monkeypatch):
    monkeypatch.delenv("GPUCOMMONS_TOKEN")

    result = run("ps")

    assert result.exit_code == 8
    assert stub.calls == []


def test_no_portal_exits_with_six(stub, monkeypatch):
    monkeypatch.setenv("GPUCOMMONS_URL", "http://127.0.0.1:1")

    result = run("ps", "--json")

    assert result.exit_code == 6
    assert json.loads(result.stderr)["error"]["category"] == "unreachable"


@pytest.mark.parametrize(
    "words",
    [
        ("--memory", "8q"),
        ("--memory", "0.0001GiB"),
        ("--compute", "many"),
        ("--time-limit", "soon"),
        ("--env", "A"),
    ],
)
def test_wrong_use_exits_with_two(stub, words):
    result = run("submit", "--project", "vision", *words, "--", "true")

    assert result.exit_code == 2
    assert stub.calls == []


def test_submit_sends_what_a_job_waits_for(stub):
    stub.will(Answer(ACCEPTED, status=201))

    run(
        *("submit", "--project", "vision", "--array", 9, "--max-running", 2),
        *("--after-ok", "vision/1", "--after-ok", "vision/2", "--after-any", "vision/3"),
        *("--not-before", "2026-12-24", "--retry-exit-codes", "75,100-110", "--hold"),
        *("--", "true"),
    )

    assert stub.calls[0].body == {
        "project": "vision",
        "command": ["true"],
        "array_size": 9,
        "max_running": 2,
        "after_ok": ["vision/1", "vision/2"],
        "after_any": ["vision/3"],
        "not_before": "2026-12-24T00:00:00+00:00",
        "retry_exit_codes": ["75", "100-110"],
        "hold": True,
    }


@pytest.mark.parametrize("change", ["hold", "release", "rerun"])
def test_a_job_is_changed_by_its_short_name(stub, change):
    stub.will(Answer({**JOB, "id": "j2"}))

    result = run(change, "vision/12")

    assert (result.exit_code, result.stdout) == (0, "j2\n")
    assert stub.calls[0].path == f"/api/v1/jobs/vision/12/{change}"
    assert stub.calls[0].headers["Idempotency-Key"]


def test_a_template_needs_no_command(stub):
    stub.will(Answer(ACCEPTED, status=201))

    run("submit", "--project", "vision", "--template", "nightly", "--secret", "TOKEN")
    neither = run("submit", "--project", "vision")

    assert stub.calls[0].body == {
        "project": "vision",
        "template": "nightly",
        "secrets": ["TOKEN"],
    }
    assert neither.exit_code == 2


def test_a_script_is_sent_along(stub, tmp_path):
    stub.will(Answer(ACCEPTED, status=201))
    script = tmp_path / "train.sh"
    script.write_text("echo ä\n")

    run("submit", "--project", "vision", "--script", script)
    script.write_bytes(b"\xff")
    unreadable = run("submit", "--project", "vision", "--script", script)

    assert stub.calls[0].body == {
        "project": "vision",
        "script": "echo ä\n",
        "script_name": "train.sh",
    }
    assert unreadable.exit_code == 2
