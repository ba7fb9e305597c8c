"""Published numbers, recomputed through our own functions: what others printed of the same data, we print too.

Each test names where its numbers stand. A launch takes the place of a patient, a batch or an instrument of the source,
and the logarithms of rates that of its measured values.
"""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.comparison.comparison import Side, compare
from castmates.analysis.design.pilot import spreads
from castmates.analysis.effects import contrasts
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.explanations import evolution
from castmates.analysis.statistics import intervals, power
from castmates.analysis.statistics.intervals import holm, quantile
from castmates.analysis.statistics.welch import welch
from tests.unit.windows_maker import cohort, mix, plan, written

# Student, "The probable error of a mean", Biometrika 6 (1908), 20: hours of sleep gained with each of two drugs by ten
# patients; the data set `sleep` of R. Cushny and Peebles measured them.
ONE_DRUG = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
OTHER_DRUG = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)

# Davies and Goldsmith, "Statistical Methods in Research and Production", 4th ed. (1972), section 6.4: yields of
# dyestuff from six batches, five preparations of each; the data set `Dyestuff` of R's package lme4.
DYESTUFF = (
    (1545, 1440, 1440, 1520, 1580), (1540, 1555, 1490, 1560, 1495), (1595, 1550, 1605, 1510, 1560),
    (1445, 1440, 1595, 1465, 1545), (1595, 1630, 1515, 1635, 1625), (1520, 1455, 1450, 1480, 1445),
)  # fmt: skip

# NIST, Statistical Reference Datasets, analysis of variance, SiRstv: resistivity of silicon wafers by five instruments.
SILICON = (
    (196.3052, 196.1240, 196.1890, 196.2569, 196.3403), (196.3042, 196.3825, 196.1669, 196.3257, 196.0422),
    (196.1303, 196.2005, 196.2889, 196.0343, 196.1811), (196.2795, 196.1748, 196.1494, 196.1485, 195.9885),
    (196.2119, 196.1051, 196.1850, 196.0052, 196.2090),
)  # fmt: skip

# Henderson and Velleman, Biometrics 37 (1981), 391: miles per gallon of 32 cars; `mtcars` of R.
MILES = (21, 21, 22.8, 21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3, 15.2, 10.4, 10.4, 14.7, 32.4, 30.4,
         33.9, 21.5, 15.5, 15.2, 13.3, 19.2, 27.3, 26, 30.4, 15.8, 19.7, 15, 21.4)  # fmt: skip


def study(losses, level=None):
    """A study whose co-run costs, launch by launch and round by round, these logarithms."""
    losses = [np.atleast_1d(each) for each in losses]
    of = plan([cohort("c", mix("a@0", "b@1", identity="it"))], len(losses))

    def rate(launch, number, scene, _member):
        alone = 0.0 if level is None else level[launch.number - 1]
        return np.exp(alone - (losses[launch.number - 1][number - 1] if scene.startswith("corun") else 0.0))

    return of, written(of, rate, rounds=len(losses[0]))


def effect(losses, level=None):
    """The lead's effect against alone: estimate and ends on the log scale, and all else that stands in its row."""
    of, windows = study(losses, level)
    rows = estimate_effects(of, windows, 0.02).query("role == 'lead' and baseline == 'alone'")
    (row,) = rows.to_dict("records")
    names = {"slowdown": "log", "slowdown_low": "low", "slowdown_high": "high"}
    logs = {short: float(np.log(row[name])) for name, short in names.items()}
    return row | logs | {"within": float(np.log(row["within_high"] / row["within_low"])) / 2}


def test_paired_students_sleep():
    """R, t.test(extra ~ group, sleep, paired = TRUE), as in Meys and de Vries, "R For Dummies" (2012)."""
    found = effect(np.subtract(ONE_DRUG, OTHER_DRUG), level=ONE_DRUG)
    assert found["log"] == pytest.approx(-1.58)
    assert (found["low"], found["high"]) == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)
    assert found["p_value"] == pytest.approx(0.002833, abs=5e-7)
    assert found["log"] / ((found["high"] - found["low"]) / 2 / 2.262157) == pytest.approx(-4.0621, abs=5e-5)


def test_unpaired_students_sleep():
    """R, example of t.test: t = -1.8608, df = 17.776, p-value = 0.07939, interval -3.3654832 to 0.2054832."""
    table = compare(Side(*study(OTHER_DRUG)), Side(*study(ONE_DRUG)), 0.02)
    (row,) = table.query("role == 'lead' and baseline == 'alone'").to_dict("records")
    assert np.log([row["ratio_low"], row["ratio_high"]]) == pytest.approx([-3.3654832, 0.2054832], abs=1e-7)
    assert row["p_value"] == pytest.approx(0.07939, abs=5e-6)


@pytest.mark.parametrize(
    ("confidence", "differences", "mean", "low", "high"),
    [
        (0.99, (1.5, 2.6, -1.8, 1.3, -0.5, 1.7, 2.4), 1.03, -1.21, 3.27),
        (0.90, (-13.7, 13.1, -2.8, -1.1, -3.0, 5.6), -0.32, -7.75, 7.11),
    ],
)
def test_jains_processor_times(monkeypatch, confidence, differences, mean, low, high):
    """Jain, "The Art of Computer Systems Performance Analysis" (1991), examples 13.3 and 13.5; he rounds as he goes."""
    monkeypatch.setattr(intervals.quantile, "__defaults__", ((1 + confidence) / 2,))
    found = effect(differences)
    assert [found["log"], found["low"], found["high"]] == pytest.approx([mean, low, high], abs=0.0101)


def test_one_sample_of_cars():
    """R, t.test(mtcars$mpg): interval 17.91768 to 22.26357; summary(mtcars$mpg): quartiles 15.43, 19.20 and 22.80."""
    found = effect(MILES)
    assert (found["log"], found["low"], found["high"]) == pytest.approx((20.09062, 17.91768, 22.26357), abs=5e-6)
    tenths = np.round(np.multiply(MILES, 10)).astype(np.int64)
    quartiles = evolution.quantiles(tenths, np.zeros(32, dtype=np.int64), np.array([32]), [0.25, 0.5, 0.75])
    assert quartiles[0] / 10 == pytest.approx([15.425, 19.2, 22.8])


def test_launches_are_to_rounds_as_batches_to_preparations():
    """R, lmer(Yield ~ 1 + (1 | Batch), Dyestuff): mean 1527.50 with error 19.38, variances 1764 (batch) and 2451."""
    logs = np.array(DYESTUFF) / 1000
    found = effect(logs)
    assert 1000 * found["log"] == pytest.approx(1527.5)
    assert 1000 * (found["high"] - found["low"]) / 2 / 2.570582 == pytest.approx(19.38, abs=0.006)
    (one,) = spreads(*study(logs)).values()
    assert (1e6 * one.between, 1e6 * one.within) == pytest.approx((1764, 2451), abs=0.5)


def test_within_a_launch_as_within_an_instrument():
    """NIST's certified mean squares: between 1.27865654E-02 (4 degrees), within 1.08318280E-02 (20 degrees)."""
    logs = np.array(SILICON) - 196
    (one,) = spreads(*study(logs)).values()
    assert (5 * one.of_means, one.within) == pytest.approx((1.27865654e-2, 1.08318280e-2), rel=1e-8)
    # The table of Student's t has 2.086 for 20 degrees.
    assert effect(logs)["within"] == pytest.approx(2.086 * np.sqrt(1.08318280e-2 / 25), rel=1e-4)


def test_welchs_degrees_of_freedom_on_miles_per_gallon():
    """NIST/SEMATECH e-Handbook, 1.3.5.3: 249 American and 79 Japanese cars, T = -12.94627, 136.8750 degrees."""
    american, japanese = (
        pd.DataFrame({"mean": [mean], "variance": [spread**2], "launches": [count]})
        for mean, spread, count in ((20.14458, 6.41470, 249), (30.48101, 6.10771, 79))
    )
    (found,) = welch(japanese, american).to_dict("records")
    half = (found["high"] - found["low"]) / 2
    reach = float(quantile(np.array([136.8750]))[0])
    assert found["mean"] / (half / reach) == pytest.approx(-12.94627, abs=1e-5)


@pytest.mark.parametrize(
    ("freedom", "value"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228), (20, 2.086), (30, 2.042),
     (100, 1.984)],
)  # fmt: skip
def test_the_table_of_students_t(freedom, value):
    """NIST/SEMATECH e-Handbook, 1.3.6.7.2, column 0.975."""
    assert quantile(np.array([float(freedom)])) == pytest.approx([value], abs=5e-4)


def test_holms_adjustment():
    """Documentation of pingouin.holm; and of Holm in R's HDLSSkST, which rejects the third and the seventh at 5 %."""
    assert holm([0.50, 0.003, 0.32, 0.054, 0.0003]) == pytest.approx([0.64, 0.012, 0.64, 0.162, 0.0015])
    rejected = holm([0.50, 0.01, 0.001, 0.69, 0.02, 0.05, 0.0025]) < 0.05
    assert np.flatnonzero(rejected).tolist() == [2, 6]


@pytest.mark.parametrize(("confidence", "share", "fewest"), [(0.9, 0.95, 59), (0.9, 0.99, 299), (0.9, 0.9, 29)])
def test_fewest_steps_are_wilks_sample_sizes(monkeypatch, confidence, share, fewest):
    """Wilks, Annals of Mathematical Statistics 12 (1941), 91: one-sided 95 % are two-sided 90 %."""
    monkeypatch.setattr(evolution, "CONFIDENCE", confidence)
    assert evolution.fewest_steps(share) == fewest


def test_fewest_steps_of_a_median():
    """Tables of the median's interval: smallest to largest of five holds it in 93.8 %, of six in 96.9 %."""
    assert evolution.fewest_steps(0.5) == 6
    assert [100 * (1 - 2 * 0.5**n) for n in (5, 6)] == pytest.approx([93.8, 96.9], abs=0.06)


@pytest.mark.parametrize(
    ("wanted", "level", "chance", "subjects"), [(0.5, 0.05, 0.8, 33.36713), (0.5, 0.01, 0.9, 62.87021)]
)
def test_detectable_effects(monkeypatch, wanted, level, chance, subjects):
    """R's package pwr, pwr.t.test(d, sig.level, power, type = "one.sample"): so many subjects, not whole ones."""
    monkeypatch.setattr(power, "POWER", chance)
    fewer, more = int(subjects), int(subjects) + 1
    assert power.detectable(1.0, more, level) < wanted < power.detectable(1.0, fewer, level)
    # Between two whole numbers the effect falls almost evenly.
    ends = [power.detectable(1.0, count, level) for count in (fewer, more)]
    assert np.interp(subjects, [fewer, more], ends) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(("right", "chance"), [(3, 0.2429), (4, 0.0143)])
def test_rejections_are_judged_as_the_lady_tasting_tea(monkeypatch, right, chance):
    """Fisher, "The Design of Experiments" (1935), chapter II; R, example of fisher.test: 0.2429 for three of four."""
    cups = {"slices_lost_alone": right, "slices_kept": 4 - right}
    cups |= {"baseline_slices_lost_alone": 4 - right, "baseline_slices_kept": right}
    others = ("slices_lost", "windows_valid", "windows_rejected", "windows_spoilt")
    cups |= {f"{side}{name}": 0 for side in ("", "baseline_") for name in others}
    for level, flagged in ((chance - 5e-5, False), (chance + 5e-5, True)):
        monkeypatch.setattr(contrasts, "BIAS_LEVEL", level)
        assert bool(contrasts.rejection_columns(pd.DataFrame([cups]))["possibly_biased"][0]) is flagged
