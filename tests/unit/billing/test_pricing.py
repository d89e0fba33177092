"""Pricing conserves: how use is cut never changes what it costs."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.metering import LeaseUse, due_pieces
from billing.domain.pricing import (
    MILLISECOND,
    Piece,
    Price,
    cost_micros,
    half_up,
    hour_of,
    price_at,
    segments_of,
    whole_ms,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
H200 = "NVIDIA H200"
DAYS_MS = 3 * 24 * 3_600_000

moments = st.integers(0, DAYS_MS * 1000).map(lambda us: NOON + timedelta(microseconds=us))
rates = st.integers(0, 50_000_000)


@st.composite
def price_books(draw):
    changes = sorted(draw(st.sets(st.integers(-DAYS_MS, DAYS_MS), min_size=1, max_size=6)))
    return [
        Price(f"v{number}", NOON + change * MILLISECOND, {"*": draw(rates), H200: draw(rates)})
        for number, change in enumerate(changes)
    ]


@st.composite
def periods(draw):
    first, second = sorted([draw(moments), draw(moments)])
    return first, second


def use(pieces, equivalent=1000):
    return [(piece.rate, piece.duration_ms * equivalent) for piece in pieces]


@given(periods(), price_books())
def test_pieces_cover_the_period_without_gap_or_overlap(period, prices):
    start, end = period

    pieces = segments_of(start, end, prices, H200)

    edges = [whole_ms(start)] + [piece.ended_at for piece in pieces]
    assert [piece.started_at for piece in pieces] == edges[:-1]
    assert edges[-1] == max(whole_ms(start), whole_ms(end))


@given(periods(), price_books())
def test_a_piece_lies_in_one_hour_and_one_price(period, prices):
    start, end = period

    for piece in segments_of(start, end, prices, H200):
        last = piece.ended_at - MILLISECOND
        assert piece.duration_ms > 0
        assert hour_of(piece.started_at) == hour_of(last)
        assert price_at(prices, piece.started_at) == price_at(prices, last)
        assert piece.rate == price_at(prices, piece.started_at).rate(H200)


@given(periods(), moments, price_books(), st.integers(1, 1000))
def test_cutting_anywhere_never_changes_the_total(period, cut, prices, equivalent):
    start, end = period
    middle = min(max(cut, start), end)

    whole = segments_of(start, end, prices, H200)
    halves = segments_of(start, middle, prices, H200) + segments_of(middle, end, prices, H200)

    assert cost_micros(use(halves, equivalent)) == cost_micros(use(whole, equivalent))


@given(periods(), rates)
def test_a_price_that_changes_to_itself_costs_the_same(period, rate):
    start, end = period
    one = [Price("a", NOON, {"*": rate})]
    two = [*one, Price("b", NOON + timedelta(minutes=90), {"*": rate})]

    once = cost_micros(use(segments_of(start, end, one, H200)))
    twice = cost_micros(use(segments_of(start, end, two, H200)))

    assert once == twice


@given(rates, st.integers(1, 3_600_000))
def test_four_quarters_cost_what_one_whole_costs(rate, duration_ms):
    assert cost_micros([(rate, 250 * duration_ms)] * 4) == cost_micros([(rate, 1000 * duration_ms)])


@given(moments, st.lists(st.integers(0, 7_200_000), max_size=8), price_books())
def test_metering_in_steps_writes_the_pieces_of_metering_once(start, steps_ms, prices):
    end = start
    done = None
    written: list[Piece] = []
    for step in [*steps_ms, 0]:
        end += step * MILLISECOND
        pieces = due_pieces(lease_use(start, end, final=False), done, prices)
        done = pieces[-1].ended_at if pieces else done
        written += pieces
    written += due_pieces(lease_use(start, end, final=True), done, prices)

    assert written == segments_of(start, end, prices, H200)


def test_an_unfinished_use_is_metered_up_to_the_last_full_hour():
    prices = [Price("a", NOON, {"*": 1})]
    going_on = lease_use(NOON + HOUR / 2, NOON + 2 * HOUR + HOUR / 4, final=False)

    pieces = due_pieces(going_on, None, prices)

    assert [piece.duration_ms for piece in pieces] == [1_800_000, 3_600_000]


def test_one_gpu_for_one_hour_costs_its_rate():
    prices = [Price("a", NOON, {"*": 1_000_000, H200: 2_800_000})]

    pieces = segments_of(NOON, NOON + HOUR, prices, H200)

    assert cost_micros(use(pieces)) == 2_800_000


def test_a_model_without_its_own_rate_costs_the_rate_of_any():
    assert Price("a", NOON, {"*": 7, H200: 9}).rate("NVIDIA T4") == 7


def test_the_first_price_covers_what_began_before_it():
    prices = [Price("a", NOON, {"*": 7})]

    assert segments_of(NOON - HOUR, NOON - HOUR / 2, prices, H200)[0].version_id == "a"


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded"),
    [(1, 2, 1), (-1, 2, -1), (3, 2, 2), (1, 3, 0), (2, 3, 1), (0, 5, 0), (10, 5, 2)],
)
def test_halves_are_rounded_away_from_zero(numerator, denominator, rounded):
    assert half_up(numerator, denominator) == rounded


def lease_use(started_at, until, *, final):
    return LeaseUse(
        lease_id="lease",
        job_id="job",
        project_id="project",
        tenant_id="tenant",
        user_id="user",
        gpu_model=H200,
        equivalent_milli=250,
        compute_milli=250,
        memory_mib=8192,
        started_at=started_at,
        until=until,
        final=final,
    )
