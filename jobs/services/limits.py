"""Whom a limit would hit, before it is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from jobs.scheduling.schedule import schedule, smallest_equivalent
from jobs.scheduling.view import ClusterView, Level, QueuedJob
from jobs.selectors import JobName, gpu_states, jobs_of_attempts, queue_head
from jobs.services.cycle import QUEUE_READ, levels_above
from portal.accounts.selectors import project_ids_below
from quotas.selectors import held_in_projects, levels_of

_LIMIT_REACHED = "quotas.limit_reached"


@dataclass(frozen=True)
class Holder:
    """A job that holds quota now; ``above`` when it began beyond the new limit."""

    job: JobName
    equivalent_milli: int
    above: bool


@dataclass(frozen=True)
class LimitPreview:
    """The effect of a limit: nothing ends; ``waiting`` of the queue would wait for it.

    ``never`` of those would wait for good, as each takes more than the limit.
    """

    held_milli: int
    over_milli: int
    holders: tuple[Holder, ...]
    waiting_now: int
    waiting: int
    never: int

    @property
    def above(self) -> int:
        return sum(holder.above for holder in self.holders)


def preview_limit(owner_id: str, limit_milli: int | None, *, now: datetime) -> LimitPreview:
    """What would change for the jobs below a tenant or project if its limit were another."""
    projects = project_ids_below(owner_id)
    held = held_in_projects(projects)
    names = jobs_of_attempts(held)
    holders = []
    total = 0
    for attempt_id, milli in held.items():
        total += milli
        above = limit_milli is not None and total > limit_milli
        holders.append(Holder(names[attempt_id], milli, above))
    gpus = gpu_states()
    queue = queue_head(QUEUE_READ, now).jobs
    levels = levels_above(queue)
    own = {job.job_id: job for job in queue if job.project_id in projects}
    changed = {
        **levels,
        **({owner_id: replace(levels[owner_id], limit_milli=limit_milli)} if own else {}),
    }

    def held_back(by: Mapping[str, Level]) -> list[QueuedJob]:
        plan = schedule(ClusterView(gpus, queue, by))
        return [
            own[wait.job_id]
            for wait in plan.waiting
            if wait.code == _LIMIT_REACHED and wait.job_id in own
        ]

    waiting = held_back(changed)
    sizes = [smallest_equivalent(job, gpus) for job in waiting]
    level = levels_of([owner_id])[owner_id]
    return LimitPreview(
        held_milli=level.held_milli,
        over_milli=0 if limit_milli is None else max(0, level.held_milli - limit_milli),
        holders=tuple(reversed(holders)),
        waiting_now=len(held_back(levels)),
        waiting=len(waiting),
        never=sum(limit_milli is not None and (size or 0) > limit_milli for size in sizes),
    )
