from __future__ import annotations

import pytest

from agent.errors import Refused
from agent.slices import guard, mig_table
from agent.slices.mig_table import GEOMETRIES, Placement
from agent.wire import Enforcement, GpuInfo, SharingMode, SliceKind, SliceSpec


def gpu(mode: SharingMode = SharingMode.SHARE, **changes: object) -> GpuInfo:
    return GpuInfo(
        uuid="GPU-1",
        index=0,
        model="NVIDIA H200",
        memory_mib=143155,
        mode=mode,
        simulated=True,
        healthy=True,
    ).model_copy(update=changes)


def slice_(kind: SliceKind, memory_mib: int, compute_milli: int) -> SliceSpec:
    return SliceSpec(
        gpu_uuid="GPU-1", kind=kind, memory_mib=memory_mib, compute_milli=compute_milli
    )


def share(memory_mib: int = 1000, compute_milli: int = 250) -> SliceSpec:
    return slice_(SliceKind.SHARE, memory_mib, compute_milli)


WHOLE = slice_(SliceKind.WHOLE, 143155, 1000)


def mig(profile: str | None, start: int | None, memory_mib: int = 1000) -> SliceSpec:
    return SliceSpec(
        gpu_uuid="GPU-1",
        kind=SliceKind.MIG,
        memory_mib=memory_mib,
        compute_milli=100,
        mig_profile=profile,
        mig_start=start,
    )


MIG = gpu(SharingMode.MIG)


@pytest.mark.parametrize(
    ("device", "wish", "active"),
    [
        pytest.param(gpu(), share(), [], id="a share of an empty GPU"),
        pytest.param(gpu(), share(), [share()] * 3, id="the fourth quarter"),
        pytest.param(gpu(), share(143155, 1000), [], id="a share as large as the GPU"),
        pytest.param(gpu(), WHOLE, [], id="a whole GPU in share mode"),
        pytest.param(gpu(SharingMode.WHOLE), WHOLE, [], id="a whole GPU"),
        pytest.param(MIG, mig("3g.71gb", 4), [mig("4g.71gb", 0)], id="4g and 3g"),
        pytest.param(MIG, mig("1g.18gb", 6), [mig("3g.71gb", 0), mig("2g.35gb", 4)], id="mixed"),
    ],
)
def test_it_fits(device: GpuInfo, wish: SliceSpec, active: list[SliceSpec]) -> None:
    guard.check(device, wish, active)


@pytest.mark.parametrize(
    ("device", "wish", "active", "status", "code"),
    [
        pytest.param(None, share(), [], 422, "agent.gpu_unknown", id="unknown GPU"),
        pytest.param(gpu(healthy=False), share(), [], 409, "agent.gpu_unhealthy", id="sick GPU"),
        pytest.param(gpu(), share(143156), [], 422, "agent.slice_too_large", id="too large"),
        pytest.param(
            gpu(), share(143155), [share()], 409, "agent.slice_taken", id="memory is taken"
        ),
        pytest.param(
            gpu(), share(), [share(1, 751)], 409, "agent.slice_taken", id="compute is taken"
        ),
        pytest.param(gpu(), WHOLE, [share()], 409, "agent.slice_taken", id="whole beside share"),
        pytest.param(gpu(), share(), [WHOLE], 409, "agent.slice_taken", id="share beside whole"),
        pytest.param(
            gpu(SharingMode.WHOLE), share(), [], 422, "agent.mode_mismatch", id="no share"
        ),
        pytest.param(MIG, share(), [], 422, "agent.mode_mismatch", id="share on MIG"),
        pytest.param(gpu(), mig("1g.18gb", 0), [], 422, "agent.mode_mismatch", id="no MIG"),
        pytest.param(
            gpu(SharingMode.MIG, simulated=False),
            mig("1g.18gb", 0),
            [],
            422,
            "agent.mig_unsupported",
            id="a real card",
        ),
        pytest.param(MIG, mig(None, 0), [], 422, "agent.invalid", id="no profile"),
        pytest.param(MIG, mig("1g.18gb", None), [], 422, "agent.invalid", id="no start"),
        pytest.param(MIG, mig("9g", 0), [], 422, "agent.mig_placement", id="unknown profile"),
        pytest.param(MIG, mig("2g.35gb", 6), [], 422, "agent.mig_placement", id="illegal start"),
        pytest.param(
            MIG, mig("1g.18gb", 0, 16385), [], 422, "agent.slice_too_large", id="MIG memory"
        ),
        pytest.param(
            MIG, mig("1g.18gb", 5), [mig("3g.71gb", 4)], 409, "agent.slice_taken", id="overlap"
        ),
    ],
)
def test_it_does_not_fit(
    device: GpuInfo | None, wish: SliceSpec, active: list[SliceSpec], status: int, code: str
) -> None:
    with pytest.raises(Refused) as refused:
        guard.check(device, wish, active)
    assert (refused.value.problem.status, refused.value.problem.code) == (status, code)
    assert refused.value.problem.field


def test_enforcement_is_said_plainly() -> None:
    assert guard.enforcement(SliceKind.SHARE).memory is Enforcement.NONE
    assert guard.enforcement(SliceKind.SHARE).compute is Enforcement.NONE
    assert guard.enforcement(SliceKind.WHOLE).compute is Enforcement.HARDWARE
    assert guard.enforcement(SliceKind.MIG).memory is Enforcement.HARDWARE


def states(model: str) -> set[frozenset[Placement]]:
    """Every set of instances that the table lets stand together."""
    geometry = GEOMETRIES[model]
    places = [
        Placement(profile.name, start)
        for profile in geometry.profiles.values()
        for start in profile.starts
    ]
    found: set[frozenset[Placement]] = {frozenset()}
    edge = found
    while edge:
        edge = {
            state | {place}
            for state in edge
            for place in places
            if place not in state and mig_table.obstacle(geometry, place, list(state)) is None
        }
        found = found | edge
    return found


@pytest.mark.parametrize(
    ("model", "count"), [("NVIDIA H200", 2319), ("NVIDIA A100-SXM4-80GB", 2319), ("NVIDIA A30", 76)]
)
def test_the_table_has_the_known_number_of_states(model: str, count: int) -> None:
    assert len(states(model)) == count


def test_seven_small_instances_fill_a_card() -> None:
    placed = [Placement("1g.18gb", start) for start in range(7)]
    for start in range(7):
        others = placed[:start] + placed[start + 1 :]
        assert mig_table.obstacle(GEOMETRIES["NVIDIA H200"], placed[start], others) is None
    assert (
        mig_table.obstacle(GEOMETRIES["NVIDIA H200"], Placement("1g.35gb", 6), placed) is not None
    )
