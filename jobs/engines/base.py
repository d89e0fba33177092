"""What executes attempts. Engines do network calls and return facts; they know no policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from agent.wire import (
    EventBatch,
    Inventory,
    LeaseList,
    LeaseReport,
    LeaseSpec,
    SampleList,
)


class EngineError(Exception):
    """Base of what an engine may raise."""


class EngineTransient(EngineError):
    """Nothing is known of the effect: repeat the same call later."""


class EngineRejected(EngineError):
    """The node understood and refused. ``code`` is stable, ``detail`` a sentence."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class NodeTarget:
    """Where a node's agent is reached, and the name that its certificate must carry."""

    node_id: str
    address: str


@dataclass(frozen=True)
class LogChunk:
    """Bytes of a log from an offset. ``final``: no byte will follow ``next_offset``.

    ``size``: how long the log is now, where that is known.
    """

    data: bytes
    next_offset: int
    final: bool
    size: int | None = None


class Engine(ABC):
    """Every call may be repeated: each says what should be, none says "do once"."""

    @abstractmethod
    def inventory(self, node: NodeTarget) -> Inventory:
        """What the node has. Changes nothing."""

    @abstractmethod
    def apply(self, node: NodeTarget, spec: LeaseSpec) -> LeaseReport:
        """Tell the node what the lease should be.

        A generation told before gives the same report; a lower one raises `EngineRejected` and
        changes nothing. After it returns the node will reach the desired state by itself, also
        through restarts of its agent.
        """

    @abstractmethod
    def leases(self, node: NodeTarget) -> LeaseList:
        """Every lease that the node remembers, ended ones included."""

    @abstractmethod
    def events(self, node: NodeTarget, *, after: int, wait_ms: int) -> EventBatch:
        """Events after the cursor, in order; waits until there is one, at most ``wait_ms``."""

    @abstractmethod
    def samples(self, node: NodeTarget) -> SampleList:
        """The newest measurements. What cannot be measured is absent."""

    @abstractmethod
    def read_log(
        self, node: NodeTarget, lease_id: str, *, offset: int, limit: int, wait_ms: int
    ) -> LogChunk:
        """Combined output of the lease's process from ``offset`` on, at most ``limit`` bytes."""
