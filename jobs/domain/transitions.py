"""The life cycle of a job: one table of (state, event) decides; unknown pairs raise.

`EventKind` names what was decided (by a user or the scheduler) or observed (on a node).
`judge_end` turns what a node saw of an ended attempt into the event for the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from jobs.domain import retries
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
    HELD = "held"
    RELEASED = "released"


_S = JobState
_E = EventKind
TABLE: dict[tuple[JobState, EventKind], JobState] = {
    (_S.QUEUED, _E.ADMITTED): _S.STARTING,
    (_S.QUEUED, _E.CANCELLED): _S.CANCELLED,
    (_S.QUEUED, _E.HELD): _S.QUEUED,
    (_S.QUEUED, _E.RELEASED): _S.QUEUED,
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
    SECRET_MISSING = "secret_missing"  # noqa: S105 - the name of a reason


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
    """The event for the job, with a stable code and a sentence for people.

    ``pause_s``: the next attempt starts not before so many seconds.
    """

    event: EventKind
    code: str
    reason: str
    pause_s: int = 0


def judge_end(
    end: End,
    *,
    wish: Wish,
    attempts_left: int,
    attempts_used: int = 1,
    retry_exit_codes: Sequence[Sequence[int]] = (),
    time_limit_s: int | None = None,
) -> Judgement:
    """Decide what the end of an attempt means for its job.

    A program that ended by itself is judged by its exit code, also when a cancellation was under
    way; anything that cut it short is a cancellation if one was wished for. Ends without fault of
    the job queue it again, the others of `RETRIED_ENDS` as long as attempts are left, and so do
    the exit codes that the job asked to try again, after a pause that doubles.
    """
    if end.kind is EndKind.EXITED:
        if end.exit_code == 0:
            return Judgement(EventKind.SUCCEEDED, "succeeded", "The command exited with 0.")
        return _judge_exit_code(
            end.exit_code or 0,
            attempts_left=attempts_left,
            attempts_used=attempts_used,
            retry_exit_codes=() if wish is Wish.CANCEL else retry_exit_codes,
        )
    if wish is Wish.CANCEL:
        return Judgement(EventKind.CANCELLED, "cancelled", "Cancelled on request.")
    if end.kind is EndKind.TIME_LIMIT:
        limit = f" of {time_limit_s} s" if time_limit_s else ""
        return Judgement(EventKind.TIMED_OUT, "time_limit", f"Stopped at its time limit{limit}.")
    sentence = end.detail or _SENTENCES[end.kind].format(signal=end.exit_signal)
    retried = end.kind in FREE_ENDS or (end.kind in RETRIED_ENDS and attempts_left > 0)
    return Judgement(EventKind.REQUEUED if retried else EventKind.FAILED, end.kind, sentence)


def _judge_exit_code(
    exit_code: int,
    *,
    attempts_left: int,
    attempts_used: int,
    retry_exit_codes: Sequence[Sequence[int]],
) -> Judgement:
    told = f"The command exited with {exit_code}"
    if not retries.is_retried(exit_code, retry_exit_codes):
        return Judgement(EventKind.FAILED, "exit_code", f"{told}.")
    if attempts_left <= 0:
        return Judgement(EventKind.FAILED, "exit_code", f"{told}, and no attempt is left.")
    pause_s = retries.pause_s(attempts_used)
    return Judgement(
        EventKind.REQUEUED, "retry_exit_code", f"{told}; tried again after {pause_s} s.", pause_s
    )


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
    EndKind.SECRET_MISSING: "A secret that the job wants does not exist any more.",
}
