"""Measures GPUs and running leases again and again, beside everything else."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from agent import clock, log
from agent.gpu.base import GpuSource
from agent.inventory import GpuInventory
from agent.runtime import process_tree
from agent.store import Lease, Store
from agent.wire import GpuSample, LeaseSample, Observed, SampleList, SliceSpec

EVERY_S = 2.0


class Collector:
    """One thread; the newest values are kept, those of ended leases are dropped."""

    def __init__(self, source: GpuSource, inventory: GpuInventory, store: Store) -> None:
        self._source = source
        self._inventory = inventory
        self._store = store
        self._peaks: dict[str, int] = {}
        self._newest = SampleList(gpus=[], leases=[])
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def newest(self) -> SampleList:
        return self._newest

    def _run(self) -> None:
        while not self._stopped.wait(EVERY_S):
            try:
                self.collect()
            except Exception as error:  # noqa: BLE001 - measuring must go on
                log.error("collector.failed", error=repr(error))

    def collect(self) -> None:
        """Looks at health, then measures once."""
        self._inventory.refresh()
        leases = {
            lease.lease_id: lease
            for lease in self._store.active()
            if lease.observed is Observed.RUNNING and lease.slice is not None
        }
        running = {
            lease_id: SliceSpec.model_validate_json(lease.slice or "")
            for lease_id, lease in leases.items()
        }
        gpus = self._source.samples(running)
        self._newest = SampleList(gpus=gpus, leases=self._lease_samples(leases, gpus))

    def _lease_samples(
        self, leases: Mapping[str, Lease], gpus: list[GpuSample]
    ) -> list[LeaseSample]:
        at = clock.now()
        used = self._memory_by_lease(leases, gpus)
        self._peaks = {key: peak for key, peak in self._peaks.items() if key in leases}
        for lease_id, memory in used.items():
            self._peaks[lease_id] = max(memory, self._peaks.get(lease_id, 0))
        return [
            LeaseSample(
                lease_id=lease_id,
                at=at,
                memory_used_mib=used.get(lease_id),
                memory_peak_mib=self._peaks.get(lease_id),
            )
            for lease_id in leases
        ]

    def _memory_by_lease(
        self, leases: Mapping[str, Lease], gpus: list[GpuSample]
    ) -> dict[str, int]:
        """MiB of leases with processes on their GPU; the others are absent."""
        found: dict[str, int] = {}
        roots = process_tree.roots(
            {lease.pid: lease_id for lease_id, lease in leases.items() if lease.pid is not None}
        )
        for gpu in gpus:
            for pid, memory in self._source.memory_by_pid(gpu.uuid).items():
                owner = process_tree.owner(pid, roots)
                if owner is not None and leases[owner].gpu_uuid == gpu.uuid:
                    found[owner] = found.get(owner, 0) + memory
        return found
