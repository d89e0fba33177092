"""What the portal learns of nodes and GPUs."""

import pytest

from agent.wire import GpuSample, LeaseSample, SampleList
from portal.core.audit import Actor
from portal.core.errors import Conflict, NotFound
from portal.core.locks import guarded
from portal.core.models import AuditEntry
from portal.fleet.models import NodeState
from portal.fleet.selectors import fleet_view, lease_view, node_target, silent_node_ids
from portal.fleet.services import (
    advance_cursor,
    declare_lost,
    mark_unreachable,
    record_contact,
    record_inventory,
    record_samples,
)
from tests.builders import GPU_MIB, NOW, gpu, gpu_info, inventory, later, lease, node, wanted

OPERATOR = Actor("olga", "user-1")


def state(node_id):
    return node_target(node_id).state


@pytest.mark.django_db
def test_an_inventory_makes_the_node_ready():
    node_id = node("node-1", gpu_info("GPU-1", index=1), gpu_info("GPU-0"))

    (shown,) = fleet_view()
    assert (shown.id, shown.ready, shown.isolated, shown.boot_id) == (
        node_id,
        True,
        True,
        "boot-1",
    )
    assert [gpu.uuid for gpu in shown.gpus] == ["GPU-0", "GPU-1"]


@pytest.mark.django_db
def test_a_gpu_that_is_no_longer_listed_stays_out_of_service():
    node_id = node("node-1", gpu_info("GPU-0"), gpu_info("GPU-1", index=1))

    record_inventory(node_id=node_id, inventory=inventory(gpu_info("GPU-0")), now=later(1))

    assert (gpu("GPU-0").healthy, gpu("GPU-1").healthy) == (True, False)
    assert "no longer lists" in gpu("GPU-1").health_reason
    record_inventory(
        node_id=node_id,
        inventory=inventory(gpu_info("GPU-0"), gpu_info("GPU-1", index=1)),
        now=later(2),
    )
    assert gpu("GPU-1").healthy
    verbs = AuditEntry.objects.filter(object_type="gpu", object_id=gpu("GPU-1").id)
    assert list(verbs.order_by("id").values_list("verb", flat=True)) == [
        "gpu.returned",
        "gpu.withdrawn",
        "gpu.returned",
    ]


@pytest.mark.django_db
def test_the_same_inventory_again_changes_nothing():
    node_id = node()
    entries = AuditEntry.objects.count()

    record_inventory(node_id=node_id, inventory=inventory(gpu_info()), now=later(1))

    assert AuditEntry.objects.count() == entries
    assert node_target(node_id).last_seen_at == later(1)


@pytest.mark.django_db
def test_a_gpu_in_service_elsewhere_is_not_taken_over():
    first = node("node-1", gpu_info("GPU-0"))
    with pytest.raises(Conflict, match=r"fleet\.gpu_elsewhere"):
        node("node-2", gpu_info("GPU-0"))

    record_inventory(node_id=first, inventory=inventory(), now=later(1))
    second = node("node-3", gpu_info("GPU-0"))

    assert gpu("GPU-0").node_id == second


@pytest.mark.django_db
def test_memory_that_shrinks_never_falls_below_what_is_leased():
    node_id = node()
    lease(wanted(gpu().id, memory_mib=GPU_MIB - 100))

    smaller = gpu_info(memory_mib=GPU_MIB - 500)
    record_inventory(node_id=node_id, inventory=inventory(smaller), now=later(1))

    assert gpu().memory_mib == GPU_MIB - 100


@pytest.mark.django_db
def test_the_cursor_only_grows_and_counts_anew_in_another_stream():
    node_id = node()

    def advance(stream_id, cursor):
        with guarded():
            return advance_cursor(node_id=node_id, stream_id=stream_id, cursor=cursor)

    assert advance("stream-1", 7)
    assert not advance("stream-1", 7)
    assert not advance("stream-1", 3)
    assert not advance("stream-2", 9)
    assert node_target(node_id).event_cursor == 7
    record_inventory(
        node_id=node_id, inventory=inventory(gpu_info(), stream_id="stream-2"), now=later(1)
    )
    assert node_target(node_id).event_cursor == 0
    assert advance("stream-2", 1)


@pytest.mark.django_db
def test_a_silent_node_is_unreachable_until_it_answers():
    node_id = node()

    assert mark_unreachable(node_id=node_id, now=later(20))
    assert not mark_unreachable(node_id=node_id, now=later(21))
    assert silent_node_ids() == {node_id}
    assert record_contact(node_id=node_id, now=later(30))
    assert not record_contact(node_id=node_id, now=later(31))
    assert state(node_id) is NodeState.READY


@pytest.mark.django_db
def test_a_node_declared_lost_stays_lost_until_its_inventory_is_recorded():
    node_id = node()
    declare_lost(actor=OPERATOR, node_id=node_id, now=later(1))
    declare_lost(actor=OPERATOR, node_id=node_id, now=later(2))

    assert not record_contact(node_id=node_id, now=later(3))
    assert state(node_id) is NodeState.LOST
    assert AuditEntry.objects.get(verb="node.became_lost").actor_id == OPERATOR.user_id
    record_inventory(node_id=node_id, inventory=inventory(gpu_info()), now=later(4))
    assert state(node_id) is NodeState.READY


@pytest.mark.django_db
def test_an_unknown_node_is_refused():
    with pytest.raises(NotFound, match=r"fleet\.node_not_found"):
        record_inventory(node_id="unknown", inventory=inventory(), now=NOW)


@pytest.mark.django_db
def test_the_newest_sample_is_kept_and_what_is_not_measured_is_absent():
    node_id = node()
    (lease_id,) = lease(wanted(gpu().id))

    def sample(at, used, percent):
        record_samples(
            node_id=node_id,
            samples=SampleList(
                gpus=[GpuSample(uuid="GPU-0", at=at, memory_used_mib=used)],
                leases=[
                    LeaseSample(
                        lease_id=lease_id,
                        at=at,
                        memory_used_mib=used,
                        utilisation_percent=percent,
                    )
                ],
            ),
            now=NOW,
        )

    sample(later(2), 4000, 50.0)
    sample(later(1), 9000, 10.0)
    sample(later(3), 3000, None)

    shown = lease_view(lease_id)
    assert (gpu().memory_used_mib, gpu().utilisation_percent) == (3000, None)
    assert (shown.memory_used_mib, shown.memory_peak_mib) == (3000, 9000)
    assert (shown.utilisation_percent, shown.sampled_at) == (None, later(3))


@pytest.mark.django_db
def test_the_fleet_is_read_in_three_queries(django_assert_num_queries):
    node("node-1", gpu_info("GPU-0"), gpu_info("GPU-1", index=1))
    node("node-2", gpu_info("GPU-2"))
    lease(*(wanted(gpu("GPU-2").id, compute_milli=10) for _ in range(5)))

    with django_assert_num_queries(3):
        assert len(fleet_view()) == 2
