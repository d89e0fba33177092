"""Quantities as people read them."""

from datetime import timedelta

import pytest

from portal.web.templatetags import units
from tests.builders import NOW


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (units.gib(None), "–"),
        (units.gib(512), "512 MiB"),
        (units.gib(8192), "8 GiB"),
        (units.gib(1536), "1.5 GiB"),
        (units.percent(None), "–"),
        (units.percent(250), "25 %"),
        (units.percent(125), "12.5 %"),
        (units.percentage(None), "–"),
        (units.percentage(0.0), "0 %"),
        (units.percentage(37.5), "37.5 %"),
        (units.gpus(None), "–"),
        (units.gpus(2500), "2.5"),
        (units.period(None), "–"),
        (units.period(0.0), "0 s"),
        (units.period(4.235), "4.235 s"),
        (units.period(42.26), "42.3 s"),
        (units.period(60), "1 min"),
        (units.period(7500), "2 h 5 min"),
        (units.period(90_000), "1 d 1 h"),
        (units.money(None), "–"),
        (units.micros(1_500_000, "EUR"), "1.50 EUR"),
        (units.lasted(NOW, NOW + timedelta(seconds=2)), "2 s"),
        (units.lasted(None, NOW), "–"),
        (units.utc(None), "–"),
        (units.utc(NOW), "2026-03-01 12:30:00"),
        (units.state_label("TIMED_OUT"), "Timed out"),
        (units.words("time_limit"), "time limit"),
    ],
)
def test_a_quantity_is_readable(shown, expected):
    assert shown == expected
