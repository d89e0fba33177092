"""Whether a waiting job may be placed at all, and if not, what it waits for.

These conditions come before quota and room: the scheduler does not see a job that has one open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from jobs.domain.states import TERMINAL, JobState


class WaitCode(StrEnum):
    HELD = "jobs.held"
    WAITS_FOR_JOBS = "jobs.waits_for_jobs"
    NOT_BEFORE = "jobs.not_before"
    ARRAY_THROTTLE = "jobs.array_throttle"


DEPENDENCY_FAILED = "dependency_failed"


class Need(StrEnum):
    """What of another job is waited for: that it succeeds, or only that it ends."""

    OK = "ok"
    ANY = "any"


@dataclass(frozen=True)
class Dependency:
    """Another job, as people call it, and its state now."""

    name: str
    need: Need
    state: JobState

    @property
    def met(self) -> bool:
        return self.state in (TERMINAL if self.need is Need.ANY else {JobState.SUCCEEDED})

    @property
    def lost(self) -> bool:
        return self.state in TERMINAL and not self.met


@dataclass(frozen=True)
class Conditions:
    held: bool = False
    dependencies: tuple[Dependency, ...] = ()
    not_before: datetime | None = None


@dataclass(frozen=True)
class Waits:
    code: WaitCode
    reason: str


@dataclass(frozen=True)
class Never:
    """The job can never start: it is cancelled with this reason."""

    code: str
    reason: str


def judge(conditions: Conditions, now: datetime) -> Waits | Never | None:
    """What keeps the job from being placed, the weightiest first; None: nothing does."""
    lost = [one for one in conditions.dependencies if one.lost]
    if lost:
        return Never(
            DEPENDENCY_FAILED,
            f"It waited for {lost[0].name} to succeed, which ended {lost[0].state}.",
        )
    if conditions.held:
        return Waits(WaitCode.HELD, "Held by a person; it starts after it is released.")
    open_ = [one for one in conditions.dependencies if not one.met]
    if open_:
        what = "succeed" if open_[0].need is Need.OK else "end"
        more = f" and for {len(open_) - 1} more" if len(open_) > 1 else ""
        return Waits(WaitCode.WAITS_FOR_JOBS, f"Waits for {open_[0].name} to {what}{more}.")
    if conditions.not_before is not None and now < conditions.not_before:
        return not_before(conditions.not_before)
    return None


def not_before(at: datetime) -> Waits:
    return Waits(WaitCode.NOT_BEFORE, f"Starts not before {at:%Y-%m-%d %H:%M:%S} UTC.")


def throttle(array_most: int) -> Waits:
    return Waits(
        WaitCode.ARRAY_THROTTLE,
        f"Its array lets {array_most} members run at once; it starts when one of them ends.",
    )


def beyond_room(queue: Iterable[tuple[str, str | None]], room: Mapping[str, int]) -> set[str]:
    """Of (job, array) in the queue's order, the jobs for which their array has no room left.

    An array without an entry in ``room`` has no limit.
    """
    left = dict(room)
    beyond = set()
    for job_id, array_id in queue:
        if array_id is None or array_id not in left:
            continue
        if left[array_id] > 0:
            left[array_id] -= 1
        else:
            beyond.add(job_id)
    return beyond
