"""Accepting: refusals name rule, field and way out and leave nothing half made."""

from __future__ import annotations

from functools import partial

import pytest

from jobs.domain.states import Form, PriorityClass
from jobs.models import Job, JobArray, Transition
from jobs.services.submit import MAX_COMMAND_BYTES
from portal.accounts.models import Project
from portal.core import idempotency
from portal.core.errors import Forbidden, NotFound, Rejected, TooMany
from portal.core.idempotency import Answer
from portal.core.models import AuditEntry, IdempotencyRecord, OutboxMessage
from portal.fleet.models import Gpu
from tests.builders import user
from tests.racing import codes, race

REFUSALS = [
    ("jobs.command_empty", "command", {"command": ()}),
    ("jobs.command_empty", "command", {"command": ("",)}),
    ("jobs.command_too_long", "command", {"command": ("sh", "x" * MAX_COMMAND_BYTES)}),
    ("jobs.command_invalid", "command", {"command": ("sh", "a\0b")}),
    ("jobs.command_invalid", "command", {"command": ("sh", "\ud800")}),
    ("jobs.out_of_range", "memory_mib", {"memory_mib": 0}),
    ("jobs.out_of_range", "memory_mib", {"memory_mib": 100_000_001}),
    ("jobs.out_of_range", "compute_milli", {"compute_milli": 0}),
    ("jobs.out_of_range", "compute_milli", {"compute_milli": 1001}),
    ("jobs.out_of_range", "time_limit_s", {"time_limit_s": 0}),
    ("jobs.out_of_range", "max_attempts", {"max_attempts": 0}),
    ("jobs.out_of_range", "max_attempts", {"max_attempts": 101}),
    ("jobs.out_of_range", "array_size", {"array_size": 0}),
    ("jobs.out_of_range", "array_size", {"array_size": 10_001}),
    ("jobs.text_invalid", "name", {"name": "n" * 101}),
    ("jobs.text_invalid", "name", {"name": "a\0b"}),
    ("jobs.text_invalid", "gpu_model", {"gpu_model": "m" * 101}),
    ("jobs.env_invalid", "env", {"env": {"": "1"}}),
    ("jobs.env_invalid", "env", {"env": {"A=B": "1"}}),
    ("jobs.env_invalid", "env", {"env": {"A": "a\0b"}}),
    ("jobs.env_invalid", "env", {"env": {"A": "\udfff"}}),
    ("jobs.env_reserved", "env", {"env": {"GPUCOMMONS_JOB_ID": "1"}}),
    ("jobs.never_fits", "memory_mib", {"memory_mib": 143_001}),
    ("jobs.never_fits", "gpu_model", {"gpu_model": "H300", "memory_mib": 1}),
    ("jobs.never_fits", "memory_mib", {"form": Form.MIG, "memory_mib": 1}),
    ("quotas.never_fits", "memory_mib", {"memory_mib": 100_000}),
    ("quotas.never_fits", "compute_milli", {}),
]


@pytest.mark.parametrize(("code", "field", "request_"), REFUSALS)
def test_a_refusal_names_its_rule_and_leaves_nothing(desk, code, field, request_):
    desk.limit(desk.place.acme, milli=500)
    audited = AuditEntry.objects.count()

    with pytest.raises(Rejected) as refused:
        desk.submit(**request_)

    assert (refused.value.code, refused.value.field) == (code, field)
    assert refused.value.detail.endswith(".")
    assert_nothing_was_made(audited)


def assert_nothing_was_made(audited):
    assert not Job.objects.exists()
    assert not JobArray.objects.exists()
    assert not Transition.objects.exists()
    assert not OutboxMessage.objects.exists()
    assert AuditEntry.objects.count() == audited
    assert Project.objects.get().last_job_number == 0


def test_a_limit_that_can_never_grant_it_is_named_with_its_numbers(desk):
    desk.limit(desk.place.research, milli=250)
    with pytest.raises(Rejected) as refused:
        desk.submit(memory_mib=71_500)
    assert "500 thousandths" in refused.value.detail
    assert "tenant research may hold at most 250" in refused.value.detail
    assert refused.value.hint


@pytest.mark.parametrize(
    ("role", "kind", "code"),
    [
        (None, NotFound, "accounts.project_not_found"),
        ("viewer", Forbidden, "accounts.scope_missing"),
    ],
)
def test_only_members_submit(desk, role, kind, code):
    desk.member = user("eve", role=role, project_id=desk.place.project)
    audited = AuditEntry.objects.count()
    with pytest.raises(kind) as refused:
        desk.submit()
    assert refused.value.code == code
    assert_nothing_was_made(audited)


def test_a_job_is_queued_with_its_story(desk):
    done = desk.submit(
        ("/opt/bin/train", "--fast"), priority=PriorityClass.HIGH, env={"A": "ä"}, memory_mib=10
    )
    job = desk.job(done.id)
    assert (job.name, job.number, job.priority, job.state) == ("train", 1, 10, "QUEUED")
    assert desk.story(done.id) == ["submitted"]
    assert (done.job_ids, done.numbers, done.is_array) == ((done.id,), (1,), False)
    assert AuditEntry.objects.filter(verb="job.submitted", object_id=done.id).count() == 1
    assert not OutboxMessage.objects.exists()


def test_an_array_has_members_that_differ_in_their_index(desk):
    done = desk.submit(array_size=3, name="sweep")
    members = Job.objects.filter(array=done.id).order_by("array_index")
    assert [member.array_index for member in members] == [0, 1, 2]
    assert [member.number for member in members] == list(done.numbers) == [1, 2, 3]
    assert {member.name for member in members} == {"sweep"}
    assert done.is_array
    assert desk.submit().numbers == (4,)


def test_the_cap_on_waiting_jobs_counts_arrays_and_not_the_ended(desk):
    desk.limit(queued=3)
    first = desk.submit(array_size=2)
    with pytest.raises(TooMany) as refused:
        desk.submit(array_size=2)
    assert refused.value.code == "jobs.queue_full"
    assert "may have 3 waiting jobs and has 2; 2 more" in refused.value.detail
    assert refused.value.hint
    assert refused.value.retry_after_s
    Job.objects.filter(pk=first.job_ids[0]).update(state="CANCELLED", ended_at=desk.now)
    assert desk.submit(array_size=2).numbers == (3, 4)


def test_racing_submissions_never_pass_the_cap(desk):
    desk.limit(queued=3)
    outcomes = race(*[desk.submit] * 8)
    assert codes(outcomes) == ["jobs.queue_full"] * 5
    assert sorted(Job.objects.values_list("number", flat=True)) == [1, 2, 3]


def test_without_any_gpu_a_job_may_wait(desk):
    Gpu.objects.all().delete()
    assert desk.job(desk.submit(memory_mib=10**8).id).state == "QUEUED"


def test_racing_repetitions_of_one_request_make_one_job(desk):
    def effect():
        return Answer(201, {"id": desk.submit().id})

    once = partial(
        idempotency.once,
        principal_id=desk.member.user_id,
        key="k-1",
        request_fingerprint="same",
        now=desk.now,
        effect=effect,
    )
    answers = race(*[once] * 6)
    job = Job.objects.get()
    assert {answer.body["id"] for answer in answers} == {job.pk}
    assert sorted(answer.replayed for answer in answers) == [False] + [True] * 5


def test_a_refused_request_may_be_mended_under_its_key(desk):
    def once(**request):
        return idempotency.once(
            principal_id=desk.member.user_id,
            key="k-1",
            request_fingerprint=str(request),
            now=desk.now,
            effect=lambda: Answer(201, {"id": desk.submit(**request).id}),
        )

    with pytest.raises(Rejected):
        once(compute_milli=0)
    assert not IdempotencyRecord.objects.exists()
    kept = once(compute_milli=1)
    assert once(compute_milli=1).body == kept.body
    with pytest.raises(Rejected) as reused:
        once(compute_milli=2)
    assert reused.value.code == "idempotency.key_reused"
    assert Job.objects.count() == 1
