from __future__ import annotations

import pytest

from agent import rules
from agent.errors import Refused
from agent.rules import Action
from agent.store import Lease
from agent.wire import Desired, LeaseSpec, Observed
from tests.agent.support import absent, running

GPU = "GPU-1"


def known(spec: LeaseSpec, observed: Observed) -> Lease:
    slice_text, process_text = rules.start_texts(spec)
    return Lease(
        spec.lease_id,
        spec.generation,
        spec.desired,
        observed,
        rules.canonical(spec),
        slice=slice_text,
        process=process_text,
    )


RUN1 = running("L", GPU, "true")
RUN2 = running("L", GPU, "true", generation=2)
OTHER2 = running("L", GPU, "false", generation=2)
ABSENT1, ABSENT2 = absent("L", 1), absent("L", 2)


@pytest.mark.parametrize(
    ("before", "order", "action"),
    [
        pytest.param(None, RUN1, Action.BEGIN, id="a new lease begins"),
        pytest.param(None, ABSENT1, Action.NOTE, id="absent of an unknown lease is noted"),
        pytest.param(known(RUN1, Observed.RUNNING), RUN1, Action.REPEAT, id="a repeated order"),
        pytest.param(known(RUN1, Observed.RUNNING), ABSENT2, Action.STOP, id="absent stops"),
        pytest.param(known(RUN1, Observed.ACCEPTED), ABSENT2, Action.STOP, id="before it began"),
        pytest.param(known(RUN1, Observed.RUNNING), RUN2, Action.NOTE, id="the same again"),
        pytest.param(known(RUN1, Observed.ENDED), RUN2, Action.NOTE, id="ended is final"),
        pytest.param(known(RUN1, Observed.REFUSED), OTHER2, Action.NOTE, id="refused is final"),
        pytest.param(known(ABSENT1, Observed.ABSENT), RUN2, Action.BEGIN, id="after absent"),
    ],
)
def test_an_order_means(before: Lease | None, order: LeaseSpec, action: Action) -> None:
    assert rules.decide(before, order, rules.canonical(order)) is action


@pytest.mark.parametrize(
    ("before", "order", "code"),
    [
        pytest.param(known(RUN2, Observed.RUNNING), RUN1, "agent.stale_generation", id="lower"),
        pytest.param(known(ABSENT2, Observed.ABSENT), RUN1, "agent.stale_generation", id="late"),
        pytest.param(
            known(RUN2, Observed.RUNNING), OTHER2, "agent.generation_reused", id="another body"
        ),
        pytest.param(
            known(RUN1, Observed.RUNNING), OTHER2, "agent.lease_started", id="another process"
        ),
    ],
)
def test_an_order_is_refused(before: Lease, order: LeaseSpec, code: str) -> None:
    with pytest.raises(Refused) as refused:
        rules.decide(before, order, rules.canonical(order))
    assert refused.value.problem.code == code
    assert refused.value.problem.hint


@pytest.mark.parametrize(
    ("order", "field"),
    [
        (RUN1.model_copy(update={"lease_id": "../x"}), "lease_id"),
        (RUN1.model_copy(update={"slice": None}), "slice"),
        (RUN1.model_copy(update={"process": None}), "process"),
        (running("L", GPU, "a\0b"), "process.argv"),
        (running("L", GPU, ""), "process.argv"),
        (running("L", GPU, "true", env={"A=B": "x"}), "process.env"),
        (running("L", GPU, "true", env={"A": "x\0"}), "process.env"),
    ],
)
def test_an_order_that_no_agent_can_carry_out_names_its_field(order: LeaseSpec, field: str) -> None:
    with pytest.raises(Refused) as refused:
        rules.check(order)
    assert (refused.value.problem.status, refused.value.problem.field) == (422, field)


def test_the_order_of_keys_does_not_matter() -> None:
    a = running("L", GPU, "true", env={"A": "1", "B": "2"})
    b = running("L", GPU, "true", env={"B": "2", "A": "1"})
    assert rules.canonical(a) == rules.canonical(b)
    assert a.desired is Desired.RUNNING
