"""One case: kill a process at a point, let it start again, and check what always holds."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.crash.scenarios import Scenario, Stage
from tests.e2e import laws
from tests.e2e.system import System, eventually

REACHED_S = 90
RESTED_S = 60
#: How long a point may still be reached after the scenario is over: by tidying up, for instance.
AFTER_S = 20


def kill_at(
    system: System,
    point: str,
    scenario: Scenario,
    *,
    passing: int = 1,
    in_agent: bool,
    rested_s: float = RESTED_S,
) -> list[str]:
    """The violations that are left after the crash. Fails when the point is not reached."""
    stage = Stage(system)
    agent = system.wait_agent()
    order = (system.data / "agent" if in_agent else system.data) / "crash_at"
    order.write_text(f"{point}:{passing}")
    acting = _Acting(lambda: scenario(stage))
    acting.start()
    try:
        _wait_reached(order, acting)
        if in_agent:
            stage.died.set()
            system.wait_agent(other_than=agent)
        else:
            assert system.wait_portal_dead() == -signal.SIGKILL
            stage.died.set()
            system.start()
    finally:
        stage.died.set()
        acting.join(REACHED_S)
    acting.check()
    return rest_and_check(system, stage, rested_s)


def kill_first_start(system: System, point: str, scenario: Scenario) -> list[str]:
    """Kill a portal on an empty folder; the next one must serve, and run jobs."""
    system.data.mkdir(mode=0o700)
    (system.data / "crash_at").write_text(point)
    system.launch()
    assert system.wait_portal_dead() == -signal.SIGKILL
    assert not (system.data / "crash_at").exists(), "it died elsewhere"
    system.start()
    stage = Stage(system)
    scenario(stage)
    return rest_and_check(system, stage, RESTED_S)


def rest_and_check(system: System, stage: Stage, rested_s: float) -> list[str]:
    try:
        system.wait_at_rest(rested_s)
    except AssertionError as error:
        unrest = [str(error)]
    else:
        unrest = []
    return unrest + laws.violations(laws.read_records(system), stage.expected)


def _wait_reached(order: Path, acting: _Acting) -> None:
    deadline = time.monotonic() + REACHED_S

    def reached() -> bool:
        nonlocal deadline
        if not order.exists():
            return True
        if not acting.is_alive():
            deadline = min(deadline, time.monotonic() + AFTER_S)
            acting.check()
        assert time.monotonic() < deadline, f"{order.read_text()} was not reached"
        return False

    eventually(reached, "the point is reached", 2 * REACHED_S)


class _Acting(threading.Thread):
    """Runs a scenario and keeps what went wrong."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__(name="scenario", daemon=True)
        self._act = act
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._act()
        except BaseException as error:  # noqa: BLE001 - raised again by check()
            self._error = error

    def check(self) -> None:
        if self._error is not None:
            raise self._error
