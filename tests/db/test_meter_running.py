"""Metering of jobs that still run: only what surely ran."""

from datetime import timedelta

import pytest

from agent.wire import Desired, LeaseReport, Observed
from billing.selectors import usage_of_jobs
from billing.services.prices import publish_price
from jobs.services.cycle import run_cycle
from jobs.services.ingest import ingest
from jobs.services.metering import meter_running
from jobs.services.submit import JobRequest, submit_job
from portal.core.audit import SYSTEM
from portal.core.errors import Rejected
from portal.fleet.selectors import active_leases_of_node
from portal.fleet.services import record_contact
from tests.builders import NOW, node, place, user

EDGE = NOW.replace(minute=0) + timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def submit(owner):
    return submit_job(
        principal=owner, project="vision", request=JobRequest(("true",)), now=NOW
    ).job_ids[0]


@pytest.fixture
def ada(db):
    return user(role="member", project_id=place().project)


@pytest.fixture
def running_job(ada):
    """A job that runs since ``NOW``, half an hour before ``EDGE``; its id and its node's."""
    publish_price(actor=SYSTEM, effective_from=NOW, currency="EUR", rates={"*": 1}, now=NOW)
    node_id = node()
    job_id = submit(ada)
    run_cycle(NOW)
    (lease,) = active_leases_of_node(node_id)
    report = LeaseReport(
        lease_id=lease.id,
        generation=1,
        desired=Desired.RUNNING,
        observed=Observed.RUNNING,
        started_at=NOW,
    )
    ingest([report], actor="node", now=NOW)
    return job_id, node_id


def metered_s(job_id, *, now):
    meter_running(now)
    used = usage_of_jobs([job_id])
    return used[job_id].seconds if used else 0


def test_full_hours_are_metered_while_the_job_runs(running_job):
    job_id, node_id = running_job
    record_contact(node_id=node_id, now=EDGE + 2 * MINUTE)

    assert metered_s(job_id, now=EDGE + 2 * MINUTE) == 1800


def test_a_node_that_went_silent_is_metered_up_to_its_last_contact(running_job):
    job_id, node_id = running_job
    record_contact(node_id=node_id, now=EDGE - MINUTE)

    assert metered_s(job_id, now=EDGE + timedelta(hours=3)) == 0


def test_an_end_that_was_told_but_is_not_taken_in_yet_has_a_minute(running_job):
    job_id, node_id = running_job
    record_contact(node_id=node_id, now=EDGE + MINUTE / 2)

    assert metered_s(job_id, now=EDGE + MINUTE / 2) == 0


def test_nothing_is_accepted_before_there_is_a_price(ada):
    with pytest.raises(Rejected, match=r"billing\.no_price"):
        submit(ada)
