"""Every crash point of the source, and the scenario that brings a process there.

A point without a case fails `test_catalogue.py`, and so does a case without a point.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.crash import scenarios as s
from tests.crash.scenarios import Scenario

ROOT = Path(__file__).parents[2]
PORTAL_PACKAGES = ("portal", "quotas", "billing", "jobs")


@dataclass(frozen=True)
class Case:
    """Kill at the point's `passing`th passing while the scenario runs."""

    point: str
    scenario: Scenario
    passing: int = 1
    quick: bool = False

    @property
    def in_agent(self) -> bool:
        return self.point.startswith("agent.")

    def __str__(self) -> str:
        passing = f":{self.passing}" if self.passing > 1 else ""
        return f"{self.point}{passing}-{self.scenario.__name__}"


CASES = (
    # A request and its answer.
    Case("submit.written", s.submit_several),
    Case("submit.committed", s.submit_several, passing=3),
    Case("idempotency.kept", s.submit_several),
    Case("idempotency.committed", s.submit_several, quick=True),
    Case("idempotency.committed", s.cancel_running, passing=2),
    # A cycle of the scheduler.
    Case("cycle.planned", s.submit_several),
    Case("admit.held", s.submit_several),
    Case("admit.leased", s.submit_several),
    Case("admit.written", s.submit_several),
    Case("admit.committed", s.submit_several, quick=True),
    Case("cycle.explained", s.crowd),
    # Any transaction, named or not, by its number.
    *(Case("commit.before", s.everything, passing=number) for number in (1, 2, 5, 11, 23)),
    *(Case("commit.after", s.everything, passing=number) for number in (1, 3, 7, 15, 31)),
    # Telling the node.
    Case("outbox.send.lease", s.submit_several),
    Case("outbox.due_claimed", s.lose_messages),
    Case("tell.before", s.submit_several),
    Case("tell.answered", s.submit_several),
    Case("tell.answered", s.submit_several, passing=4),
    Case("outbox.done", s.submit_several),
    Case("tell.refused", s.refused),
    Case("tell.absent_told", s.refused),
    # What the node says.
    Case("watch.events_read", s.submit_several),
    Case("ingest.written", s.submit_several, passing=2),
    Case("ingest.committed", s.submit_several, quick=True),
    Case("ingest.committed", s.submit_several, passing=6),
    Case("settle.written", s.refused),
    Case("settle.committed", s.refused),
    Case("reconcile.read", s.submit_several),
    Case("reconcile.read", s.restart_the_node),
    Case("inventory.recorded", s.restart_the_node),
    # Cancelling.
    Case("cancel.written", s.cancel_running),
    Case("cancel.committed", s.cancel_queued),
    Case("cancel.committed", s.cancel_running),
    Case("cancel.committed", s.cancel_not_begun),
    # A node is taken in.
    Case("enrol.written", s.first_start),
    Case("enrol.committed", s.first_start, quick=True),
    Case("local_agent.code_issued", s.first_start),
    Case("local_agent.enrolled", s.first_start),
    Case("local_agent.started", s.first_start),
    # The agent: an order and its process.
    Case("agent.lease.before_store", s.submit_several),
    Case("agent.lease.stored", s.submit_several, passing=2),
    Case("agent.folder.prepared", s.submit_several),
    Case("agent.spawn.done", s.submit_several, quick=True),
    Case("agent.answer.ready", s.submit_several),
    Case("agent.refused.stored", s.refused),
    # The agent: what becomes of it.
    Case("agent.started.before_store", s.submit_several),
    Case("agent.started.stored", s.submit_several),
    Case("agent.ended.before_store", s.submit_several, passing=2),
    Case("agent.ended.stored", s.submit_several, quick=True),
    Case("agent.event.read", s.submit_several),
    Case("agent.cleanup.done", s.submit_several),
    Case("agent.stop.marked", s.cancel_running),
    Case("agent.stop.marked", s.restart_the_node),
    Case("agent.stop.signalled", s.cancel_running),
    Case("agent.claim.taken", s.cancel_not_begun),
    Case("agent.leftovers.killed", s.lose_supervisor),
)


def points_in(source: str) -> Iterator[str]:
    """Names given to `crash.point`; parts of a name that are computed stay in braces."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "point"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "crash"
        ):
            yield _name(node.args[0])


def _name(argument: ast.expr) -> str:
    if isinstance(argument, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in argument.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    assert isinstance(argument, ast.Constant), ast.unparse(argument)
    return str(argument.value)


def _topics(sources: list[str]) -> set[str]:
    """Names of every `Topic(...)` of the outbox."""
    return {
        str(node.args[0].value)
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] == "Topic"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


_COMPUTED: dict[str, Callable[[list[str]], set[str]]] = {
    "outbox.send.{topic.name}": lambda sources: {
        f"outbox.send.{topic}" for topic in _topics(sources)
    },
}


def portal_points() -> set[str]:
    sources = [
        path.read_text()
        for package in PORTAL_PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    ]
    found = {name for source in sources for name in points_in(source)}
    computed = {name for name in found if "{" in name}
    return (found - computed).union(*(_COMPUTED[name](sources) for name in computed))


def agent_points_in_source() -> set[str]:
    return {name for path in (ROOT / "agent").rglob("*.py") for name in points_in(path.read_text())}
