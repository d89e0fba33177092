"""What operators do to nodes, on pages and by the API."""

import pytest

from jobs.selectors import job_detail
from jobs.services.cycle import run_cycle
from portal.core.clock import utc_now
from portal.core.errors import Conflict
from portal.core.models import AuditEntry
from portal.fleet.selectors import node_view
from tests import builders

JSON = "application/json"


@pytest.fixture
def admin(here):
    return here.browser("platform_admin")


def waits(here, job_id):
    run_cycle(utc_now())
    row = job_detail(here.people["member"], job_id).row
    return row.state, row.wait_code


def test_the_command_to_enrol_is_shown_once(admin):
    page = admin.post("/nodes", {"node_name": "gpu-7"})
    again = admin.get("/nodes")

    assert "gpucommons-agent enrol" in page.content.decode()
    assert page.context["command"]["code"] in page.content.decode()
    assert page.headers["Cache-Control"] == "no-store"
    assert "gpe_" not in again.content.decode()


def test_a_bad_name_is_told_at_its_field(admin):
    answer = admin.post("/nodes", {"node_name": "a\tb"})

    assert answer.status_code == 422
    assert "is no name of a node" in answer.content.decode()


def test_a_drained_node_gets_nothing_new_until_it_is_resumed(here, admin):
    running = here.job()
    assert waits(here, running) == ("STARTING", "")

    page = admin.get(f"/nodes/{here.node}/drain").content.decode()
    admin.post(f"/nodes/{here.node}/drain", {"note": "new disks"})
    job_id = here.job()

    assert "1 job holds a slice there" in page
    assert waits(here, job_id) == ("QUEUED", "jobs.maintenance")
    assert job_detail(here.people["member"], running).row.state == "STARTING"
    assert "new disks" in admin.get("/nodes").content.decode()
    assert "in maintenance" in here.browser("viewer").get("/gpus").content.decode()
    with pytest.raises(Conflict, match=r"fleet\.gpu_unavailable"):
        builders.lease(builders.wanted(builders.gpu().id))

    admin.post(f"/nodes/{here.node}/resume")

    assert waits(here, job_id) == ("STARTING", "")
    verbs = AuditEntry.objects.filter(object_id=here.node).values_list("verb", flat=True)
    assert {"node.drained", "node.resumed"} <= set(verbs)


def test_draining_by_the_api(here):
    program = here.program("platform_admin")
    address = f"/api/v1/nodes/{here.node}/drain"

    drained = program.put(address, {"drained": True, "note": "x"}, content_type=JSON).json()
    resumed = program.put(address, {"drained": False}, content_type=JSON).json()

    assert (drained["drained"], drained["drain_note"]) == (True, "x")
    assert (resumed["drained"], resumed["drain_note"]) == (False, "")


@pytest.mark.parametrize(
    ("typed", "reason", "field"), [("node-2", "it burnt", "name"), ("node-1", "   ", "reason")]
)
def test_a_node_is_not_lost_by_mistake(here, admin, typed, reason, field):
    answer = admin.post(f"/nodes/{here.node}/lost", {"name": typed, "reason": reason})

    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]
    assert node_view(here.node).ready


def test_a_lost_node_ends_its_attempts_and_the_reason_is_kept(here, admin):
    job_id = here.job()
    assert waits(here, job_id)[0] == "STARTING"

    page = admin.get(f"/nodes/{here.node}/lost").content.decode()
    done = admin.post(
        f"/nodes/{here.node}/lost", {"name": "node-1", "reason": "it burnt"}, follow=True
    )

    assert "1 job holds a slice there" in page
    assert "attempts ended: 1" in done.content.decode()
    assert job_detail(here.people["member"], job_id).row.state == "QUEUED"
    entry = AuditEntry.objects.get(verb="node.became_lost")
    assert entry.detail == {"reason": "it burnt"}


def test_losing_by_the_api_wants_the_name_too(here):
    program = here.program("platform_admin")
    address = f"/api/v1/nodes/{here.node}/lost"

    refused = program.post(address, {"name": "other", "reason": "r"}, content_type=JSON)
    done = program.post(address, {"name": "node-1", "reason": "r"}, content_type=JSON)

    assert refused.json()["code"] == "jobs.node_name_differs"
    assert done.json() == {"attempts_ended": 0}
