"""The node's GPUs as last seen, so that no order waits for a driver."""

from __future__ import annotations

import threading

from agent import clock
from agent.gpu.base import GpuSource
from agent.store import Store
from agent.wire import Event, EventKind, GpuInfo


class GpuInventory:
    """A copy of what the source says; a change of health is told as an event."""

    def __init__(self, source: GpuSource, store: Store) -> None:
        self._source = source
        self._store = store
        self._lock = threading.Lock()
        self._gpus = {gpu.uuid: gpu for gpu in source.gpus()}

    def all(self) -> list[GpuInfo]:
        with self._lock:
            return sorted(self._gpus.values(), key=lambda gpu: gpu.index)

    def get(self, gpu_uuid: str) -> GpuInfo | None:
        with self._lock:
            return self._gpus.get(gpu_uuid)

    def refresh(self) -> None:
        """Asks the source again; may take as long as the source's deadline."""
        found = {gpu.uuid: gpu for gpu in self._source.gpus()}
        with self._lock:
            before, self._gpus = self._gpus, found
        for gpu in found.values():
            known = before.get(gpu.uuid)
            if known is not None and known.healthy != gpu.healthy:
                self._store.tell(
                    Event(
                        seq=0,
                        kind=EventKind.GPU_HEALTH,
                        at=clock.now(),
                        boot_id=clock.boot_id(),
                        monotonic_ns=clock.monotonic_ns(),
                        gpu=gpu,
                    )
                )
