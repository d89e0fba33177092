"""Equivalents and the level that refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.domain.accounts import Level, blocking_level, equivalent_milli

GPU_MIB = 143_000
compute = st.integers(1, 1000)
memory = st.integers(1, GPU_MIB)


@pytest.mark.parametrize(
    ("compute_milli", "memory_mib", "equivalent"),
    [
        (1000, GPU_MIB, 1000),
        (250, 1, 250),
        (1, GPU_MIB // 4, 250),
        (1, GPU_MIB // 4 + 1, 251),
        (143, 17_875, 143),
        (1, 2 * GPU_MIB, 1000),
    ],
)
def test_the_larger_part_counts_and_memory_is_rounded_up(compute_milli, memory_mib, equivalent):
    size = equivalent_milli(
        compute_milli=compute_milli, memory_mib=memory_mib, gpu_memory_mib=GPU_MIB
    )

    assert size == equivalent


@given(compute, memory)
def test_an_equivalent_covers_both_parts_and_at_most_one_gpu(compute_milli, memory_mib):
    size = equivalent_milli(
        compute_milli=compute_milli, memory_mib=memory_mib, gpu_memory_mib=GPU_MIB
    )

    assert compute_milli <= size <= 1000
    assert memory_mib * 1000 <= size * GPU_MIB
    assert size == compute_milli or (size - 1) * GPU_MIB < memory_mib * 1000


@pytest.mark.parametrize(("compute_milli", "memory_mib"), [(0, 1), (1001, 1), (1, 0)])
def test_a_slice_of_nothing_is_refused(compute_milli, memory_mib):
    with pytest.raises(ValueError, match="part of a GPU"):
        equivalent_milli(compute_milli=compute_milli, memory_mib=memory_mib, gpu_memory_mib=GPU_MIB)


levels = st.builds(
    Level,
    owner_id=st.uuids().map(str),
    limit_milli=st.none() | st.integers(0, 5000),
    held_milli=st.integers(0, 5000),
)


@given(st.lists(levels, max_size=5), compute)
def test_the_first_level_without_room_blocks(line, wanted):
    full = [
        level
        for level in line
        if level.limit_milli is not None and level.held_milli + wanted > level.limit_milli
    ]

    assert blocking_level(line, wanted) == next(iter(full), None)


def test_what_fills_a_limit_exactly_has_room():
    assert blocking_level([Level("a", 1000, 750)], 250) is None
    assert blocking_level([Level("a", 1000, 751)], 250) == Level("a", 1000, 751)
