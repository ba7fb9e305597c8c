"""Our quantiles of Student's t against scipy's, central and not."""

import math

import pytest
from scipy import special, stats

from castmates.analysis.statistics import power
from castmates.analysis.statistics.power import POWER, chance_within

LEVELS = (0.1, 0.05, 0.05 / 4, 0.05 / 300)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("freedom", [2, 3, 6, 11, 99, 2000])
def test_quantiles_are_scipys(freedom, level):
    reach = power.quantile(level / 2, freedom)
    assert reach == pytest.approx(-special.stdtrit(freedom, level / 2), rel=1e-11)
    shift = power.shift(reach, freedom, POWER)
    assert stats.nct.sf(reach, freedom, shift) == pytest.approx(POWER, rel=1e-10)


@pytest.mark.parametrize("freedom", [2, 5, 40])
@pytest.mark.parametrize(("log", "edge"), [(0.0, 0.03), (0.01, 0.03), (0.02, 0.2), (0.05, 0.03)])
def test_the_chance_that_an_interval_lies_within_a_margin(freedom, log, edge):
    """Against the mean over many quantiles of the spread."""
    many, error = 20_000, 0.04 / math.sqrt(freedom + 1)
    seen = (special.chdtri(freedom, (number + 0.5) / many) / freedom for number in range(many))
    room = [edge - power.two_sided(freedom) * error * math.sqrt(each) for each in seen]
    inside = [special.ndtr((each - log) / error) - special.ndtr((-each - log) / error) for each in room if each > 0]
    assert chance_within(0.04, freedom + 1, log, edge) == pytest.approx(sum(inside) / many, abs=2e-4)
