"""Properties of the plan over random clusters and queues, and the sentences of those who wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from jobs.domain.states import Form
from jobs.scheduling.mig import Placement, Profile
from jobs.scheduling.schedule import can_ever_fit, schedule, smallest_equivalent
from jobs.scheduling.view import ClusterView, GpuState, Level, QueuedJob, Request
from tests.unit.jobs import rules

START = datetime(2026, 3, 1, tzinfo=UTC)
MEMORY = {
    "NVIDIA H200": 143_771,
    "NVIDIA A100-SXM4-80GB": 81_559,
    "NVIDIA A30": 24_258,
    "NVIDIA L40S": 46_068,
}
TREES = [("root", "left", "p1"), ("root", "left", "p2"), ("root", "right", "p3"), ("lone", "p4")]
RANDOM = settings(max_examples=50, deadline=None, derandomize=True)


@st.composite
def requests(draw):
    return Request(
        compute_milli=draw(st.none() | st.sampled_from([1, 100, 142, 143, 250, 333, 500, 1000])),
        memory_mib=draw(st.none() | st.sampled_from([1, 5000, 17_000, 20_000, 40_000, 100_000])),
        form=draw(st.sampled_from([Form.ANY, Form.ANY, Form.SHARE, Form.MIG, Form.WHOLE])),
        gpu_model=draw(st.sampled_from(["", "", "", "h200", "A30", "0"])),
    )


def lopsided():
    """Little compute and much memory: the memory of a GPU ends first."""
    return st.builds(Request, st.sampled_from([1, 50]), st.sampled_from([9_000, 30_000, 70_000]))


@st.composite
def gpus(draw, number):
    mode = draw(st.sampled_from(["share", "whole", "mig"]))
    model = draw(st.sampled_from(sorted(rules.CARDS if mode == "mig" else MEMORY)))
    memory = MEMORY[model]
    gpu = GpuState(
        gpu_id=f"gpu{number}",
        node_name=f"node{number // 2}",
        index=number % 2,
        model=model,
        memory_mib=memory,
        mode=mode,
        usable=draw(st.integers(0, 9)) > 0,
        family=rules.family(model) if mode == "mig" else None,
    )
    leased = {"share": _shares, "whole": _whole, "mig": _instances}[mode]
    return draw(leased(gpu))


def _shares(gpu):
    return st.builds(
        lambda compute, memory: replace(
            gpu, compute_leased_milli=compute, memory_leased_mib=memory * gpu.memory_mib // 1000
        ),
        *[st.sampled_from([0, 0, 1, 250, 500, 999, 1000])] * 2,
    )


def _whole(gpu):
    full = replace(gpu, compute_leased_milli=1000, memory_leased_mib=gpu.memory_mib)
    return st.sampled_from([gpu, gpu, full])


@st.composite
def _instances(draw, gpu):
    profiles, slices, _ = rules.CARDS[gpu.model]
    taken: list[tuple[str, int]] = []
    for _ in range(draw(st.integers(0, 4))):
        room = rules.mig_room(gpu.model, taken)
        taken += draw(st.lists(st.sampled_from(room), max_size=1)) if room else []
    return replace(
        gpu,
        compute_leased_milli=sum(profiles[name][0] * 1000 // slices for name, _ in taken),
        memory_leased_mib=sum(profiles[name][3] for name, _ in taken),
        instances=frozenset(Placement(*place) for place in taken),
    )


LIMITS = st.none() | st.integers(0, 4000)


@st.composite
def views(draw, limits=LIMITS):
    owners = sorted({owner for line in TREES for owner in line})
    size = draw(st.integers(0, 5))
    # few kinds of requests, so that jobs compete for the same slices
    kinds = st.sampled_from(draw(st.lists(requests() | lopsided(), min_size=1, max_size=3)))
    queue = tuple(
        QueuedJob(
            job_id=f"job{number:02}",
            project_id=line[-1],
            owner_ids=line,
            priority=draw(st.sampled_from([-10, 0, 0, 10])),
            queued_at=START + timedelta(seconds=draw(st.integers(0, 3))),
            request=draw(kinds),
        )
        for number in range(draw(st.integers(0, 14)))
        for line in [draw(st.sampled_from(TREES))]
    )
    return ClusterView(
        gpus=tuple(draw(gpus(number)) for number in range(size)),
        queue=queue,
        levels={
            owner: Level(f"owner {owner}", draw(limits), draw(st.integers(0, 1500)))
            for owner in owners
        },
    )


UNLIMITED = views(limits=st.none())


def final_gpus(view, plan):
    """The GPUs with what the plan put on them."""
    after = {gpu.gpu_id: gpu for gpu in view.gpus}
    for placed in plan.placed:
        gpu = after[placed.gpu_id]
        after[placed.gpu_id] = replace(
            gpu,
            compute_leased_milli=gpu.compute_leased_milli + placed.compute_milli,
            memory_leased_mib=gpu.memory_leased_mib + placed.memory_mib,
            instances=gpu.instances | ({placed.instance} - {None}),
        )
    return after


def jobs_of(view):
    return {job.job_id: job for job in view.queue}


@RANDOM
@given(views())
def test_no_gpu_gives_more_than_it_has(view):
    for gpu in final_gpus(view, schedule(view)).values():
        assert gpu.compute_leased_milli <= 1000
        assert gpu.memory_leased_mib <= gpu.memory_mib


@RANDOM
@given(views())
def test_a_whole_gpu_is_nobody_elses(view):
    plan = schedule(view)
    on = Counter(placed.gpu_id for placed in plan.placed)
    before = {gpu.gpu_id: gpu for gpu in view.gpus}
    for placed in [placed for placed in plan.placed if placed.kind == "whole"]:
        assert on[placed.gpu_id] == 1
        assert before[placed.gpu_id].memory_leased_mib == 0
        assert before[placed.gpu_id].compute_leased_milli == 0
        assert placed.memory_mib == before[placed.gpu_id].memory_mib
        assert (placed.compute_milli, placed.equivalent_milli) == (1000, 1000)


@RANDOM
@given(views())
def test_mig_instances_are_legal_and_only_on_mig_gpus(view):
    plan = schedule(view)
    modes = {gpu.gpu_id: gpu.mode for gpu in view.gpus}
    assert {modes[p.gpu_id] for p in plan.placed if p.kind == "mig"} <= {"mig"}
    assert {p.kind for p in plan.placed if modes[p.gpu_id] == "mig"} <= {"mig"}
    for gpu in final_gpus(view, plan).values():
        places = [(place.profile, place.start) for place in gpu.instances]
        assert mode_allows(gpu, places)
    made = [(p.gpu_id, p.instance) for p in plan.placed if p.instance]
    assert len(made) == len(set(made))


def mode_allows(gpu, places):
    return rules.mig_is_legal(gpu.model, places) if gpu.mode == "mig" else places == []


@RANDOM
@given(views())
def test_nobody_gets_less_than_asked_or_anything_else(view):
    jobs = jobs_of(view)
    at_first = {gpu.gpu_id: gpu for gpu in view.gpus}
    for placed in schedule(view).placed:
        request, gpu = jobs[placed.job_id].request, at_first[placed.gpu_id]
        compute, memory = rules.sizes(request, gpu.memory_mib)
        # 142 of 1000 is what one of seven compute slices is called
        assert placed.compute_milli + 1 > compute
        # an instance chosen by its compute alone comes with the memory that it has
        derived = {"mig": 1, "share": memory, "whole": gpu.memory_mib}[placed.kind]
        assert placed.memory_mib >= (request.memory_mib or derived)
        assert gpu.usable
        assert request.gpu_model.lower() in gpu.model.lower()
        assert request.form in ("any", placed.kind)
        assert placed.equivalent_milli == rules.equivalent(
            placed.compute_milli, placed.memory_mib, gpu.memory_mib
        )


@RANDOM
@given(UNLIMITED)
def test_whoever_waits_finds_no_slice_in_the_end(view):
    plan = schedule(view)
    after = final_gpus(view, plan).values()
    jobs = jobs_of(view)
    for waiting in plan.waiting:
        request = jobs[waiting.job_id].request
        assert [list(rules.slices_for(request, gpu)) for gpu in after] == [[]] * len(after)
        assert waiting.code in ("jobs.no_gpu_free", "jobs.mig_geometry", "jobs.no_node")


@RANDOM
@given(views())
def test_whoever_waits_for_quota_finds_no_slice_within_it(view):
    plan = schedule(view)
    after = final_gpus(view, plan).values()
    jobs, room = jobs_of(view), room_left(view, plan)
    for waiting in plan.waiting:
        job = jobs[waiting.job_id]
        least = min(room[owner] for owner in job.owner_ids)
        for gpu in after:
            assert [size for size in rules.slices_for(job.request, gpu) if size <= least] == []


def room_left(view, plan):
    """What every level still has; a level without limit has plenty."""
    held: Counter[str] = Counter()
    jobs = jobs_of(view)
    for placed in plan.placed:
        held.update(dict.fromkeys(jobs[placed.job_id].owner_ids, placed.equivalent_milli))
    return {
        owner: (10**9 if level.limit_milli is None else level.limit_milli)
        - level.held_milli
        - held[owner]
        for owner, level in view.levels.items()
    }


@RANDOM
@given(views())
def test_no_level_holds_more_than_its_limit(view):
    plan = schedule(view)
    jobs, room = jobs_of(view), room_left(view, plan)
    for placed in plan.placed:
        assert min(room[owner] for owner in jobs[placed.job_id].owner_ids) >= 0


@RANDOM
@given(views())
def test_of_equal_requests_the_first_in_order_are_placed(view):
    plan = schedule(view)
    is_placed = {placed.job_id for placed in plan.placed}
    groups = defaultdict(list)
    for job in sorted(view.queue, key=lambda job: (-job.priority, job.queued_at, job.job_id)):
        groups[job.request, job.owner_ids].append(job.job_id in is_placed)
    for placed in groups.values():
        assert placed == sorted(placed, reverse=True)


@RANDOM
@given(views(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(view, chance):
    mixed = ClusterView(
        gpus=tuple(chance.sample(view.gpus, len(view.gpus))),
        queue=tuple(chance.sample(view.queue, len(view.queue))),
        levels=dict(chance.sample(sorted(view.levels.items()), len(view.levels))),
    )
    assert schedule(mixed) == schedule(view) == schedule(view)


@RANDOM
@given(views())
def test_each_job_is_placed_or_told_why_exactly_once(view):
    plan = schedule(view)
    told = Counter([p.job_id for p in plan.placed] + [w.job_id for w in plan.waiting])
    assert told == Counter(job.job_id for job in view.queue)
    assert all(waiting.code and waiting.reason.endswith(".") for waiting in plan.waiting)


@RANDOM
@given(UNLIMITED)
def test_what_was_placed_alone_on_an_empty_cluster_could_ever_fit(view):
    empty = tuple(
        replace(
            gpu, usable=True, compute_leased_milli=0, memory_leased_mib=0, instances=frozenset()
        )
        for gpu in view.gpus
    )
    for job in view.queue:
        alone = schedule(ClusterView(empty, (job,), {}))
        assert can_ever_fit(job, view.gpus) == bool(alone.placed)
        sizes = [size for gpu in empty for size in rules.slices_for(job.request, gpu)]
        assert smallest_equivalent(job, view.gpus) == min(sizes, default=None)


@RANDOM
@given(UNLIMITED)
def test_a_second_cycle_finds_nothing_more(view):
    plan = schedule(view)
    waits = {waiting.job_id for waiting in plan.waiting}
    assume(waits)
    again = schedule(
        ClusterView(
            tuple(final_gpus(view, plan).values()),
            tuple(job for job in view.queue if job.job_id in waits),
            view.levels,
        )
    )
    assert again.placed == ()


# ---- by hand --------------------------------------------------------------------------------


def gpu(gpu_id="g0", *, mode="share", model="NVIDIA H200", **given):
    family = rules.family(model) if mode == "mig" else None
    return GpuState(
        gpu_id, "node", 0, model, MEMORY[model], mode, usable=True, family=family, **given
    )


def job(job_id="j", *, priority=0, owners=("t", "p"), **request):
    return QueuedJob(
        job_id,
        "p",
        owners,
        priority,
        START,
        Request(**{"compute_milli": None, "memory_mib": None, **request}),
    )


def waiting_of(*gpus_here, levels=None, **request):
    plan = schedule(ClusterView(gpus_here, (job(**request),), levels or {}))
    assert plan.placed == ()
    return plan.waiting[0]


def placed_on(*gpus_here, levels=None, **request):
    plan = schedule(ClusterView(gpus_here, (job(**request),), levels or {}))
    return plan.placed[0]


def test_a_higher_priority_takes_the_only_place():
    low, high = job("a", priority=-10, compute_milli=600), job("b", priority=10, compute_milli=600)
    plan = schedule(ClusterView((gpu(),), (low, high), {}))
    assert [placed.job_id for placed in plan.placed] == ["b"]
    assert plan.waiting[0].job_id == "a"
    assert plan.waiting[0].code == "jobs.no_gpu_free"


def test_a_small_job_passes_a_large_one_that_waits():
    large, small = job("a", priority=10), job("b", compute_milli=100)
    plan = schedule(ClusterView((gpu(compute_leased_milli=500),), (large, small), {}))
    assert [placed.job_id for placed in plan.placed] == ["b"]


def test_shares_fill_the_fullest_gpu_first():
    fuller = gpu("g1", compute_leased_milli=500, memory_leased_mib=10)
    assert placed_on(gpu("g0"), fuller, compute_milli=500, memory_mib=10).gpu_id == "g1"


def test_a_share_of_everything_is_a_share():
    assert placed_on(gpu(), form=Form.SHARE).kind == "share"
    assert placed_on(gpu(), form=Form.SHARE, compute_milli=1000).compute_milli == 1000


def test_a_mig_job_without_sizes_gets_the_whole_geometry():
    assert placed_on(gpu(mode="mig"), form=Form.MIG).instance == Placement("7g.141gb", 0)


@pytest.mark.parametrize("memory_mib", [143_772, 200_000, 100_000_000])
@pytest.mark.parametrize("mode", ["share", "whole", "mig"])
@pytest.mark.parametrize("form", list(Form))
def test_more_memory_than_a_gpu_has_fits_nowhere(memory_mib, mode, form):
    assert waiting_of(gpu(mode=mode), form=form, memory_mib=memory_mib).code == "jobs.no_node"


@pytest.mark.parametrize(
    ("memory_mib", "profile"),
    [
        (16_384, "1g.18gb"),
        (16_385, "1g.35gb"),
        (30_000, "2g.35gb"),
        (60_000, "3g.71gb"),
        (70_000, "4g.71gb"),
        (72_000, "7g.141gb"),
    ],
)
def test_the_instance_that_wastes_least_serves(memory_mib, profile):
    placed = placed_on(gpu(mode="mig"), memory_mib=memory_mib)
    assert placed.instance.profile == profile


def test_memory_beyond_the_compute_takes_the_slim_profile():
    placed = placed_on(gpu(mode="mig"), memory_mib=30_000, compute_milli=100)
    assert placed.instance == Placement("1g.35gb", 6)


def test_a_share_is_preferred_to_an_instance_that_wastes():
    here = placed_on(gpu("g0", mode="mig"), gpu("g1"), memory_mib=60_000)
    assert (here.gpu_id, here.kind) == ("g1", "share")


def test_a_job_waits_for_a_neighbour_when_only_the_geometry_is_in_the_way():
    # units 0, 3 and 6: five are free, but no four in a row
    taken = frozenset(Placement("1g.18gb", start) for start in (0, 3, 6))
    told = waiting_of(gpu(mode="mig", instances=taken), form=Form.MIG, memory_mib=60_000)
    assert told.code == "jobs.mig_geometry"
    assert "a neighbour ends" in told.reason


def test_a_full_gpu_is_told_with_its_sizes():
    told = waiting_of(gpu(compute_leased_milli=900), compute_milli=250, gpu_model="H200")
    assert told.code == "jobs.no_gpu_free"
    assert told.reason == (
        "No GPU has 25 % of its compute and 35942 MiB of model H200 free; "
        "it starts when other jobs end."
    )


def test_sizes_are_told_of_a_gpu_that_could_serve():
    full = gpu("g1", compute_leased_milli=1000)
    told = waiting_of(gpu("g0", model="NVIDIA A30"), full, memory_mib=50_000)
    assert told.reason.startswith("No GPU has 34.8 % of its compute and 50000 MiB free")


def test_no_gpu_in_service_is_told():
    assert waiting_of(replace(gpu(), usable=False)).code == "jobs.no_node"
    assert waiting_of().code == "jobs.no_node"


def test_a_full_level_is_told_by_name_and_limit():
    levels = {"t": Level("tenant acme", 1500, 1000), "p": Level("project vision", None, 1000)}
    told = waiting_of(gpu(), levels=levels)
    assert told.code == "quotas.limit_reached"
    assert told.reason.startswith("The tenant acme may hold 1.5 GPUs at once")


def test_a_job_takes_the_gpu_on_which_its_quota_suffices():
    levels = {"t": Level("tenant acme", 300, 0)}
    half, eighth = gpu("g0", model="NVIDIA A30"), gpu("g1")
    placed = placed_on(half, eighth, levels=levels, memory_mib=12_000)
    assert (placed.gpu_id, placed.equivalent_milli) == ("g1", 84)


def test_a_mig_gpu_without_a_table_gives_no_instance():
    untold = replace(gpu(mode="mig"), family=None)
    assert waiting_of(untold, memory_mib=10).code == "jobs.no_node"


def test_an_instance_with_media_engines_is_not_given_away():
    plain = rules.family("NVIDIA H200")
    media = Profile("1g.18gb+me", 1, 1, (0, 1, 2, 3, 4, 5, 6), 16_384, media=True)
    with_media = replace(plain, profiles=(media, *plain.profiles))
    placed = placed_on(replace(gpu(mode="mig"), family=with_media), memory_mib=10)
    assert placed.instance == Placement("1g.18gb", 6)


@RANDOM
@given(requests())
@example(Request(1, None))
def test_a_tiny_gpu_is_no_trouble(request):
    tiny = GpuState("g", "n", 0, "NVIDIA H200", 500, "share", usable=True)
    plan = schedule(ClusterView((tiny,), (job(**vars(request)),), {}))
    assert len(plan.placed) + len(plan.waiting) == 1
