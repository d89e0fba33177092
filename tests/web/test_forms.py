"""Signing in and every change that a page offers."""

import pytest
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile

from jobs.selectors import job_detail
from tests import builders

FORM = {
    "project": "vision",
    "command": "python3 -c \"print('a b')\"",
    "memory_gib": "8",
    "compute_percent": "12.5",
    "form": "any",
    "priority": "high",
    "time_limit_min": "30",
    "max_attempts": "2",
    "env": "A=1\nB=x=y\n",
    "key": "k1",
}


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()


def test_a_person_signs_in_and_out(here, client):
    wrong = client.post("/sign-in", {"username": "member", "password": "wrong"})
    right = client.post("/sign-in", {"username": "member", "password": builders.PASSWORD})
    inside = client.get("/jobs")
    client.post("/sign-out")
    outside = client.get("/jobs")

    assert wrong.status_code == 200
    assert (right.status_code, right.headers["Location"]) == (302, "/")
    assert inside.status_code == 200
    assert outside.headers["Location"] == "/sign-in?next=/jobs"


def test_wrong_passwords_are_limited(here, client):
    for _ in range(8):
        client.post("/sign-in", {"username": "member", "password": "wrong"})

    refused = client.post("/sign-in", {"username": "member", "password": builders.PASSWORD})
    elsewhere = client.post(
        "/sign-in",
        {"username": "member", "password": builders.PASSWORD},
        REMOTE_ADDR="192.0.2.7",
    )

    assert "Too many wrong passwords" in refused.content.decode()
    assert elsewhere.status_code == 302


def test_the_form_submits_a_job(here):
    answer = here.browser("member").post("/submit", FORM)

    detail = job_detail(here.people["member"], answer.headers["Location"].rpartition("/")[2])
    assert detail.command == ("python3", "-c", "print('a b')")
    assert detail.row.memory_mib == 8192
    assert detail.row.compute_milli == 125
    assert detail.row.priority == "high"
    assert detail.time_limit_s == 1800
    assert detail.env_names == ("A", "B")


def test_the_form_sent_twice_makes_one_job(here):
    browser = here.browser("member")

    first = browser.post("/submit", FORM)
    second = browser.post("/submit", FORM)

    assert first.headers["Location"] == second.headers["Location"]
    assert browser.get("/jobs").content.count(b"row-link") == 1


def test_an_array_leads_to_its_members(here):
    browser = here.browser("member")

    answer = browser.post("/submit", {**FORM, "array_size": "3"})

    assert browser.get(answer.headers["Location"]).content.count(b"row-link") == 3


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("command", "echo 'open", "A quote is not closed"),
        ("command", "   ", "required"),
        ("command", "a\0b", "Null characters"),
        ("memory_gib", "0", "greater than or equal"),
        ("memory_gib", "9000", "No GPU of this platform"),
        ("compute_percent", "101", "less than or equal"),
        ("env", "A", "is not NAME=VALUE"),
        ("env", "GPUCOMMONS_X=1", "set by the platform"),
        ("project", "other", "not one of the available choices"),
        ("time_limit_min", "x", "whole number"),
    ],
)
def test_a_mistake_is_told_at_its_field(here, field, value, complaint):
    answer = here.browser("member").post("/submit", {**FORM, field: value})

    assert answer.status_code == 422
    assert complaint in " ".join(answer.context["form"].errors[field])
    assert complaint.encode() in answer.content


def test_the_price_follows_the_form(here):
    browser = here.browser("member")

    whole = browser.get("/submit/estimate").content.decode()
    quarter = browser.get("/submit/estimate?compute_percent=25").content.decode()
    too_large = browser.get("/submit/estimate?memory_gib=9000").content.decode()
    unreadable = browser.get("/submit/estimate?memory_gib=x").content.decode()

    assert "100 % of its" in whole
    assert "25 % of its" in quarter
    assert "No GPU here fits" in too_large
    assert "No GPU here fits" in unreadable


def test_run_again_fills_the_form(here):
    job_id = here.job(command=("echo", "a b"), name="again")

    form = here.browser("member").get(f"/submit?from={job_id}").context["form"]

    assert form["command"].value() == "echo 'a b'"
    assert str(form["memory_gib"].value()) == "8"
    assert str(form["compute_percent"].value()) == "25"


def test_a_job_is_cancelled(here):
    job_id = here.job()
    browser = here.browser("member")

    answer = browser.post(f"/jobs/{job_id}/cancel", follow=True)

    assert "Cancelled" in answer.content.decode()
    assert browser.get(f"/jobs/{job_id}/cancel").status_code == 405


def test_the_members_of_an_array_are_cancelled(here):
    array = here.job(array_size=2)
    browser = here.browser("member")

    answer = browser.post(f"/arrays/{array}/cancel", {"back": "//evil.example/"})

    assert answer.headers["Location"] == "/jobs"
    assert b"2 cancelled" in browser.get(f"/jobs?array={array}").content


def test_a_token_is_issued_shown_once_and_revoked(here):
    browser = here.browser("member")

    issued = browser.post("/tokens", {"name": "ci", "days": "30", "scopes": ["jobs:read"]})
    secret = issued.context["secret"]
    later = browser.get("/tokens")
    [token] = later.context["tokens"]
    browser.post(f"/tokens/{token.id}/revoke")

    assert secret in issued.content.decode()
    assert secret not in later.content.decode()
    assert list(browser.get("/tokens").context["tokens"]) == []


def test_a_limit_is_set_on_its_page(here):
    browser = here.browser("tenant_admin")

    answer = browser.post(
        "/quotas/projects/vision", {"limit_gpus": "1.5", "queued_limit": ""}, follow=True
    )

    assert "The limit of project vision is set" in answer.content.decode()
    assert "1.5" in answer.content.decode()


def test_prices_are_published_on_their_page(here):
    browser = here.browser("platform_admin")

    answer = browser.post("/prices", {"rate_0": "3", "rate_1": "1"}, follow=True)
    wrong = browser.post("/prices", {"rate_0": "-1", "rate_1": "1"})

    assert "3.00 EUR" in answer.content.decode()
    assert wrong.status_code == 422


def test_the_form_takes_conditions_and_the_page_tells_them(here):
    here.job()
    browser = here.browser("member")
    wishes = {
        "after_ok": "vision/1",
        "retry_exit_codes": "75, 100-110",
        "not_before": "2026-12-24T18:00",
    }

    address = browser.post("/submit", {**FORM, **wishes}).headers["Location"]
    shown = browser.get(address).content.decode()
    refused = browser.post("/submit", {**FORM, "key": "k2", "after_any": "vision/99"})

    assert "Waits for vision/1 to succeed." in shown
    assert "exit code 75, 100-110" in shown
    assert "There is no job &#x27;vision/99&#x27;" in refused.content.decode()


def test_a_waiting_job_is_held_and_released(here):
    address = f"/jobs/{here.job()}"
    browser = here.browser("member")

    browser.post(f"{address}/hold")
    held = browser.get(address).content.decode()
    browser.post(f"{address}/release")
    released = browser.get(address).content.decode()

    assert "Held by a person" in held
    assert ">Release<" in held
    assert ">Hold<" in released


def test_a_job_becomes_a_template_that_fills_the_form(here):
    job_id = here.job(name="kept", command=("train", "a b"))
    browser = here.browser("member")

    browser.post(f"/jobs/{job_id}/template", {"name": "nightly"})
    listed = browser.get("/projects/vision/presets").content.decode()
    form = browser.get("/submit?project=vision&template=nightly").content.decode()

    assert "/submit?project=vision&amp;template=nightly" in listed
    assert "train &#x27;a b&#x27;" in form
    assert 'value="kept"' in form


def test_an_administrator_sets_a_secret_that_no_page_shows(here):
    boss = here.browser("project_admin")

    boss.post("/projects/vision/secrets", {"name": "TOKEN", "value": "do-not-tell"})
    page = boss.get("/projects/vision/presets").content.decode()
    refused = boss.post("/projects/vision/secrets", {"name": "1", "value": "do-not-tell"})
    boss.post("/projects/vision/secrets/TOKEN/delete")
    after = boss.get("/projects/vision/presets").content.decode()

    assert "<code>TOKEN</code>" in page
    assert "do-not-tell" not in page
    assert refused.status_code == 422
    assert "do-not-tell" not in refused.content.decode()
    assert "<code>TOKEN</code>" not in after


def test_the_form_takes_a_script_and_files(here):
    browser = here.browser("member")
    uploads = [SimpleUploadedFile("a.txt", b"1"), SimpleUploadedFile("b.txt", b"2")]
    sent = {**FORM, "script": "echo a\r\necho b\r\n", "uploads": uploads}

    address = browser.post("/submit", sent).headers["Location"]

    detail = job_detail(here.people["member"], address.rpartition("/")[2])
    assert detail.files == ("a.txt", "b.txt", "script.sh")
    assert "a.txt, b.txt, script.sh" in browser.get(address).content.decode()


def test_the_page_of_a_job_searches_its_log(here):
    page = here.browser("member").get(f"/jobs/{here.job()}?q=%3Cb%3E").content.decode()

    assert "No line contains this text." in page
    assert 'value="&lt;b&gt;"' in page
