"""The life cycle: every pair of state and event, and what each end of an attempt means."""

from __future__ import annotations

import pytest

from jobs.domain.errors import InvalidTransition
from jobs.domain.states import ACTIVE, TERMINAL, JobState, Wish
from jobs.domain.transitions import End, EndKind, EventKind, after, judge_end

QUEUED, STARTING, RUNNING = JobState.QUEUED, JobState.STARTING, JobState.RUNNING

ENDS = [
    ("succeeded", JobState.SUCCEEDED),
    ("failed", JobState.FAILED),
    ("timed_out", JobState.TIMED_OUT),
    ("cancelled", JobState.CANCELLED),
    ("requeued", JobState.QUEUED),
]
ALLOWED = {
    (QUEUED, "admitted"): STARTING,
    (QUEUED, "cancelled"): JobState.CANCELLED,
    (QUEUED, "held"): QUEUED,
    (QUEUED, "released"): QUEUED,
    (STARTING, "started"): RUNNING,
    **{(STARTING, event): state for event, state in ENDS},
    **{(RUNNING, event): state for event, state in ENDS},
}
REFUSED = [
    (state, event)
    for state in JobState
    for event in EventKind
    if (state, event.value) not in ALLOWED
]


@pytest.mark.parametrize(("state", "event"), ALLOWED)
def test_a_pair_of_the_table_leads_to_its_state(state, event):
    assert after(state, EventKind(event)) is ALLOWED[state, event]


@pytest.mark.parametrize(("state", "event"), REFUSED)
def test_any_other_pair_raises_and_tells_the_story(state, event):
    with pytest.raises(InvalidTransition) as refused:
        after(state, event, story="Job 7, attempt 2.")
    assert str(refused.value) == f"{event} does not apply to {state}. Job 7, attempt 2."


def test_the_table_and_the_refusals_are_the_whole_product():
    assert len(ALLOWED) + len(REFUSED) == len(JobState) * len(EventKind)


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("event", list(EventKind))
def test_nothing_leaves_a_terminal_state(state, event):
    with pytest.raises(InvalidTransition):
        after(state, event)


def test_each_state_waits_is_active_or_is_terminal():
    assert TERMINAL | ACTIVE | {QUEUED} == set(JobState)
    assert not TERMINAL & ACTIVE


RUN, CANCEL = Wish.RUN, Wish.CANCEL

# what happened, what the user wished, attempts left -> event, code, sentence
SENTENCES = [
    ("exited 0", RUN, 0, "succeeded", "succeeded", "The command exited with 0."),
    ("exited 0", CANCEL, 0, "succeeded", "succeeded", "The command exited with 0."),
    ("exited 3", RUN, 2, "failed", "exit_code", "The command exited with 3."),
    ("exited 3", CANCEL, 2, "failed", "exit_code", "The command exited with 3."),
    ("signalled 9", RUN, 2, "failed", "signalled", "The command was ended by signal 9."),
    ("signalled 9", CANCEL, 2, "cancelled", "cancelled", "Cancelled on request."),
    ("time_limit", RUN, 2, "timed_out", "time_limit", "Stopped at its time limit of 60 s."),
    ("time_limit", CANCEL, 2, "cancelled", "cancelled", "Cancelled on request."),
    ("stopped", CANCEL, 0, "cancelled", "cancelled", "Cancelled on request."),
    ("stopped", RUN, 0, "requeued", "stopped", "The node stopped the command."),
    (
        "command_not_found",
        RUN,
        2,
        "failed",
        "command_not_found",
        "The command does not exist on the node.",
    ),
    ("command_not_found", CANCEL, 2, "cancelled", "cancelled", "Cancelled on request."),
    (
        "start_failed",
        RUN,
        2,
        "failed",
        "start_failed",
        "The node could not start the command.",
    ),
    ("node_stopped", RUN, 0, "requeued", "node_stopped", "The node's agent was stopped."),
    ("node_stopped", CANCEL, 0, "cancelled", "cancelled", "Cancelled on request."),
    ("node_lost", RUN, 0, "requeued", "node_lost", "The node was declared lost."),
    ("node_lost", CANCEL, 0, "cancelled", "cancelled", "Cancelled on request."),
    (
        "never_started",
        RUN,
        0,
        "requeued",
        "never_started",
        "The command was never started on the node.",
    ),
    ("never_started", CANCEL, 0, "cancelled", "cancelled", "Cancelled on request."),
    (
        "supervisor_lost",
        RUN,
        1,
        "requeued",
        "supervisor_lost",
        "The process that watched over the command was killed.",
    ),
    (
        "supervisor_lost",
        RUN,
        0,
        "failed",
        "supervisor_lost",
        "The process that watched over the command was killed.",
    ),
    ("supervisor_lost", CANCEL, 1, "cancelled", "cancelled", "Cancelled on request."),
    ("refused", RUN, 1, "requeued", "refused", "The node refused the lease."),
    ("refused", RUN, 0, "failed", "refused", "The node refused the lease."),
    ("refused", CANCEL, 1, "cancelled", "cancelled", "Cancelled on request."),
]
ENDS_IN_WORDS = {
    "exited 0": End(EndKind.EXITED, exit_code=0),
    "exited 3": End(EndKind.EXITED, exit_code=3),
    "signalled 9": End(EndKind.SIGNALLED, exit_signal=9),
    **{kind.value: End(kind) for kind in EndKind},
}


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: " ".join(sentence[:2]))
def test_an_end_is_judged(sentence):
    end, wish, attempts_left, event, code, reason = sentence
    judgement = judge_end(
        ENDS_IN_WORDS[end], wish=wish, attempts_left=attempts_left, time_limit_s=60
    )
    assert (judgement.event, judgement.code, judgement.reason) == (event, code, reason)


def test_what_the_node_says_of_an_end_is_passed_on():
    end = End(EndKind.REFUSED, detail="GPU 4 is out of service: XID 79")
    assert judge_end(end, wish=RUN, attempts_left=1).reason == "GPU 4 is out of service: XID 79"


def test_a_time_limit_that_is_not_known_is_not_made_up():
    judgement = judge_end(End(EndKind.TIME_LIMIT), wish=RUN, attempts_left=1)
    assert judgement.reason == "Stopped at its time limit."


@pytest.mark.parametrize("kind", list(EndKind))
@pytest.mark.parametrize("wish", list(Wish))
@pytest.mark.parametrize("attempts_left", [0, 1])
@pytest.mark.parametrize("state", sorted(ACTIVE))
def test_every_end_has_a_state_a_code_and_a_sentence(kind, wish, attempts_left, state):
    end = End(kind, exit_code=1, exit_signal=9)
    judgement = judge_end(end, wish=wish, attempts_left=attempts_left)
    assert after(state, judgement.event)
    assert judgement.code
    assert judgement.reason.endswith(".")


@pytest.mark.parametrize("kind", list(EndKind))
def test_a_cancelled_job_never_runs_again(kind):
    end = End(kind, exit_code=1, exit_signal=9)
    assert judge_end(end, wish=CANCEL, attempts_left=9).event is not EventKind.REQUEUED
