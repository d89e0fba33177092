"""Pages render, say why, escape what users typed and take a constant number of queries."""

import pytest

from jobs.services.cancel import cancel_job
from portal.core.clock import utc_now

HOSTILE = "<script>alert(1)</script>"
PAGES = (
    "/",
    "/jobs",
    "/submit",
    "/gpus",
    "/usage",
    "/usage?by=job",
    "/tokens",
    "/quotas",
    "/prices",
    "/tenants",
)


@pytest.mark.parametrize("who", ["outsider", "viewer", "member", "tenant_admin", "platform_admin"])
@pytest.mark.parametrize("address", PAGES)
def test_a_page_is_shown(here, who, address):
    here.job()

    answer = here.browser(who).get(address)

    assert answer.status_code == 200
    assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"]
    assert b" style=" not in answer.content
    assert b"<h1>" in answer.content


def test_an_empty_list_says_what_to_do_next(here):
    page = here.browser("member").get("/jobs").content.decode()

    assert "gpucommons submit" in page


def test_a_waiting_job_says_why_and_where(here):
    job_id = here.job(name="first")

    page = here.browser("viewer").get(f"/jobs/{job_id}").content.decode()

    assert "Why it waits" in page
    assert "Place 1 in the queue" in page
    assert "submitted by member" in page
    for figure in ("Promised", "Enforced", "Measured", "Billed"):
        assert f"<h3>{figure}</h3>" in page


def test_a_job_is_found_by_its_short_name(here):
    here.job(name="first")

    assert b"first" in here.browser("viewer").get("/jobs/vision/1").content


def test_an_ended_job_cannot_be_cancelled_but_run_again(here):
    job_id = here.job()
    cancel_job(principal=here.people["member"], job_id=job_id, now=utc_now())

    page = here.browser("member").get(f"/jobs/{job_id}").content.decode()

    assert f"/jobs/{job_id}/cancel" not in page
    assert f"?from={job_id}" in page


def test_a_viewer_gets_no_button_to_cancel(here):
    job_id = here.job()

    assert b"/cancel" not in here.browser("viewer").get(f"/jobs/{job_id}").content
    assert b"/cancel" in here.browser("member").get(f"/jobs/{job_id}").content


def test_what_users_typed_is_text(here):
    job_id = here.job(name=HOSTILE, command=("echo", HOSTILE), env={"X": HOSTILE})
    browser = here.browser("member")

    for address in ("/jobs", f"/jobs/{job_id}", f"/submit?from={job_id}"):
        page = browser.get(address).content.decode()
        assert HOSTILE not in page
        assert "&lt;script&gt;" in page


def test_the_values_of_the_environment_are_not_shown(here):
    job_id = here.job(env={"PASSWORD": "hidden-value"})
    browser = here.browser("member")

    assert b"PASSWORD" in browser.get(f"/jobs/{job_id}").content
    assert b"hidden-value" not in browser.get(f"/jobs/{job_id}").content
    assert b"hidden-value" not in browser.get(f"/submit?from={job_id}").content


def test_jobs_are_filtered_by_project_and_state(here):
    here.job(name="waits")
    browser = here.browser("member")

    assert b"waits" in browser.get("/jobs?project=vision&state=QUEUED").content
    assert b"waits" not in browser.get("/jobs?state=ended").content
    assert browser.get("/jobs?project=nope").status_code == 404
    assert browser.get("/jobs?project=%00").status_code == 422


def test_an_array_shows_its_members(here):
    array = here.job(array_size=3, name="part")

    page = here.browser("member").get(f"/jobs?array={array}").content.decode()

    assert "Array of 3 jobs" in page
    assert page.count("row-link") == 3


def test_gpus_are_labelled_as_simulated(here):
    page = here.browser("viewer").get("/gpus").content.decode()

    assert "node-1" in page
    assert "simulated" in page


def test_an_unknown_page_shows_the_way_back(here):
    answer = here.browser("member").get("/nope")

    assert answer.status_code == 404
    assert b"Back to the jobs" in answer.content


def test_lists_take_a_constant_number_of_queries(here, django_assert_max_num_queries):
    for _ in range(20):
        here.job()
    browser = here.browser("member")

    with django_assert_max_num_queries(14):
        browser.get("/jobs")
    with django_assert_max_num_queries(10):
        browser.get("/gpus")
    with django_assert_max_num_queries(18):
        browser.get("/jobs/vision/1")
