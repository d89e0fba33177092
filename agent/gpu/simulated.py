"""A stand-in for NVIDIA GPUs: everything but the silicon. Jobs on it are real processes.

The configuration is ``MODEL:MODE`` joined by commas, such as ``H200:share,H200:mig``. The same
seed gives the same UUIDs. A fault is injected by `fail` or, from outside the process, by a JSON
file ``{uuid: reason}``.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent import clock
from agent.gpu.base import GpuUnavailable
from agent.slices import mig_table
from agent.wire import GpuInfo, GpuSample, SharingMode, SliceSpec


@dataclass(frozen=True, slots=True)
class Model:
    """``name`` is the driver's name of the model."""

    name: str
    memory_mib: int


MODELS = {
    "H200": Model("NVIDIA H200", 143155),
    "A100-80": Model("NVIDIA A100-SXM4-80GB", 80384),
    "A30": Model("NVIDIA A30", 23344),
}


@dataclass(frozen=True, slots=True)
class _Gpu:
    uuid: str
    index: int
    model: Model
    mode: SharingMode


def parse(text: str) -> list[tuple[str, SharingMode]]:
    """Reads a configuration. Raises `GpuUnavailable` with what is wrong and what is known."""
    wanted = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        model, _, mode = part.partition(":")
        if model not in MODELS:
            raise GpuUnavailable(f"no simulated model {model!r}: {', '.join(MODELS)}")
        if (mode or "share") not in set(SharingMode):
            raise GpuUnavailable(f"no mode {mode!r}: {', '.join(SharingMode)}")
        wanted.append((model, SharingMode(mode or "share")))
    return wanted


class SimulatedGpus:
    """A `GpuSource` without a GPU."""

    def __init__(self, configuration: str, *, seed: str, faults: Path | None = None) -> None:
        namespace = uuid.uuid5(uuid.NAMESPACE_OID, seed)
        self._faults = faults
        self._failed: dict[str, str] = {}
        self._gpus = [
            _Gpu(f"GPU-{uuid.uuid5(namespace, str(index))}", index, MODELS[model], mode)
            for index, (model, mode) in enumerate(parse(configuration))
        ]

    def fail(self, gpu_uuid: str, reason: str) -> None:
        """Makes a GPU unhealthy until `repair`."""
        self._failed[gpu_uuid] = reason

    def repair(self, gpu_uuid: str) -> None:
        self._failed.pop(gpu_uuid, None)

    def _reasons(self) -> dict[str, str]:
        injected: dict[str, str] = {}
        if self._faults is not None and self._faults.exists():
            injected = json.loads(self._faults.read_text())
        return {**injected, **self._failed}

    def gpus(self) -> list[GpuInfo]:
        reasons = self._reasons()
        return [
            GpuInfo(
                uuid=gpu.uuid,
                index=gpu.index,
                model=gpu.model.name,
                memory_mib=gpu.model.memory_mib,
                mode=gpu.mode,
                simulated=True,
                healthy=gpu.uuid not in reasons,
                health_reason=reasons.get(gpu.uuid),
                mig=mig_table.told(gpu.model.name) if gpu.mode is SharingMode.MIG else None,
            )
            for gpu in self._gpus
        ]

    def samples(self, running: Mapping[str, SliceSpec]) -> list[GpuSample]:
        """Every lease uses its compute share in full; nothing else is made up."""
        at = clock.now()
        found = []
        for gpu in self.gpus():
            slices = [slice_ for slice_ in running.values() if slice_.gpu_uuid == gpu.uuid]
            load = sum(slice_.compute_milli for slice_ in slices)
            if gpu.healthy:
                found.append(
                    GpuSample(uuid=gpu.uuid, at=at, utilisation_percent=min(load, 1000) / 10)
                )
        return found

    def memory_by_pid(self, gpu_uuid: str) -> dict[int, int]:
        return {}

    def close(self) -> None:
        return None
