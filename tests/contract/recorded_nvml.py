"""NVML as an H200 under driver 580 answers it, without the card; may be told to fail or hang."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

MIB = 1024 * 1024


class NVMLError(Exception):
    pass


class RecordedNvml:
    """The calls of `pynvml` that the agent makes, with its names."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 0x02000028  # noqa: N815 - the library's name
    NVML_DEVICE_MIG_ENABLE = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *, count: int = 2, mig: frozenset[int] = frozenset()) -> None:
        self.count = count
        self.mig = mig
        self.failing: dict[int, str] = {}
        self.hanging: dict[int, threading.Event] = {}
        self.down = False

    def _touch(self, handle: int) -> None:
        if handle in self.hanging:
            self.hanging[handle].wait()
        if handle in self.failing:
            raise NVMLError(self.failing[handle])

    def nvmlInit(self) -> None:  # noqa: N802
        if self.count == 0:
            raise NVMLError("Driver Not Loaded")

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.down = True

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        self._touch(handle)
        return f"GPU-00000000-0000-0000-0000-00000000000{handle}"

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        self._touch(handle)
        return "NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> Any:  # noqa: N802
        self._touch(handle)
        used = 1024 * MIB
        return SimpleNamespace(total=143771 * MIB, reserved=616 * MIB, used=used, free=0)

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:  # noqa: N802
        self._touch(handle)
        mode = int(handle in self.mig)
        return mode, mode

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        self._touch(handle)
        if handle in self.mig:
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=37, memory=4)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        self._touch(handle)
        return 123456

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:  # noqa: N802
        self._touch(handle)
        return 41

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        self._touch(handle)
        return [
            SimpleNamespace(pid=4242, usedGpuMemory=526 * MIB),
            SimpleNamespace(pid=4243, usedGpuMemory=None),
        ]
