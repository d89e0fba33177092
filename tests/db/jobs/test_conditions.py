"""Waiting for more than room: other jobs, a time, a person, an array's limit; and trying again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent.wire import EndReason
from jobs.models import Attempt, Job, Transition
from jobs.selectors import job_detail
from jobs.services.cancel import cancel_job
from jobs.services.conditions import hold_job, release_job
from jobs.services.rerun import rerun_job
from jobs.services.submit import JobRequest, submit_job
from portal.accounts.roles import Role
from portal.accounts.services import create_project, set_membership
from portal.core.audit import SYSTEM
from portal.core.errors import Conflict, Forbidden, Rejected
from portal.core.models import AuditEntry
from tests.builders import user
from tests.factories import assert_sound
from tests.racing import race

SMALL = {"compute_milli": 100, "memory_mib": 1000}


def end(desk, job_id, code=0):
    desk.engine.end(desk.lease_of(job_id), EndReason.EXITED, exit_code=code)
    desk.listen()


def told(desk, job_id):
    job = desk.job(job_id)
    return job.state, job.wait_code or job.reason_code


def test_a_job_starts_after_those_it_waits_for(desk):
    first, second = desk.running(**SMALL), desk.running(**SMALL)
    job_id = desk.submit(after_ok=(first,), after_any=("vision/2",), **SMALL).id
    assert desk.job(job_id).wait_reason == "Waits for vision/2 to end and for 1 more."
    assert desk.cycle() == 0
    end(desk, second, code=3)
    assert desk.cycle() == 0
    assert desk.job(job_id).wait_reason == "Waits for vision/1 to succeed."
    end(desk, first)
    assert desk.cycle() == 1
    assert told(desk, job_id) == ("STARTING", "")
    detail = job_detail(desk.member, job_id)
    assert [(one.short_name, one.need, one.state) for one in detail.dependencies] == [
        ("vision/2", "any", "FAILED"),
        ("vision/1", "ok", "SUCCEEDED"),
    ]


def test_what_can_never_start_is_cancelled_down_the_chain(desk):
    first = desk.running(**SMALL)
    second = desk.submit(after_ok=(first,), hold=True, **SMALL).id
    third = desk.submit(after_ok=(second,), **SMALL).id
    last = desk.submit(after_any=(third,), **SMALL).id
    end(desk, first, code=1)
    assert desk.cycle() == 1
    assert told(desk, second) == told(desk, third) == ("CANCELLED", "dependency_failed")
    assert "vision/2" in desk.job(third).reason
    assert told(desk, last) == ("STARTING", "")
    assert Transition.objects.filter(job=second).latest("pk").actor == "scheduler"


def test_a_job_may_wait_for_one_that_has_ended_already(desk):
    first = desk.running(**SMALL)
    cancel_job(principal=desk.member, job_id=first, now=desk.now)
    desk.deliver()
    desk.listen()
    in_vain = desk.submit(after_ok=(first,), **SMALL).id
    at_once = desk.submit(after_any=(first,), **SMALL).id
    assert desk.cycle() == 1
    assert desk.job(in_vain).state == "CANCELLED"
    assert desk.job(at_once).state == "STARTING"


def test_only_jobs_that_one_may_see_are_waited_for_and_named(desk):
    theirs = create_project(
        actor=SYSTEM, tenant_id=desk.place.research, name="Speech", slug="speech", now=desk.now
    )
    both = user("eve", role="member", project_id=desk.place.project)
    desk_member, desk.member = desk.member, both
    with pytest.raises(Rejected) as unknown:
        desk.submit(after_ok=("speech/1",))
    set_membership(
        actor=SYSTEM, user_id=both.user_id, role=Role.MEMBER, project_id=theirs, now=desk.now
    )
    other = submit_job(
        principal=both, project="speech", request=JobRequest(("secret-name",)), now=desk.now
    ).id
    desk.member = desk_member
    with pytest.raises(Rejected) as hidden:
        desk.submit(after_ok=(other,))
    desk.member = both
    job_id = desk.submit(after_ok=(other,)).id

    assert unknown.value.code == hidden.value.code == "jobs.dependency_unknown"
    assert unknown.value.field == "after_ok"
    assert "a job of another project" in desk.job(job_id).wait_reason
    assert len(job_detail(both, job_id).dependencies) == 1
    assert job_detail(desk_member, job_id).dependencies == ()


@pytest.mark.parametrize(
    ("code", "field", "wishes"),
    [
        ("jobs.dependency_unknown", "after_any", {"after_any": ("a\0b",)}),
        ("jobs.dependency_unknown", "after_ok", {"after_ok": ("vision/99",)}),
        ("jobs.too_many_dependencies", "after_ok", {"after_ok": ("x",) * 101}),
        ("jobs.too_many_dependencies", "after_ok", {"after_ok": ("x",) * 2, "array_size": 9999}),
        ("jobs.throttle_without_array", "max_running", {"max_running": 2}),
        ("jobs.out_of_range", "max_running", {"max_running": 0, "array_size": 3}),
        ("jobs.exit_codes_invalid", "retry_exit_codes", {"retry_exit_codes": ("0",)}),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(desk, code, field, wishes):
    with pytest.raises(Rejected) as refused:
        desk.submit(**wishes)
    assert (refused.value.code, refused.value.field) == (code, field)
    assert not Job.objects.exists()


def test_a_scheduled_job_starts_at_its_time(desk):
    at = desk.now + timedelta(minutes=5)
    job_id = desk.submit(not_before=at).id
    with pytest.raises(Rejected, match="366 days"):
        desk.submit(not_before=desk.now + timedelta(days=367))
    assert desk.cycle() == 0
    assert told(desk, job_id) == ("QUEUED", "jobs.not_before")
    assert job_detail(desk.member, job_id).row.wait_position is None
    desk.passes(minutes=5)
    assert desk.cycle() == 1


def test_a_held_job_keeps_its_place_and_its_story(desk):
    job_id = desk.submit(**SMALL).id
    queued_at = desk.job(job_id).queued_at
    desk.passes(seconds=5)
    for _ in range(2):
        hold_job(principal=desk.member, job_id=job_id, now=desk.now)
    assert desk.cycle() == 0
    assert told(desk, job_id) == ("QUEUED", "jobs.held")
    for _ in range(2):
        release_job(principal=desk.member, job_id=job_id, now=desk.now)
    assert told(desk, job_id) == ("QUEUED", "")
    assert desk.job(job_id).queued_at == queued_at
    assert desk.cycle() == 1
    assert desk.story(job_id) == ["submitted", "held", "released", "admitted"]
    assert AuditEntry.objects.filter(object_id=job_id).count() == 3
    with pytest.raises(Conflict, match="only a waiting job"):
        hold_job(principal=desk.member, job_id=job_id, now=desk.now)


def test_a_held_job_can_be_cancelled_and_only_members_hold(desk):
    job_id = desk.submit(hold=True).id
    viewer = user("vic", role="viewer", project_id=desk.place.project)
    with pytest.raises(Forbidden):
        release_job(principal=viewer, job_id=job_id, now=desk.now)
    cancel_job(principal=desk.member, job_id=job_id, now=desk.now)
    assert desk.job(job_id).state == "CANCELLED"


def test_an_array_runs_as_many_members_at_once_as_it_says(desk):
    members = desk.submit(array_size=6, max_running=2, **SMALL).job_ids
    other = desk.submit(**SMALL).id
    assert desk.cycle() == 3
    assert desk.job(other).state == "STARTING"
    waiting = Job.objects.filter(state="QUEUED")
    assert set(waiting.values_list("wait_code", flat=True)) == {"jobs.array_throttle"}
    assert desk.cycle() == 0
    desk.deliver()
    first = Job.objects.filter(pk__in=members, state="STARTING").earliest("pk").pk
    desk.engine.begin(desk.lease_of(first))
    end(desk, first)
    assert desk.cycle() == 1
    assert Job.objects.filter(pk__in=members, state="STARTING").count() == 2
    assert_sound()


def test_racing_cycles_keep_an_arrays_limit(desk):
    desk.submit(array_size=8, max_running=3, **SMALL)
    admitted = race(*[desk.cycle] * 4)
    assert sum(admitted) + desk.cycle() == 3
    assert Attempt.objects.count() == 3
    assert_sound()


def test_an_exit_code_is_tried_again_after_a_pause(desk):
    job_id = desk.running(retry_exit_codes=("70-75",), max_attempts=2)
    end(desk, job_id, code=75)
    job = desk.job(job_id)
    assert (job.state, job.wait_code, job.reason_code) == (
        "QUEUED",
        "jobs.not_before",
        "retry_exit_code",
    )
    assert "tried again after 10 s" in Transition.objects.filter(job=job_id).latest("pk").detail
    assert desk.cycle() == 0
    desk.passes(seconds=10)
    assert desk.cycle() == 1
    desk.deliver()
    desk.engine.begin(desk.lease_of(job_id))
    end(desk, job_id, code=75)
    job = desk.job(job_id)
    assert (job.state, job.reason_code, job.exit_code) == ("FAILED", "exit_code", 75)
    desk.assert_nothing_held()


def test_a_job_is_run_again_with_its_request_and_without_what_it_waited_for(desk):
    first = desk.submit(**SMALL).id
    old = desk.submit(
        ("train", "--fast"),
        after_any=(first,),
        not_before=desk.now + timedelta(days=1),
        env={"A": "1"},
        retry_exit_codes=("75",),
        time_limit_s=60,
        **SMALL,
    ).id
    new = desk.job(rerun_job(principal=desk.member, job_id=old, now=desk.now).id)
    assert (new.command, new.env, new.time_limit_s) == (["train", "--fast"], {"A": "1"}, 60)
    assert (new.retry_exit_codes, new.compute_milli, new.not_before) == ([[75, 75]], 100, None)
    assert not new.dependencies.exists()
    viewer = user("vic", role="viewer", project_id=desk.place.project)
    with pytest.raises(Forbidden):
        rerun_job(principal=viewer, job_id=old, now=desk.now)
