"""The harness finds planted faults: the same laws that hold above are broken here."""

import pytest

from tests.crash import scenarios
from tests.crash.kill import kill_at
from tests.e2e.system import Makes

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]


@pytest.mark.parametrize(
    ("fault", "point", "told"),
    [
        ("holds_apart", "fault.apart", "still holds quota"),
        ("metering_apart", "fault.apart", "is metered 0 ms"),
        ("forgetful_key", "fault.forgot", "belongs to 0 keys"),
        ("blind_agent", "agent.started.stored", "2 starts in 1 attempts"),
    ],
)
def test_a_planted_fault_is_found(fault: str, point: str, told: str, make_system: Makes) -> None:
    system = make_system(launcher=("-m", f"tests.crash.faults.{fault}")).start()

    found = kill_at(
        system,
        point,
        scenarios.submit_several,
        in_agent=point.startswith("agent."),
        rested_s=15,
    )

    assert any(told in sentence for sentence in found), found
