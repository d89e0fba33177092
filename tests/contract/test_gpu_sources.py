"""One contract for every source of GPUs, and what only a driver can do to us."""

from __future__ import annotations

import ast
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pynvml
import pytest

from agent.gpu import nvml
from agent.gpu.base import GpuSource, GpuUnavailable
from agent.gpu.nvml import NvmlGpus
from agent.gpu.simulated import SimulatedGpus, parse
from agent.wire import SharingMode, SliceKind, SliceSpec
from tests.agent.support import eventually
from tests.contract.recorded_nvml import RecordedNvml

DEADLINE_S = 0.2


@dataclass
class Subject:
    """A source with two GPUs, the second in MIG mode, and a way to make the first one sick."""

    source: GpuSource
    fail: Callable[[str], None]
    repair: Callable[[], None]


def simulated() -> Subject:
    source = SimulatedGpus("H200:share,H200:mig", seed="seed")
    first = source.gpus()[0].uuid
    return Subject(source, lambda reason: source.fail(first, reason), lambda: source.repair(first))


def recorded() -> Subject:
    library = RecordedNvml(mig=frozenset({1}))
    return Subject(
        NvmlGpus(library, DEADLINE_S),
        lambda reason: library.failing.update({0: reason}),
        library.failing.clear,
    )


@pytest.fixture(params=[simulated, recorded], ids=["simulated", "nvml"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    made: Subject = request.param()
    yield made
    made.source.close()


def test_gpus_are_listed_in_order_with_their_mode(subject: Subject) -> None:
    found = subject.source.gpus()
    assert [gpu.index for gpu in found] == [0, 1]
    assert [gpu.mode for gpu in found] == [SharingMode.SHARE, SharingMode.MIG]
    assert {gpu.model for gpu in found} == {"NVIDIA H200"}
    assert {gpu.memory_mib for gpu in found} == {143155}
    assert all(gpu.healthy and gpu.health_reason is None for gpu in found)
    assert len({gpu.uuid for gpu in found}) == 2


def test_the_same_gpus_are_listed_again(subject: Subject) -> None:
    assert subject.source.gpus() == subject.source.gpus()


def test_a_sick_gpu_is_listed_as_such_and_recovers(subject: Subject) -> None:
    before = subject.source.gpus()
    subject.fail("fallen off the bus")
    sick = subject.source.gpus()
    assert [gpu.healthy for gpu in sick] == [False, True]
    assert sick[0].health_reason == "fallen off the bus"
    assert sick[0].uuid == before[0].uuid
    assert [sample.uuid for sample in subject.source.samples({})] == [before[1].uuid]
    subject.repair()
    assert subject.source.gpus() == before


def test_samples_name_only_known_gpus_and_hold_no_invented_zero(subject: Subject) -> None:
    known = {gpu.uuid for gpu in subject.source.gpus()}
    for sample in subject.source.samples({}):
        assert sample.uuid in known
        assert sample.memory_used_mib is None or sample.memory_used_mib > 0


def test_memory_of_an_unknown_gpu_is_empty(subject: Subject) -> None:
    assert subject.source.memory_by_pid("GPU-nowhere") == {}


def test_simulated_uuids_follow_the_seed() -> None:
    first, second = SimulatedGpus("H200,A30", seed="a"), SimulatedGpus("H200,A30", seed="a")
    assert first.gpus() == second.gpus()
    assert first.gpus() != SimulatedGpus("H200,A30", seed="b").gpus()


def test_simulated_load_is_that_of_the_running_leases() -> None:
    source = SimulatedGpus("H200", seed="a")
    slice_ = SliceSpec(
        gpu_uuid=source.gpus()[0].uuid, kind=SliceKind.SHARE, memory_mib=1, compute_milli=250
    )
    samples = source.samples({"A": slice_, "B": slice_})
    assert samples[0].utilisation_percent == 50


@pytest.mark.parametrize("text", ["H100000:share", "H200:half"])
def test_a_wrong_configuration_is_refused(text: str) -> None:
    with pytest.raises(GpuUnavailable):
        parse(text)


def test_nvml_tells_what_it_measures_and_nothing_else() -> None:
    source = NvmlGpus(RecordedNvml(mig=frozenset({1})), DEADLINE_S)
    whole, mig = source.samples({})
    assert (whole.utilisation_percent, mig.utilisation_percent) == (37, None)
    assert (whole.memory_used_mib, whole.power_watts, whole.temperature_celsius) == (
        1024,
        123.456,
        41,
    )
    assert source.memory_by_pid(whole.uuid) == {4242: 526}
    source.close()


def test_without_a_driver_there_is_no_nvml() -> None:
    with pytest.raises(GpuUnavailable, match="Driver Not Loaded"):
        NvmlGpus(RecordedNvml(count=0), DEADLINE_S)


def test_a_hung_driver_hangs_nobody_and_one_gpu_only() -> None:
    library = RecordedNvml()
    source = NvmlGpus(library, DEADLINE_S)
    released = library.hanging[0] = threading.Event()
    begun = time.monotonic()
    assert [gpu.healthy for gpu in source.gpus()] == [False, True]
    for _ in range(20):
        assert [gpu.healthy for gpu in source.gpus()] == [False, True]
        assert len(source.samples({})) == 1
    assert time.monotonic() - begun < 20
    del library.hanging[0]
    released.set()
    eventually(lambda: all(gpu.healthy for gpu in source.gpus()))
    source.close()
    assert library.down


def test_the_library_has_every_name_that_is_used() -> None:
    tree = ast.parse(inspect.getsource(nvml))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.lower().startswith("nvml")
    }
    assert {"nvmlInit", "nvmlMemory_v2", "NVMLError"} <= used
    assert [name for name in sorted(used) if not hasattr(pynvml, name)] == []
    assert [name for name in sorted(used) if not hasattr(RecordedNvml, name)] == []
