"""What keeps a job from being placed besides room, and when it is tried again."""

from datetime import timedelta

import pytest

from jobs.domain import retries
from jobs.domain.readiness import Conditions, Dependency, Need, Never, beyond_room, judge
from jobs.domain.states import TERMINAL, JobState, Wish
from jobs.domain.transitions import End, EndKind, EventKind, judge_end
from tests.builders import NOW

LATER = NOW + timedelta(hours=1)


def after(state, need=Need.OK, name="vision/3"):
    return Dependency(name, need, JobState(state))


@pytest.mark.parametrize(
    ("conditions", "code", "text"),
    [
        (Conditions(), None, ""),
        (Conditions(dependencies=(after("SUCCEEDED"),)), None, ""),
        (Conditions(dependencies=(after("FAILED", Need.ANY),)), None, ""),
        (Conditions(not_before=NOW), None, ""),
        (Conditions(not_before=LATER), "jobs.not_before", "not before 20"),
        (Conditions(held=True, not_before=LATER), "jobs.held", "released"),
        (Conditions(dependencies=(after("RUNNING"),)), "jobs.waits_for_jobs", "to succeed."),
        (Conditions(dependencies=(after("QUEUED", Need.ANY),)), "jobs.waits_for_jobs", "to end."),
        (
            Conditions(dependencies=(after("SUCCEEDED"), after("QUEUED"), after("RUNNING"))),
            "jobs.waits_for_jobs",
            "Waits for vision/3 to succeed and for 1 more.",
        ),
        (Conditions(held=True, dependencies=(after("FAILED"),)), "dependency_failed", "FAILED."),
    ],
)
def test_the_weightiest_condition_is_told(conditions, code, text):
    verdict = judge(conditions, NOW)
    assert (verdict.code if verdict else None) == code
    assert verdict is None or text in verdict.reason


@pytest.mark.parametrize("state", sorted(TERMINAL - {JobState.SUCCEEDED}))
def test_who_waits_for_success_waits_in_vain_after_any_other_end(state):
    assert isinstance(judge(Conditions(dependencies=(after(state),)), NOW), Never)
    assert judge(Conditions(dependencies=(after(state, Need.ANY),)), NOW) is None


def test_an_array_gets_as_many_as_it_has_room_for_in_the_order_of_the_queue():
    queue = [("a", "x"), ("b", None), ("c", "x"), ("d", "y"), ("e", "x"), ("f", "z")]
    assert beyond_room(queue, {"x": 2, "y": 0, "z": -1}) == {"d", "e", "f"}
    assert beyond_room(queue, {}) == set()


def test_exit_codes_are_read_as_single_ones_and_ranges():
    ranges = retries.read_ranges(["75", " 100 - 110 "])
    assert ranges == ((75, 75), (100, 110))
    assert retries.write_ranges(ranges) == ("75", "100-110")
    assert [code for code in range(256) if retries.is_retried(code, ranges)] == [
        75,
        *range(100, 111),
    ]


@pytest.mark.parametrize("text", ["", "0", "256", "5-3", "-1", "x", "1-2-3", "1" * 50, "٣"])
def test_what_is_no_exit_code_is_refused(text):
    with pytest.raises(ValueError, match="no exit code"):
        retries.read_ranges([text])


def test_there_may_be_64_ranges():
    with pytest.raises(ValueError, match="65 ranges"):
        retries.read_ranges(["1"] * 65)


def test_the_pause_doubles_up_to_ten_minutes():
    pauses = [retries.pause_s(used) for used in range(9)]
    assert pauses == [10, 10, 20, 40, 80, 160, 320, 600, 600]


@pytest.mark.parametrize(
    ("code", "wish", "left", "judgement"),
    [
        (75, Wish.RUN, 1, ("requeued", 20, "exited with 75; tried again after 20 s.")),
        (75, Wish.RUN, 0, ("failed", 0, "exited with 75, and no attempt is left.")),
        (75, Wish.CANCEL, 1, ("failed", 0, "exited with 75.")),
        (76, Wish.RUN, 1, ("failed", 0, "exited with 76.")),
        (0, Wish.RUN, 1, ("succeeded", 0, "exited with 0.")),
    ],
)
def test_an_exit_code_is_tried_again_if_asked_for(code, wish, left, judgement):
    event, pause_s, text = judgement
    judged = judge_end(
        End(EndKind.EXITED, exit_code=code),
        wish=wish,
        attempts_left=left,
        attempts_used=2,
        retry_exit_codes=((75, 75),),
    )
    assert (judged.event, judged.pause_s) == (EventKind(event), pause_s)
    assert judged.reason.endswith(text)
