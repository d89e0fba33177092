"""Templates of requests, and secrets that only the job itself sees."""

from __future__ import annotations

import json

import pytest

from agent.wire import Desired
from jobs.domain.files import JobFile
from jobs.models import Bundle, Job, Secret, Template
from jobs.selectors import job_detail
from jobs.selectors.presets import secret_views, template_fields, template_views
from jobs.services.presets import delete_secret, delete_template, save_template, set_secret
from jobs.services.rerun import rerun_job
from portal.core import sealing
from portal.core.errors import Conflict, Forbidden, NotFound, Rejected
from portal.core.models import AuditEntry
from tests.builders import user
from tests.factories import Desk
from tests.fakes.engine import SlowToAnswer

VALUE = "hf_do-not-tell"


@pytest.fixture
def boss(desk):
    return user("boss", role="project_admin", project_id=desk.place.project)


def set_(desk, boss, name="HF_TOKEN", value=VALUE):
    set_secret(principal=boss, project="vision", name=name, value=value, now=desk.now)


def save(desk, name="nightly", **fields):
    save_template(principal=desk.member, project="vision", name=name, fields=fields, now=desk.now)


def test_a_sealed_text_opens_for_its_purpose_alone():
    sealed = sealing.seal("ä", "one")
    assert "ä" not in sealed
    assert sealing.unseal(sealed, "one") == "ä"
    for other, text in (("two", sealed), ("one", "x" + sealed), ("one", "")):
        with pytest.raises(sealing.Unreadable):
            sealing.unseal(text, other)


def test_a_secret_reaches_the_node_and_nothing_else(desk, boss):
    set_(desk, boss, value="old")
    set_(desk, boss)
    job_id = desk.submit(secrets=("HF_TOKEN",), env={"A": "1"}).id
    desk.cycle()
    desk.deliver()
    env = desk.engine.specs[-1].process.env
    assert (env["HF_TOKEN"], env["A"]) == (VALUE, "1")
    rows = [*Job.objects.values(), *AuditEntry.objects.values(), *Secret.objects.values()]
    assert VALUE not in json.dumps(rows, default=str)
    assert desk.job(job_id).secrets == ["HF_TOKEN"]
    assert [one.name for one in secret_views(boss, "vision")] == ["HF_TOKEN"]
    assert AuditEntry.objects.filter(verb="secret.set").count() == 2


def test_a_job_whose_secret_is_gone_fails_before_it_starts(desk, boss):
    set_(desk, boss)
    job_id = desk.submit(secrets=("HF_TOKEN",)).id
    delete_secret(principal=boss, project="vision", name="HF_TOKEN", now=desk.now)
    desk.cycle()
    desk.deliver()
    job = desk.job(job_id)
    assert (job.state, job.reason_code) == ("FAILED", "secret_missing")
    assert "HF_TOKEN" in job.reason
    assert {spec.desired for spec in desk.engine.specs} == {Desired.ABSENT}
    desk.assert_nothing_held()
    with pytest.raises(Rejected) as refused:
        rerun_job(principal=desk.member, job_id=job_id, now=desk.now)
    assert refused.value.code == "jobs.secret_unknown"


def test_a_secret_of_another_project_or_of_another_key_is_missing(desk, boss):
    set_(desk, boss)
    job_id = desk.submit(secrets=("HF_TOKEN",)).id
    Secret.objects.update(sealed=sealing.seal(VALUE, "project secret other"))
    desk.cycle()
    desk.deliver()
    assert desk.job(job_id).reason_code == "secret_missing"


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "a b", "gpucommons_x", "A" * 51, "Ä"])
def test_a_secret_is_called_as_a_variable_is(desk, boss, name):
    with pytest.raises(Rejected) as refused:
        set_(desk, boss, name=name)
    assert refused.value.code == "jobs.secret_name_invalid"


@pytest.mark.parametrize("value", ["", "a\0b", "x" * 32_769])
def test_a_secret_can_be_put_into_an_environment(desk, boss, value):
    with pytest.raises(Rejected) as refused:
        set_(desk, boss, value=value)
    assert refused.value.code == "jobs.secret_value_invalid"
    assert not value or value not in str(refused.value)


def test_only_administrators_of_the_project_handle_secrets(desk, boss):
    set_(desk, boss)
    for act in (
        lambda: set_(desk, desk.member),
        lambda: secret_views(desk.member, "vision"),
        lambda: delete_secret(
            principal=desk.member, project="vision", name="HF_TOKEN", now=desk.now
        ),
    ):
        with pytest.raises(Forbidden):
            act()
    with pytest.raises(NotFound):
        delete_secret(principal=boss, project="vision", name="OTHER", now=desk.now)


def test_members_save_templates_and_administrators_delete_them(desk, boss):
    save(desk, command=["train"], memory_mib=10)
    with pytest.raises(Conflict):
        save(desk)
    with pytest.raises(Rejected):
        save(desk, name="../x")
    with pytest.raises(Rejected):
        save(desk, name="large", env={"A": "x" * 200_000})
    assert template_fields(desk.member, "vision", "nightly") == {
        "command": ["train"],
        "memory_mib": 10,
    }
    with pytest.raises(Forbidden):
        delete_template(principal=desk.member, project="vision", name="nightly", now=desk.now)
    delete_template(principal=boss, project="vision", name="nightly", now=desk.now)
    assert template_views(boss, "vision") == []
    with pytest.raises(NotFound):
        template_fields(desk.member, "vision", "nightly")
    assert not Template.objects.exists()


def test_a_secret_that_changes_between_two_tellings_starts_the_job_once(transactional_db):

    desk = Desk(SlowToAnswer())
    boss = user("boss", role="project_admin", project_id=desk.place.project)
    set_(desk, boss)
    job_id = desk.submit(secrets=("HF_TOKEN",)).id
    desk.cycle()
    with pytest.raises(Exception, match="no answer"):
        desk.deliver()
    delete_secret(principal=boss, project="vision", name="HF_TOKEN", now=desk.now)
    desk.deliver()
    desk.listen()
    assert desk.job(job_id).state in ("QUEUED", "FAILED")
    assert len(desk.attempts(job_id)) == 1
    desk.assert_nothing_held()


def test_files_of_a_submission_reach_every_member_and_a_rerun(desk):
    files = (JobFile("run.sh", b"ls", 0o755), JobFile("src/a", b"\xff"))
    done = desk.submit(files=files, array_size=2, compute_milli=100, memory_mib=10)
    desk.cycle()
    desk.deliver()
    told = [[(one.path, one.mode) for one in spec.process.files] for spec in desk.engine.specs]
    assert told == [[("run.sh", 0o755), ("src/a", 0o644)]] * 2
    again = rerun_job(principal=desk.member, job_id=done.job_ids[0], now=desk.now).id
    assert job_detail(desk.member, again).files == ("run.sh", "src/a")
    assert Bundle.objects.count() == 2
    with pytest.raises(Rejected) as refused:
        desk.submit(files=(JobFile("../x", b""),))
    assert (refused.value.code, refused.value.field) == ("jobs.files_invalid", "files")
