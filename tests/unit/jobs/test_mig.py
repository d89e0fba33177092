"""MIG geometry, checked against interval logic and against the table that the agent has."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agent.slices import mig_table
from jobs.scheduling import mig
from jobs.scheduling.mig import Placement
from tests.unit.jobs import rules

MODELS = list(rules.CARDS)
SEQUENCES = 500


def pairs(places):
    return [(place.profile, place.start) for place in places]


def random_sequence(model, seed):
    """Instances after each of twenty requests: most make an instance, some end one."""
    chance = random.Random(f"{model} {seed}")  # noqa: S311 - repeatable
    taken: frozenset[Any] = frozenset()
    for _ in range(20):
        profile = chance.choice(sorted(rules.CARDS[model][0]))
        ended = chance.choices([frozenset(), frozenset(sorted(taken)[:1])], [3, 1])[0]
        taken -= ended
        place = mig.best_start(rules.family(model), taken, profile)
        yield taken, profile, place
        taken |= {place} - {None}


@pytest.mark.parametrize("model", MODELS)
def test_every_instance_of_a_random_sequence_is_legal(model):
    for seed in range(SEQUENCES):
        for taken, _, place in random_sequence(model, seed):
            assert rules.mig_is_legal(model, pairs(taken | {place} - {None}))


@pytest.mark.parametrize("model", MODELS)
def test_a_start_is_found_exactly_when_there_is_one(model):
    for seed in range(SEQUENCES):
        for taken, profile, place in random_sequence(model, seed):
            room = [start for name, start in rules.mig_room(model, pairs(taken)) if name == profile]
            assert (place is not None) == bool(room)


@pytest.mark.parametrize("model", MODELS)
def test_the_best_start_leaves_the_most_room_and_is_the_highest_of_equals(model):
    for seed in range(SEQUENCES // 5):
        for taken, profile, place in random_sequence(model, seed):
            room = [
                (len(rules.mig_room(model, [*pairs(taken), (name, start)])), start)
                for name, start in rules.mig_room(model, pairs(taken))
                if name == profile
            ]
            best = max(room, default=(0, None))
            assert (place.start if place else None) == best[1]


@pytest.mark.parametrize("model", MODELS)
def test_the_placements_are_those_of_the_intervals(model):
    for seed in range(SEQUENCES // 5):
        for taken, _, _ in random_sequence(model, seed):
            found = pairs(mig.placements(rules.family(model), taken))
            assert sorted(found) == sorted(rules.mig_room(model, pairs(taken)))


@pytest.mark.parametrize("model", MODELS)
def test_the_sizes_of_a_full_gpu_stay_within_it(model):
    kind = rules.family(model)
    for seed in range(SEQUENCES):
        for taken, _, place in random_sequence(model, seed):
            profiles = [kind.profile(one.profile) for one in taken | {place} - {None}]
            assert sum(mig.compute_milli(kind, profile) for profile in profiles) <= 1000
            memory = sum(profile.memory_mib for profile in profiles)
            assert memory <= max(profile.memory_mib for profile in kind.profiles)


@pytest.mark.parametrize("model", MODELS)
def test_the_stand_in_tells_the_documented_table(model):
    geometry = mig_table.told(model)
    assert geometry is not None
    plain = [profile for profile in geometry.profiles if not profile.media]
    told = {(p.name, p.compute_slices, p.size, tuple(p.starts), p.memory_mib) for p in plain}
    assert told == {
        (p.name, p.compute_slices, p.size, p.starts, p.memory_mib)
        for p in rules.family(model).profiles
    }
    assert (geometry.compute_slices, geometry.memory_units) == rules.CARDS[model][1:]


def test_a_start_keeps_the_place_of_the_largest_free():
    taken = frozenset({Placement("3g.71gb", 4)})
    assert mig.best_start(rules.family("NVIDIA H200"), taken, "1g.18gb") == Placement("1g.18gb", 3)
    assert mig.best_start(rules.family("NVIDIA H200"), frozenset(), "1g.18gb") == Placement(
        "1g.18gb", 6
    )


def test_units_are_the_interval_of_the_instance():
    assert list(mig.units(rules.family("NVIDIA H200"), Placement("3g.71gb", 4))) == [4, 5, 6, 7]
