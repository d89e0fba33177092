"""Measures GPUs and running leases again and again, beside everything else."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import psutil

from agent import clock, log
from agent.gpu.base import GpuSource, Use
from agent.inventory import GpuInventory
from agent.store import Lease, Store
from agent.wire import GpuSample, LeaseSample, Observed, SampleList, SliceSpec

EVERY_S = 2.0


class Collector:
    """One thread; the newest values are kept, those of ended leases are dropped."""

    def __init__(
        self, source: GpuSource, inventory: GpuInventory, store: Store
    ) -> None:
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
        running = {
            lease.lease_id: Use(
                SliceSpec.model_validate_json(lease.slice), _pids(lease)
            )
            for lease in self._store.active()
            if lease.observed is Observed.RUNNING and lease.slice is not None
        }
        gpus = self._source.samples(running)
        self._newest = SampleList(gpus=gpus, leases=self._lease_samples(running, gpus))

    def _lease_samples(
        self, running: Mapping[str, Use], gpus: list[GpuSample]
    ) -> list[LeaseSample]:
        at = clock.now()
        memory = {gpu.uuid: self._source.memory_by_pid(gpu.uuid) for gpu in gpus}
        self._peaks = {key: peak for key, peak in self._peaks.items() if key in running}
        samples = []
        for lease_id, use in running.items():
            by_pid = memory.get(use.slice.gpu_uuid, {})
            found = [by_pid[pid] for pid in use.pids if pid in by_pid]
            used = sum(found) if found else None
            if used is not None:
                self._peaks[lease_id] = max(used, self._peaks.get(lease_id, 0))
            samples.append(
                LeaseSample(
                    lease_id=lease_id,
                    at=at,
                    memory_used_mib=used,
                    memory_peak_mib=self._peaks.get(lease_id),
                )
            )
        return samples


def _pids(lease: Lease) -> frozenset[int]:
    """The job's first process and all that came from it."""
    if lease.pid is None:
        return frozenset()
    try:
        first = psutil.Process(lease.pid)
        return frozenset(
            {lease.pid, *(child.pid for child in first.children(recursive=True))}
        )
    except psutil.NoSuchProcess:
        return frozenset()
