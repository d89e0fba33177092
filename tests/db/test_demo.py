"""The demonstration: made once, kept as it is."""

import json
import stat

import pytest
from django.contrib.auth import authenticate

from billing.selectors import price_now, price_versions
from portal.accounts.access import access_project
from portal.accounts.models import ApiToken, User
from portal.accounts.roles import Scope
from portal.accounts.tokens import authenticate_token
from portal.config import config
from portal.core.audit import SYSTEM
from portal.ops import demo
from quotas.selectors import levels_of
from quotas.services.limits import set_limit
from tests.builders import H200, NOW, gpu_info, later, node

URL = "http://127.0.0.1:8123"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "config", config.model_copy(update={"data": tmp_path}))
    return tmp_path


def start(now=NOW):
    return demo.publish(demo.ensure_demo(url=URL, now=now))


@pytest.mark.django_db
def test_everyone_shown_can_sign_in_and_use_the_token(own_folder):
    start()

    file = own_folder / "demo.json"
    shown = json.loads(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in own_folder.iterdir()] == ["demo.json"]
    assert shown["url"] == URL
    for person in shown["users"]:
        holder = authenticate_token(person["token"], later(1))
        assert holder is not None
        access_project(holder, person["project"], need=Scope.JOBS_READ)
        assert authenticate(username=person["name"], password=person["password"])


@pytest.mark.django_db
def test_a_second_start_keeps_everything(own_folder):
    first = start()

    second = start(later(86_400))

    assert second == first
    assert ApiToken.objects.count() == User.objects.count() == len(first.users)
    assert len(price_versions()) == 1
    assert price_now(H200, now=NOW) == 2_800_000


@pytest.mark.django_db
def test_what_was_changed_since_is_kept():
    before = demo.ensure_demo(url=URL, now=NOW)
    admin = next(user for user in before.users if user.name == "admin")
    holder = authenticate_token(admin.token, later(1))
    assert holder is not None
    vision = access_project(holder, "vision", need=Scope.JOBS_READ)
    set_limit(actor=SYSTEM, owner_id=vision.id, limit_milli=1, queued_limit=None, now=NOW)

    start(later(60))

    assert levels_of([vision.id])[vision.id].limit_milli == 1


@pytest.mark.django_db
def test_a_start_that_was_cut_short_before_publishing_leaves_good_passwords():
    demo.ensure_demo(url=URL, now=NOW)

    for person in start(later(60)).users:
        assert authenticate(username=person.name, password=person.password)
        assert authenticate_token(person.token, later(120))


@pytest.mark.django_db
def test_simulated_gpus_are_said():
    node("node-1", gpu_info(), gpu_info("GPU-1", index=1))

    assert start().notes == ("2 GPUs are simulated: this machine has no NVIDIA GPU for them.",)
