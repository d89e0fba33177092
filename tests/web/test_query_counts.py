"""How many queries a page takes: the same for few rows and for many, and no more than today."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.services.cycle import run_cycle
from portal.core.clock import utc_now
from tests import builders
from tests.web.test_money_pages import used

#: What each page took when this was written, with the session and the user.
MOST = {
    "/": 26,
    "/jobs": 14,
    "/jobs/vision/1": 18,
    "/gpus": 10,
    "/usage": 14,
    "/usage?by=day": 14,
    "/quotas": 14,
}


def queries(browser, path):
    with CaptureQueriesContext(connection) as seen:
        assert browser.get(path).status_code == 200
    return len(seen)


@pytest.mark.parametrize("path", MOST)
def test_a_page_takes_the_same_queries_for_any_number_of_rows(here, path):
    here.job()
    run_cycle(utc_now())
    here.job()
    used(here, at=utc_now() - timedelta(hours=5))
    # Someone else each time: the home page keeps its sum for a minute.
    few = queries(here.browser("member"), path)

    for number in range(8):
        builders.node(f"more-{number}", builders.gpu_info(f"GPU-more-{number}"))
        here.job(who="project_admin")
        used(here, at=utc_now() - timedelta(days=number + 1))
    run_cycle(utc_now())
    for _ in range(8):
        here.job(who="project_admin", memory_mib=builders.GPU_MIB, compute_milli=1000)
    run_cycle(utc_now())
    many = queries(here.browser("project_admin"), path)

    assert many <= few + 1  # places in the queue are counted or listed
    assert many <= MOST[path]
