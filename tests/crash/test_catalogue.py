"""The sweep leaves no point of the source out."""

from agent.crash import POINTS
from tests.crash.points import CASES, agent_points_in_source, portal_points


def test_every_point_of_the_portal_has_a_case_and_every_case_a_point() -> None:
    covered = {case.point for case in CASES if not case.in_agent}

    assert covered == portal_points()


def test_every_point_of_the_agent_has_a_case_and_every_case_a_point() -> None:
    covered = {case.point for case in CASES if case.in_agent}

    assert covered == POINTS == agent_points_in_source()
