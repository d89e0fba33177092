"""The first page: what is mine, what I may use, what is free, and the way to a first job."""

from agent.wire import SharingMode
from jobs.services.cancel import cancel_job
from jobs.services.capacity import free_capacity
from jobs.services.cycle import run_cycle
from portal.core.clock import utc_now
from tests import builders


def test_a_first_time_user_starts_a_job_with_one_click(here):
    browser = here.browser("member")
    page = browser.get("/").content.decode()

    answer = browser.post(
        "/submit",
        {
            "key": "k",
            "project": "vision",
            "name": "hello",
            "command": "sh -c 'echo hello'",
            "compute_percent": "10",
            "max_attempts": "1",
        },
    )

    assert "Run the hello job" in page
    assert answer.status_code == 302
    later = browser.get("/").content.decode()
    assert "Run the hello job" not in later
    assert "vision/1" in later


def test_who_may_submit_nowhere_is_told_whom_to_ask(here):
    for who in ("outsider", "viewer"):
        page = here.browser(who).get("/").content.decode()

        assert "Run the hello job" not in page
        assert "has to give you the role" in page


def test_waiting_jobs_say_why_and_only_mine_are_listed(here):
    here.job(who="project_admin", name="of another")
    mine = here.job(memory_mib=builders.GPU_MIB, compute_milli=1000, name="mine")
    run_cycle(utc_now())
    page = here.browser("member").get("/").content.decode()

    assert "mine" in page
    assert "of another" not in page
    assert "No GPU has" in page

    cancel_job(principal=here.people["member"], job_id=mine, now=utc_now())
    assert "Nothing of yours" in here.browser("member").get("/").content.decode()


def test_what_would_start_now_shrinks_with_what_is_leased(here):
    builders.node("node-2", builders.gpu_info("GPU-9", mode=SharingMode.WHOLE, model="NVIDIA A100"))
    before = {(room.gpu_model, room.mode): room for room in free_capacity()}
    here.job(memory_mib=43_000, compute_milli=400)
    run_cycle(utc_now())
    after = {(room.gpu_model, room.mode): room for room in free_capacity()}

    share, whole = (builders.H200, "share"), ("NVIDIA A100", "whole")
    assert before[share].largest_compute_milli == 1000
    assert (after[share].largest_compute_milli, after[share].largest_memory_mib) == (600, 100_000)
    assert (before[share].untouched, after[share].untouched) == (1, 0)
    assert before[whole] == after[whole]
