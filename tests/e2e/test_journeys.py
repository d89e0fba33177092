"""What people come for, in a real browser on the running product with real jobs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.browser import Person, launched, sync_playwright
from tests.e2e.jobs import command, new_witness
from tests.e2e.system import Rest, Stand, System

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
Opens = Callable[..., Person]
PAGES = (
    "/",
    "/jobs?state=all",
    "/submit",
    "/gpus",
    "/usage?by=day",
    "/quotas",
    "/prices",
    "/tokens",
    "/tenants",
    "/projects/vision",
    "/projects/vision/invitations",
    "/account",
    "/account/second-factor",
)
ADMIN_PAGES = ("/nodes", "/tenants/research", "/users", "/audit")


@pytest.fixture(scope="module")
def here() -> Iterator[System]:
    with Stand() as stand:
        yield stand.sound()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        opened = launched(playwright)
        yield opened
        opened.close()


@pytest.fixture
def opens(here: System, browser: Any) -> Iterator[Opens]:
    """Open a window for someone; at the end no console may have complained."""
    opened: list[Person] = []

    def window(name: str | None = None, **look: Any) -> Person:
        person = Person(browser, here, **look)
        opened.append(person)
        if name:
            person.sign_in(user(here, name))
        return person

    yield window
    complaints = [complaint for person in opened for complaint in person.complaints]
    for person in opened:
        person.context.close()
    assert complaints == []


def user(system: System, name: str) -> Any:
    return next(user for user in system.demo()["users"] if user["name"] == name)


def a_job(system: System, *, seconds: float = 0.1, **wanted: Any) -> str:
    words = command(new_witness(system.witness), seconds=seconds)
    job: str = system.rest().submit(words, **{"compute_milli": 10, **wanted})["id"]
    return job


def test_a_newcomer_has_a_running_job_in_four_clicks(opens: Opens) -> None:
    person = opens("barbara")

    person.press("Run the hello job")
    person.page.wait_for_url(re.compile("/jobs/"))
    person.page.locator("#job-head").locator(".state-running, .state-succeeded").wait_for()

    assert person.clicks <= 4
    person.sees("Hello from a shared GPU, step 1 of 8")


def test_why_a_second_job_waits_is_one_click_away(here: System, opens: Opens) -> None:
    rest = here.rest()
    holders = [a_job(here, seconds=60, compute_milli=1000) for _ in range(1)]
    rest.wait_state(holders[0], "RUNNING")
    second = a_job(here, compute_milli=1000)
    person = opens(here.user()["name"])
    before = person.clicks

    number = rest.job(second)["number"]
    person.follow(f"/{number}")
    person.page.get_by_role("heading", name="Why it waits").wait_for()

    assert person.clicks - before == 1
    person.sees("has a whole device free")
    for job_id in (second, *holders):
        rest.post(f"/jobs/{job_id}/cancel")


def test_a_running_job_is_cancelled(here: System, opens: Opens) -> None:
    job_id = a_job(here, seconds=60)
    here.rest().wait_state(job_id, "RUNNING")
    person = opens(here.user()["name"])

    person.go(f"/jobs/{job_id}")
    person.press("Cancel")
    person.wait_state("cancelled")

    assert here.rest().job(job_id)["state"] == "CANCELLED"


def test_a_log_is_followed_while_it_grows(here: System, opens: Opens) -> None:
    script = "echo first; sleep 2; echo second"
    job = here.rest().submit(["sh", "-c", script], compute_milli=10)
    person = opens(here.user()["name"])

    person.go(f"/jobs/{job['id']}")
    log = person.page.locator("pre.log")
    log.get_by_text("first").wait_for()
    log.get_by_text("second").wait_for()

    person.sees("The log is complete.")
    person.wait_state("succeeded")


def test_an_administrator_halves_a_quota_and_sees_whom_it_hits(here: System, opens: Opens) -> None:
    job_id = a_job(here, seconds=60, name="is-hit")
    job = here.rest().wait_state(job_id, "RUNNING")
    person = opens("admin")

    person.follow("Quotas")
    person.follow(f"Change {here.user()['project']}")
    old = person.page.input_value("input[name=limit_gpus]")
    person.page.fill("input[name=limit_gpus]", str(float(old) / 2))
    person.press("Show whom it hits")
    person.sees("Nothing ends.")
    person.page.locator(f"a[href*='{job['id']}']").wait_for()
    person.press("Save")

    person.sees("is set.")
    assert here.rest().job(job_id)["state"] == "RUNNING"
    here.rest().post(f"/jobs/{job_id}/cancel")


def test_the_cost_of_a_project_in_a_week_is_found_and_downloaded(
    here: System, opens: Opens
) -> None:
    here.rest().wait_end(a_job(here))
    project = here.user()["project"]
    person = opens("admin")

    person.follow("Usage")
    person.follow("Last week")
    person.page.get_by_role("heading", name="Cost").wait_for()
    person.follow("This week")
    person.page.locator("tbody").get_by_text(project).first.wait_for()
    with person.page.expect_download() as download:
        person.follow("Download CSV")

    text = download.value.path().read_text()
    assert text.startswith("since,until,day,project,")
    assert project in text


def test_a_token_is_made_and_works(here: System, opens: Opens) -> None:
    person = opens(here.user()["name"])

    person.go("/tokens")
    person.page.fill("input[name=name]", "ci")
    person.press("Issue")
    shown = person.page.locator("pre.snippet").inner_text()

    token = re.search(r"GPUCOMMONS_TOKEN=(\S+)", shown)
    assert token is not None
    assert Rest(here.port, token[1]).get("/self")


def test_a_job_is_drawn_on_the_map_of_gpus(here: System, opens: Opens) -> None:
    job_id = a_job(here, seconds=60)
    job = here.rest().wait_state(job_id, "RUNNING")
    person = opens(here.user()["name"])

    person.follow("GPUs")
    person.sees("simulated")
    link = person.page.locator(f"a[href*='{job['id']}']")
    person.click(link)

    person.wait_state("running")
    here.rest().post(f"/jobs/{job_id}/cancel")


def test_the_pages_speak_chinese(opens: Opens) -> None:
    person = opens("joan")

    person.press("简体中文")
    person.page.locator("html[lang=zh-hans]").wait_for()
    person.follow("用量")
    person.sees("本月")
    person.press("English")

    person.page.locator("html[lang=en]").wait_for()
    person.sees("This month")


def test_a_phone_in_the_dark_shows_everything_within_its_width(here: System, opens: Opens) -> None:
    person = opens("admin", viewport={"width": 390, "height": 844}, color_scheme="dark")

    wide = []
    for path in (*PAGES, *ADMIN_PAGES):
        person.go(path)
        if person.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            wide.append(path)

    assert wide == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_grave_fault_of_accessibility(
    here: System, opens: Opens, scheme: str
) -> None:
    here.rest().wait_end(job_id := a_job(here))
    signed_out = opens(color_scheme=scheme)
    signed_out.go("/sign-in")
    faults = {"/sign-in": signed_out.faults()}
    person = opens("admin", color_scheme=scheme)

    for path in (*PAGES, *ADMIN_PAGES, f"/jobs/{job_id}"):
        person.go(path)
        faults[path] = person.faults()

    assert {path: found for path, found in faults.items() if found} == {}
