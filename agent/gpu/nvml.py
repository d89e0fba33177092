"""Real NVIDIA GPUs through NVML, which may hang: no caller ever waits longer than a deadline.

Each GPU has a worker thread of its own that makes all calls about it. While a call is stuck, that
GPU is unhealthy and calls about it fail at once; when the call comes back, the GPU is asked again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import pynvml

from agent import clock
from agent.gpu.base import GpuUnavailable
from agent.wire import GpuInfo, GpuSample, SharingMode, SliceSpec

DEADLINE_S = 5.0
_MIB = 1024 * 1024


class Stuck(Exception):
    """The driver does not answer."""


@dataclass(slots=True)
class _Call:
    function: Callable[[], Any]
    done: threading.Event
    value: Any = None
    error: BaseException | None = None


class Guarded:
    """Runs calls in one thread of its own, one at a time, each with a deadline."""

    def __init__(self, name: str, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._busy = threading.Lock()
        self._stuck: _Call | None = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call.value = call.function()
            except BaseException as error:  # noqa: BLE001 - handed to the caller
                call.error = error
            call.done.set()

    def call(self, function: Callable[[], Any]) -> Any:
        """The call's result or error. Raises `Stuck` at the deadline, or at once while stuck."""
        if not self._busy.acquire(timeout=self._deadline_s):
            raise Stuck("the driver does not answer")
        try:
            if self._stuck is not None and not self._stuck.done.is_set():
                raise Stuck("the driver does not answer")
            self._stuck = None
            call = _Call(function, threading.Event())
            self._calls.put(call)
            if not call.done.wait(self._deadline_s):
                self._stuck = call
                raise Stuck(f"the driver did not answer within {self._deadline_s:g} s")
        finally:
            self._busy.release()
        if call.error is not None:
            raise call.error
        return call.value

    def close(self) -> None:
        self._calls.put(None)


@dataclass(slots=True)
class _Device:
    handle: Any
    info: GpuInfo
    worker: Guarded


class NvmlGpus:
    """A `GpuSource` over NVML. ``library`` is the module `pynvml` or a recording of it."""

    def __init__(self, library: ModuleType | Any = pynvml, deadline_s: float = DEADLINE_S) -> None:
        self._nvml = library
        self._system = Guarded("nvml", deadline_s)
        try:
            handles = self._system.call(self._open)
        except (Stuck, library.NVMLError) as error:
            self._system.close()
            raise GpuUnavailable(f"NVML cannot be used: {error}") from error
        self._devices = [
            _Device(handle, info, Guarded(f"nvml-{info.index}", deadline_s))
            for handle, info in handles
        ]

    def _open(self) -> list[tuple[Any, GpuInfo]]:
        self._nvml.nvmlInit()
        found = []
        for index in range(self._nvml.nvmlDeviceGetCount()):
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            found.append((handle, self._read(handle, index)))
        return found

    def _read(self, handle: Any, index: int) -> GpuInfo:
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle, version=self._nvml.nvmlMemory_v2)
        return GpuInfo(
            uuid=_text(self._nvml.nvmlDeviceGetUUID(handle)),
            index=index,
            model=_text(self._nvml.nvmlDeviceGetName(handle)),
            memory_mib=(memory.total - memory.reserved) // _MIB,
            mode=self._mode(handle),
            simulated=False,
            healthy=True,
        )

    def _mode(self, handle: Any) -> SharingMode:
        try:
            current, _ = self._nvml.nvmlDeviceGetMigMode(handle)
        except self._nvml.NVMLError:
            return SharingMode.SHARE
        enabled = current == self._nvml.NVML_DEVICE_MIG_ENABLE
        return SharingMode.MIG if enabled else SharingMode.SHARE

    def gpus(self) -> list[GpuInfo]:
        return [self._refresh(device) for device in self._devices]

    def _refresh(self, device: _Device) -> GpuInfo:
        try:
            device.info = device.worker.call(lambda: self._read(device.handle, device.info.index))
        except (Stuck, self._nvml.NVMLError) as error:
            device.info = device.info.model_copy(
                update={"healthy": False, "health_reason": str(error)}
            )
        return device.info

    def samples(self, running: Mapping[str, SliceSpec]) -> list[GpuSample]:
        found = []
        for device in self._devices:
            if not device.info.healthy:
                continue
            try:
                found.append(device.worker.call(partial(self._sample, device)))
            except (Stuck, self._nvml.NVMLError):
                continue
        return found

    def _sample(self, device: _Device) -> GpuSample:
        handle, nvml = device.handle, self._nvml
        memory = self._known(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        load = self._known(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        power = self._known(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        heat = self._known(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        return GpuSample(
            uuid=device.info.uuid,
            at=clock.now(),
            utilisation_percent=None if load is None else float(load.gpu),
            memory_used_mib=None if memory is None else memory.used // _MIB,
            power_watts=None if power is None else power / 1000,
            temperature_celsius=None if heat is None else float(heat),
        )

    def _known(self, read: Callable[[], Any]) -> Any:
        """The value, or None where this card, driver or mode does not tell it."""
        try:
            return read()
        except self._nvml.NVMLError:
            return None

    def memory_by_pid(self, gpu_uuid: str) -> dict[int, int]:
        for device in self._devices:
            if device.info.uuid == gpu_uuid:
                try:
                    processes = device.worker.call(
                        partial(
                            self._nvml.nvmlDeviceGetComputeRunningProcesses,
                            device.handle,
                        )
                    )
                except (Stuck, self._nvml.NVMLError):
                    return {}
                return {
                    process.pid: process.usedGpuMemory // _MIB
                    for process in processes
                    if process.usedGpuMemory is not None
                }
        return {}

    def close(self) -> None:
        for device in self._devices:
            device.worker.close()
        try:
            self._system.call(self._nvml.nvmlShutdown)
        except (Stuck, self._nvml.NVMLError):
            return
        finally:
            self._system.close()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
