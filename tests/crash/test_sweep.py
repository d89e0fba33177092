"""Killed at every point of portal and agent, nothing that always holds is broken."""

import pytest

from tests.crash import scenarios
from tests.crash.kill import kill_at, kill_first_start
from tests.crash.points import CASES, Case
from tests.e2e.system import Makes, Stand

QUICK = [case for case in CASES if case.quick]
OTHERS = [case for case in CASES if not case.quick]


def violations(case: Case, stand: Stand, make_system: Makes) -> list[str]:
    if case.scenario is scenarios.first_start:
        return kill_first_start(make_system(), case.point, scenarios.submit_several)
    return kill_at(
        stand.sound(),
        case.point,
        case.scenario,
        passing=case.passing,
        in_agent=case.in_agent,
    )


@pytest.mark.timeout(400)
@pytest.mark.parametrize("case", QUICK, ids=str)
def test_a_crash_breaks_nothing(case: Case, stand: Stand, make_system: Makes) -> None:
    assert violations(case, stand, make_system) == []


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_a_crash_at_any_other_point_breaks_nothing(
    case: Case, stand: Stand, make_system: Makes
) -> None:
    assert violations(case, stand, make_system) == []
