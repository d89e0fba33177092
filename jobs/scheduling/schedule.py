"""The scheduler: a pure function from a frozen view to a plan.

Order: priority, then time of queueing, then id. Each job in turn gets, of the slices that every
quota level above it has room for, the one that wastes least on the GPU that is left fullest. A job
that does not fit is passed over and told why.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from jobs.scheduling import mig
from jobs.scheduling.slices import Offer, offers, share_of
from jobs.scheduling.view import ClusterView, GpuState, Level, Placed, Plan, QueuedJob, Waiting
from quotas.domain.accounts import WHOLE_MILLI


def schedule(view: ClusterView) -> Plan:
    """Place what fits and explain the rest; the same view gives the same plan in any order."""
    gpus = {gpu.gpu_id: gpu for gpu in sorted(view.gpus, key=lambda gpu: gpu.gpu_id)}
    taken: Counter[str] = Counter()
    placed: list[Placed] = []
    waiting: list[Waiting] = []
    hopeless: dict[object, Waiting] = {}
    for job in sorted(view.queue, key=lambda job: (-job.priority, job.queued_at, job.job_id)):
        # What did not fit a moment ago does not fit now: within a cycle room only shrinks.
        same = (job.request, job.owner_ids)
        if same in hopeless:
            waiting.append(replace(hopeless[same], job_id=job.job_id))
            continue
        # A slice on a larger GPU counts less, so a level may have room for one and not for another.
        level, most = _tightest_level(job, view, taken)
        choice = _choose(job, gpus, most)
        if choice is None:
            for_quota = level is not None and _choose(job, gpus, WHOLE_MILLI) is not None
            hopeless[same] = (
                _limit_reached(job, level)
                if level is not None and for_quota
                else _no_room(job, tuple(gpus.values()))
            )
            waiting.append(hopeless[same])
            continue
        gpu, offer = choice
        placed.append(_place(job, gpu, offer))
        gpus[gpu.gpu_id] = _after(gpu, offer)
        taken.update(dict.fromkeys(job.owner_ids, offer.equivalent_milli))
    return Plan(tuple(placed), tuple(waiting))


def can_ever_fit(job: QueuedJob, gpus: tuple[GpuState, ...]) -> bool:
    """Whether any of the GPUs could serve the request if it were empty and in service."""
    return any(True for gpu in gpus for _ in offers(job.request, _emptied(gpu)))


def smallest_equivalent(job: QueuedJob, gpus: tuple[GpuState, ...]) -> int | None:
    """The least that the request takes on any of the GPUs, in equivalents."""
    sizes = [offer.equivalent_milli for gpu in gpus for offer in offers(job.request, _emptied(gpu))]
    return min(sizes, default=None)


def _emptied(gpu: GpuState) -> GpuState:
    return replace(gpu, compute_leased_milli=0, memory_leased_mib=0, instances=frozenset())


def _choose(
    job: QueuedJob, gpus: dict[str, GpuState], most_milli: int
) -> tuple[GpuState, Offer] | None:
    """The best slice that counts at most ``most_milli``."""
    candidates = [
        (offer.waste_milli, _left(gpu, offer), gpu.node_name, gpu.index, gpu.gpu_id, number)
        for gpu in gpus.values()
        if gpu.usable
        for number, offer in enumerate(offers(job.request, gpu))
        if offer.equivalent_milli <= most_milli
    ]
    if not candidates:
        return None
    *_, gpu_id, number = min(candidates)
    gpu = gpus[gpu_id]
    return gpu, list(offers(job.request, gpu))[number]


def _left(gpu: GpuState, offer: Offer) -> int:
    return 1000 - gpu.compute_leased_milli - offer.compute_milli


def _place(job: QueuedJob, gpu: GpuState, offer: Offer) -> Placed:
    family = gpu.family
    units = mig.units(family, offer.instance) if family and offer.instance else None
    return Placed(
        job_id=job.job_id,
        gpu_id=gpu.gpu_id,
        kind=offer.kind,
        memory_mib=offer.memory_mib,
        compute_milli=offer.compute_milli,
        equivalent_milli=offer.equivalent_milli,
        instance=offer.instance,
        instance_size=len(units) if units else None,
    )


def _after(gpu: GpuState, offer: Offer) -> GpuState:
    instances = gpu.instances | {offer.instance} if offer.instance else gpu.instances
    return replace(
        gpu,
        compute_leased_milli=gpu.compute_leased_milli + offer.compute_milli,
        memory_leased_mib=gpu.memory_leased_mib + offer.memory_mib,
        instances=instances,
    )


def _tightest_level(
    job: QueuedJob, view: ClusterView, taken: Counter[str]
) -> tuple[Level | None, int]:
    """The level with the least room above the job, the first of equals, and that room."""
    tightest, least = None, WHOLE_MILLI
    for owner_id in job.owner_ids:
        level = view.levels.get(owner_id)
        if level is None or level.limit_milli is None:
            continue
        room = level.limit_milli - level.held_milli - taken[owner_id]
        if room < least:
            tightest, least = level, room
    return tightest, least


def _limit_reached(job: QueuedJob, level: Level) -> Waiting:
    limit = (level.limit_milli or 0) / 1000
    return Waiting(
        job.job_id,
        "quotas.limit_reached",
        f"The {level.name} may hold {limit:g} GPUs at once and has no room for this job now; "
        "it starts when other jobs there end.",
    )


def _no_room(job: QueuedJob, gpus: tuple[GpuState, ...]) -> Waiting:
    usable = tuple(gpu for gpu in gpus if gpu.usable and can_ever_fit(job, (gpu,)))
    if not usable and any(gpu.in_maintenance and can_ever_fit(job, (gpu,)) for gpu in gpus):
        code = "jobs.maintenance"
        reason = (
            "Every GPU that could serve this job is on a node in maintenance; it starts when the "
            "node is resumed."
        )
    elif not usable:
        code, reason = "jobs.no_node", "No GPU that could serve this job is in service now."
    elif _only_geometry(job, usable):
        code = "jobs.mig_geometry"
        reason = (
            f"MIG GPUs have {_wanted(job, usable)} free, but not where an instance of that size "
            "may start; it starts when a neighbour ends."
        )
    else:
        code = "jobs.no_gpu_free"
        reason = f"No GPU has {_wanted(job, usable)} free; it starts when other jobs end."
    return Waiting(job.job_id, code, reason)


def _wanted(job: QueuedJob, gpus: tuple[GpuState, ...]) -> str:
    request = job.request
    model = f" of model {request.gpu_model}" if request.gpu_model else ""
    if request.wants_whole:
        return f"a whole device{model}"
    compute, memory = share_of(request, min(gpu.memory_mib for gpu in gpus))
    return f"{compute / 10:g} % of its compute and {memory} MiB{model}"


def _only_geometry(job: QueuedJob, gpus: tuple[GpuState, ...]) -> bool:
    """A MIG GPU has compute slices and memory units enough, only not at a legal start."""
    for gpu in gpus:
        family = gpu.family
        if family is None:
            continue
        free = family.memory_units - sum(len(mig.units(family, i)) for i in gpu.instances)
        slices = family.compute_slices - sum(
            family.profile(i.profile).compute_slices for i in gpu.instances
        )
        for offer in offers(job.request, _emptied(gpu)):
            if offer.instance is None:
                continue
            profile = family.profile(offer.instance.profile)
            if profile.size <= free and profile.compute_slices <= slices:
                return True
    return False
