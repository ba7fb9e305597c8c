"""Our statistics against statsmodels': intervals, Welch's t, Holm's adjustment, power of the non-central t."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.statistics.intervals import estimate, holm
from castmates.analysis.statistics.power import detectable, half_width
from castmates.analysis.statistics.welch import one_sample, welch

pytestmark = pytest.mark.needs("statsmodels")
SAMPLES = [(0.1, 0.12, 0.07), (-0.02, 0.3, 0.11, 0.08, 0.25), tuple(np.random.default_rng(7).normal(0.05, 0.02, 12))]


def side(values):
    return pd.DataFrame({"mean": [np.mean(values)], "variance": [np.var(values, ddof=1)], "launches": [len(values)]})


@pytest.mark.parametrize("values", SAMPLES)
def test_the_interval_of_a_mean(values):
    from statsmodels.stats.weightstats import DescrStatsW

    theirs = DescrStatsW(values)
    own = one_sample(side(values)).iloc[0]
    assert (own["low"], own["high"]) == pytest.approx(theirs.tconfint_mean(0.05))
    # A launch of one round each: the headline is that of the launches.
    pairs = pd.DataFrame({"row": 1, "cohort": "c", "launch": range(len(values)), "difference": values})
    found = estimate(pairs, ["row"]).iloc[0]
    assert (found["low"], found["high"]) == pytest.approx(theirs.tconfint_mean(0.05))
    assert found["p_value"] == pytest.approx(theirs.ttest_mean(0.0)[1])
    low, high = theirs.tconfint_mean(0.05)
    assert half_width(np.var(values, ddof=1), len(values)) == pytest.approx(np.sinh((high - low) / 2))


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (2, 0)])
def test_the_difference_of_two_groups(one, other):
    from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

    theirs = CompareMeans(DescrStatsW(SAMPLES[other]), DescrStatsW(SAMPLES[one]))
    found = welch(side(SAMPLES[one]), side(SAMPLES[other])).iloc[0]
    assert (found["low"], found["high"]) == pytest.approx(theirs.tconfint_diff(0.05, usevar="unequal"))
    assert found["p_value"] == pytest.approx(theirs.ttest_ind(usevar="unequal")[1])


@pytest.mark.parametrize("seed", range(5))
def test_the_adjustment_for_many_tests(seed):
    from statsmodels.stats.multitest import multipletests

    p = np.random.default_rng(seed).beta(0.4, 1.0, 1 + 7 * seed)
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


@pytest.mark.parametrize("launches", [3, 4, 6, 12, 30])
@pytest.mark.parametrize("level", [0.05, 0.05 / 6])
def test_the_smallest_loss_that_is_found_in_four_studies_of_five(launches, level):
    """A two-sided test, of which a finding of the right sign counts."""
    from statsmodels.stats.power import TTestPower

    def power(loss):
        return TTestPower().power(loss / 0.03, launches, level / 2, alternative="larger")

    loss = detectable(0.03**2, launches, level)
    assert power(loss) == pytest.approx(0.8, abs=1e-6)
    assert power(0.9 * loss) < 0.77
