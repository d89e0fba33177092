"""The life cycle of a job: one table of (state, event) decides; unknown pairs raise.

`EventKind` names what was decided (by a user or the scheduler) or observed (on a node).
`judge_end` turns what a node saw of an ended attempt into the event for the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jobs.domain.errors import InvalidTransition
from jobs.domain.states import JobState, Wish


class EventKind(StrEnum):
    ADMITTED = "admitted"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    REQUEUED = "requeued"


_S = JobState
_E = EventKind
TABLE: dict[tuple[JobState, EventKind], JobState] = {
    (_S.QUEUED, _E.ADMITTED): _S.STARTING,
    (_S.QUEUED, _E.CANCELLED): _S.CANCELLED,
    (_S.STARTING, _E.STARTED): _S.RUNNING,
    **{
        (state, event): after
        for state in (_S.STARTING, _S.RUNNING)
        for event, after in (
            (_E.SUCCEEDED, _S.SUCCEEDED),
            (_E.FAILED, _S.FAILED),
            (_E.TIMED_OUT, _S.TIMED_OUT),
            (_E.CANCELLED, _S.CANCELLED),
            (_E.REQUEUED, _S.QUEUED),
        )
    },
}


def after(state: JobState, event: EventKind, story: str = "") -> JobState:
    """The state that follows. Raises `InvalidTransition` for a pair that the table lacks."""
    try:
        return TABLE[state, event]
    except KeyError:
        raise InvalidTransition(f"{event} does not apply to {state}. {story}".strip()) from None


class EndKind(StrEnum):
    """How an attempt ended, as its node observed it or as the portal concluded."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIME_LIMIT = "time_limit"
    STOPPED = "stopped"
    COMMAND_NOT_FOUND = "command_not_found"
    START_FAILED = "start_failed"
    NODE_STOPPED = "node_stopped"
    SUPERVISOR_LOST = "supervisor_lost"
    NEVER_STARTED = "never_started"
    REFUSED = "refused"
    NODE_LOST = "node_lost"


#: Ends that the job itself did not cause and that therefore use up none of its attempts.
FREE_ENDS = frozenset(
    {EndKind.NODE_STOPPED, EndKind.NEVER_STARTED, EndKind.STOPPED, EndKind.NODE_LOST}
)
RETRIED_ENDS = FREE_ENDS | {EndKind.SUPERVISOR_LOST, EndKind.REFUSED}


@dataclass(frozen=True)
class End:
    kind: EndKind
    exit_code: int | None = None
    exit_signal: int | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Judgement:
    """The event for the job, with a stable code and a sentence for people."""

    event: EventKind
    code: str
    reason: str


def judge_end(
    end: End, *, wish: Wish, attempts_left: int, time_limit_s: int | None = None
) -> Judgement:
    """Decide what the end of an attempt means for its job.

    A program that ended by itself is judged by its exit code, also when a cancellation was under
    way; anything that cut it short is a cancellation if one was wished for. Ends without fault of
    the job queue it again, the others of `RETRIED_ENDS` as long as attempts are left.
    """
    if end.kind is EndKind.EXITED:
        if end.exit_code == 0:
            return Judgement(EventKind.SUCCEEDED, "succeeded", "The command exited with 0.")
        return Judgement(EventKind.FAILED, "exit_code", f"The command exited with {end.exit_code}.")
    if wish is Wish.CANCEL:
        return Judgement(EventKind.CANCELLED, "cancelled", "Cancelled on request.")
    if end.kind is EndKind.TIME_LIMIT:
        limit = f" of {time_limit_s} s" if time_limit_s else ""
        return Judgement(EventKind.TIMED_OUT, "time_limit", f"Stopped at its time limit{limit}.")
    sentence = end.detail or _SENTENCES[end.kind].format(signal=end.exit_signal)
    retried = end.kind in FREE_ENDS or (end.kind in RETRIED_ENDS and attempts_left > 0)
    return Judgement(EventKind.REQUEUED if retried else EventKind.FAILED, end.kind, sentence)


_SENTENCES = {
    EndKind.SIGNALLED: "The command was ended by signal {signal}.",
    EndKind.STOPPED: "The node stopped the command.",
    EndKind.COMMAND_NOT_FOUND: "The command does not exist on the node.",
    EndKind.START_FAILED: "The node could not start the command.",
    EndKind.NODE_STOPPED: "The node's agent was stopped.",
    EndKind.SUPERVISOR_LOST: "The process that watched over the command was killed.",
    EndKind.NEVER_STARTED: "The command was never started on the node.",
    EndKind.REFUSED: "The node refused the lease.",
    EndKind.NODE_LOST: "The node was declared lost.",
}
