"""What the agent needs to know of a node's GPUs, whoever tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from agent.wire import GpuInfo, GpuSample, SliceSpec


class GpuUnavailable(Exception):
    """The source cannot be used on this machine; the text says why."""


class GpuSource(Protocol):
    """Answers within seconds whatever the driver does; never raises for a sick GPU.

    A GPU that stops answering is listed as unhealthy with a reason, under the values last known.
    """

    def gpus(self) -> list[GpuInfo]:
        """Every GPU in the order of its index, with its present mode and health."""

    def samples(self, running: Mapping[str, SliceSpec]) -> list[GpuSample]:
        """One measurement per healthy GPU; ``running`` are the leases' slices by id."""

    def memory_by_pid(self, gpu_uuid: str) -> dict[int, int]:
        """MiB of GPU memory by process id; empty where it cannot be told."""

    def close(self) -> None:
        """Gives the driver back. Nothing else may be called afterwards."""
