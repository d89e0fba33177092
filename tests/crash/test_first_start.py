"""A first start that is killed again and again still becomes a sound portal."""

from __future__ import annotations

import random
import subprocess
from contextlib import suppress

import pytest

from tests.crash.kill import RESTED_S, rest_and_check
from tests.crash.scenarios import Stage, submit_several
from tests.e2e.system import Makes

SEED = 20
KILLS = 8
LONGEST_S = 8.0


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_killed_at_any_moment_of_its_first_start_a_portal_begins_again(make_system: Makes) -> None:
    chance = random.Random(SEED)  # noqa: S311 - chance, no secret
    system = make_system()
    for _ in range(KILLS):
        system.launch()
        with suppress(subprocess.TimeoutExpired):
            system.running_portal().wait(chance.uniform(0.5, LONGEST_S))
        system.kill_portal()

    system.start()

    stage = Stage(system)
    submit_several(stage)
    assert rest_and_check(system, stage, RESTED_S) == []
    assert len({user["name"] for user in system.demo()["users"]}) == len(system.demo()["users"])
