"""Leases: never beyond what a GPU has, given back exactly once."""

from functools import partial

import pytest
from django.db import IntegrityError, transaction

from agent.wire import Enforcement, SharingMode, SliceKind
from portal.core.errors import Conflict
from portal.core.locks import guarded
from portal.fleet.models import Gpu, MigUnit, Slice
from portal.fleet.selectors import active_leases_of_node, lease_view, lease_views, proof_of_counters
from portal.fleet.services import (
    Release,
    lease_started,
    mark_unreachable,
    record_gpu_health,
    release_leases,
    want_absent,
)
from tests.builders import GPU_MIB, NOW, gpu, gpu_info, later, lease, node, wanted
from tests.racing import codes, race

RACERS = 10


def release(*lease_ids, started_at=NOW, ended_at=NOW):
    with guarded():
        released = release_leases(
            [Release(lease_id, started_at, ended_at) for lease_id in lease_ids], now=later(60)
        )
    return set(released)


def whole(gpu_id):
    return wanted(gpu_id, compute_milli=1000, memory_mib=GPU_MIB, kind=SliceKind.WHOLE)


def mig(gpu_id, start, *, size=1):
    return wanted(
        gpu_id,
        compute_milli=142,
        memory_mib=16_384,
        kind=SliceKind.MIG,
        mig_profile="1g.18gb",
        mig_start=start,
        mig_size=size,
    )


@pytest.mark.django_db
def test_a_lease_takes_its_part_and_is_wanted_running():
    node_id = node()
    share = wanted(gpu().id, compute_milli=250, memory_mib=8192)

    lease(share)

    shown = lease_view(share.lease_id)
    assert (shown.desired, shown.generation, shown.kind) == ("running", 1, SliceKind.SHARE)
    assert (shown.gpu_uuid, shown.node_id) == ("GPU-0", node_id)
    assert shown.enforcement_memory is None
    assert (gpu().compute_leased_milli, gpu().memory_leased_mib) == (250, 8192)
    assert [view.id for view in active_leases_of_node(node_id)] == [share.lease_id]
    assert proof_of_counters() == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "excess", [{"compute_milli": 251}, {"memory_mib": GPU_MIB - 8191}], ids=["compute", "memory"]
)
def test_a_batch_beyond_the_gpu_is_refused_as_a_whole(excess):
    node()
    gpu_id = gpu().id
    lease(wanted(gpu_id, compute_milli=750, memory_mib=8192))

    with pytest.raises(Conflict, match=r"fleet\.gpu_taken"):
        lease(wanted(gpu_id, compute_milli=1, memory_mib=1), wanted(gpu_id, **excess))

    assert (gpu().compute_leased_milli, len(gpu().leases)) == (750, 1)


@pytest.mark.django_db
def test_the_last_part_of_a_gpu_can_be_leased():
    node()

    lease(*(wanted(gpu().id, compute_milli=250, memory_mib=GPU_MIB // 4) for _ in range(4)))

    assert gpu().compute_leased_milli == 1000


@pytest.mark.django_db
def test_a_gpu_out_of_service_is_not_leased():
    node_id = node("node-1", gpu_info("GPU-0"), gpu_info("GPU-1", index=1))
    sick = gpu_info("GPU-0", healthy=False, health_reason="XID 79")
    record_gpu_health(node_id=node_id, gpu=sick, now=NOW)

    with pytest.raises(Conflict, match=r"fleet\.gpu_unavailable"):
        lease(wanted(gpu("GPU-0").id))
    lease(wanted(gpu("GPU-1").id))

    mark_unreachable(node_id=node_id, now=NOW)
    with pytest.raises(Conflict, match=r"fleet\.gpu_unavailable"):
        lease(wanted(gpu("GPU-1").id))


@pytest.mark.django_db
def test_the_database_itself_refuses_more_than_a_gpu_has():
    node()

    for excess in ({"compute_leased_milli": 1001}, {"memory_leased_mib": GPU_MIB + 1}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Gpu.objects.update(**excess)


@pytest.mark.django_db
def test_releasing_again_frees_nothing():
    node()
    kept, ended = lease(wanted(gpu().id), wanted(gpu().id))

    first = release(ended, ended_at=later(30))
    second = release(ended, ended_at=later(40))

    assert (first, second) == ({ended}, set())
    assert lease_view(ended).ended_at == later(30)
    assert [view.id for view in gpu().leases] == [kept]
    assert gpu().compute_leased_milli == 250
    assert proof_of_counters() == []


@pytest.mark.django_db
def test_a_whole_gpu_keeps_its_slice_and_is_leased_once_at_a_time():
    node()
    gpu_id = gpu().id
    (first,) = lease(whole(gpu_id))
    with pytest.raises(Conflict, match=r"fleet\.gpu_taken"):
        lease(whole(gpu_id))
    release(first)

    lease(whole(gpu_id))

    assert Slice.objects.count() == 1


@pytest.mark.django_db
def test_mig_units_are_leased_once_and_come_back():
    node("node-1", gpu_info(mode=SharingMode.MIG))
    gpu_id = gpu().id
    first, _ = lease(mig(gpu_id, 0, size=2), mig(gpu_id, 2))
    with pytest.raises(Conflict, match=r"fleet\.gpu_taken"):
        lease(mig(gpu_id, 1))
    with pytest.raises(Conflict, match=r"fleet\.gpu_taken"):
        lease(mig(gpu_id, 3, size=2), mig(gpu_id, 4))
    release(first)

    lease(mig(gpu_id, 1))

    held = MigUnit.objects.filter(released_at__isnull=True).values_list("unit", flat=True)
    assert sorted(held) == [1, 2]
    assert proof_of_counters() == []


@pytest.mark.django_db
def test_a_start_is_recorded_once():
    node()
    (lease_id,) = lease(wanted(gpu().id))
    start = partial(
        lease_started,
        lease_id,
        enforcement_memory=Enforcement.NONE,
        enforcement_compute=Enforcement.NONE,
    )

    assert start(started_at=later(1))
    assert not start(started_at=later(2))
    assert lease_view(lease_id).started_at == later(1)
    assert lease_view(lease_id).enforcement_memory is Enforcement.NONE


@pytest.mark.django_db
def test_wishing_a_lease_away_again_changes_nothing():
    node()
    (lease_id,) = lease(wanted(gpu().id))

    assert (want_absent(lease_id), want_absent(lease_id)) == (2, 2)
    assert lease_view(lease_id).desired == "absent"


@pytest.mark.django_db
def test_a_batch_of_any_size_takes_as_many_queries(django_assert_max_num_queries):
    node()
    gpu_id = gpu().id

    with django_assert_max_num_queries(6):
        ids = lease(*(wanted(gpu_id, compute_milli=10, memory_mib=100) for _ in range(50)))
    with django_assert_max_num_queries(8):
        release(*ids)
    with django_assert_max_num_queries(1):
        assert len(lease_views(ids)) == 50


@pytest.mark.django_db(transaction=True)
def test_racing_leases_never_pass_the_gpu():
    node()
    gpu_id = gpu().id

    outcomes = race(*(partial(lease, wanted(gpu_id, compute_milli=300)) for _ in range(RACERS)))

    assert codes(outcomes) == ["fleet.gpu_taken"] * (RACERS - 3)
    assert (gpu().compute_leased_milli, len(gpu().leases)) == (900, 3)
    assert proof_of_counters() == []


@pytest.mark.django_db(transaction=True)
def test_racing_leases_of_two_gpus_do_not_block_each_other_for_ever():
    node("node-1", gpu_info("GPU-0"), gpu_info("GPU-1", index=1))
    ids = [gpu("GPU-0").id, gpu("GPU-1").id]

    def both(order):
        return lease(*(wanted(gpu_id, compute_milli=100) for gpu_id in order))

    outcomes = race(*(partial(both, order) for order in (ids, ids[::-1]) * 5))

    assert codes(outcomes) == []
    assert gpu("GPU-0").compute_leased_milli == gpu("GPU-1").compute_leased_milli == 1000


@pytest.mark.django_db(transaction=True)
def test_racing_leases_of_one_whole_gpu_give_it_once():
    node()
    gpu_id = gpu().id

    outcomes = race(*(partial(lease, whole(gpu_id)) for _ in range(RACERS)))

    assert len(codes(outcomes)) == RACERS - 1
    assert len(gpu().leases) == 1


@pytest.mark.django_db(transaction=True)
def test_racing_leases_of_one_mig_unit_give_it_once():
    node("node-1", gpu_info(mode=SharingMode.MIG))
    gpu_id = gpu().id

    outcomes = race(*(partial(lease, mig(gpu_id, 3)) for _ in range(RACERS)))

    assert len(codes(outcomes)) == RACERS - 1
    assert proof_of_counters() == []


@pytest.mark.django_db(transaction=True)
def test_racing_releases_free_once():
    node()
    kept, ended = lease(wanted(gpu().id), wanted(gpu().id))

    outcomes = race(*(partial(release, ended) for _ in range(RACERS)))

    assert sorted(map(len, outcomes)) == [0] * (RACERS - 1) + [1]
    assert gpu().compute_leased_milli == 250
    assert [view.id for view in gpu().leases] == [kept]


@pytest.mark.django_db(transaction=True)
def test_leases_and_releases_at_once_keep_the_counters():
    node()
    gpu_id = gpu().id
    running = lease(*(wanted(gpu_id, compute_milli=100) for _ in range(5)))

    race(
        *(partial(release, lease_id) for lease_id in running),
        *(partial(lease, wanted(gpu_id, compute_milli=50)) for _ in range(5)),
    )

    assert gpu().compute_leased_milli == 250
    assert proof_of_counters() == []
