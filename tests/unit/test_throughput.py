"""Work per second of machine A against B over one list of mixes: exact cases."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from castmates.analysis.comparison.comparison import Side, throughput
from castmates.report.comparison.throughput import throughput_lines, throughput_sentences
from castmates.results.columns.comparison import COMPARISON_THROUGHPUT
from tests.unit.windows_maker import cohort, mix, plan, written

MIXES = [("cg", "lbm"), ("cg", "mcf"), ("lbm", "mcf", "mcf")]
SPEED = {"cg": 10.0, "lbm": 300.0, "mcf": 7.0}  # alone, on A
WITH = np.array([0.50, 0.52, 0.47, 0.55])  # what beside others is left of it, launch by launch


def mixes_of(named):
    """One cohort for each lead."""
    made = [mix(f"{lead}@0", *(f"{name}@{at}" for at, name in enumerate(others, 1))) for lead, *others in named]
    leads = dict.fromkeys(one.lead for one in made)
    return [cohort(f"c{n}", *(one for one in made if one.lead == lead)) for n, lead in enumerate(leads)]


def side(factor=None, left=WITH, named=MIXES, platform="measured", units=None):
    """A machine on which a workload is as many times as fast."""
    of = plan(mixes_of(named), launches=len(left))

    def rate(launch, number, scene, member):
        name = member.partition("@")[0]
        beside = left[launch.number - 1] if scene.startswith("corun") else 1.0
        return SPEED[name] * (factor or {}).get(name, 1.0) * beside

    windows = written(of, rate, platform=platform)
    return Side(of, windows.assign(unit=[(units or {}).get(name, "step") for name in windows["workload"]]))


def rows_of(table, letter):
    return table[table["letter"] == letter].set_index("workload")


def test_rates_are_those_beside_others_and_the_whole_list_weighs_each_place_alike():
    factor = {"cg": 2.0, "lbm": 0.5, "mcf": 3.0}
    table = throughput({"A": side(), "B": side(factor)})
    assert list(table.columns) == list(COMPARISON_THROUGHPUT)
    ours, theirs = rows_of(table, "A"), rows_of(table, "B")
    assert list(ours.index) == ["", "cg", "lbm", "mcf"]
    assert ours["places"].to_dict() == {"": 7, "cg": 2, "lbm": 2, "mcf": 3}
    assert ours["mixes"].to_dict() == {"": 3, "cg": 2, "lbm": 2, "mcf": 2}
    left = math.exp(np.log(WITH).mean())
    for name, speed in SPEED.items():
        assert ours.loc[name, "rate"] == pytest.approx(speed * left)
        assert theirs.loc[name, "rate"] == pytest.approx(speed * factor[name] * left)
        assert theirs.loc[name, "ratio"] == pytest.approx(factor[name])
    # cg twice, lbm twice, mcf three times (a second instance is a place of its own)
    assert theirs.loc["", "ratio"] == pytest.approx((2**2 * 0.5**2 * 3**3) ** (1 / 7))
    assert ours["rate"].isna().to_dict() == {"": True, "cg": False, "lbm": False, "mcf": False}  # units differ
    assert ours["ratio"].isna().all()


def test_the_interval_of_a_workload_in_one_cohort_is_welchs_over_its_launches():
    other = np.array([0.8, 0.9, 0.7, 0.85])
    found = rows_of(throughput({"A": side(), "B": side(left=other)}), "B").loc["cg"]
    low, high = stats.ttest_ind(np.log(other), np.log(WITH), equal_var=False).confidence_interval(0.95)
    assert (found["ratio_low"], found["ratio_high"]) == pytest.approx((math.exp(low), math.exp(high)))
    low, high = stats.t.interval(0.95, 3, np.log(10 * other).mean(), stats.sem(np.log(10 * other)))
    assert (found["rate_low"], found["rate_high"]) == pytest.approx((math.exp(low), math.exp(high)))


def test_only_places_that_all_have_with_the_same_unit_count():
    table = throughput({"A": side(), "B": side(named=MIXES[:2]), "C": side({"cg": 2.0})})
    assert set(table["mixes"]) == {2, 1}
    assert rows_of(table, "C").loc["", "ratio"] == pytest.approx(2 ** (2 / 4))
    mixed = throughput({"A": side(), "B": side(units={"mcf": "run"})})
    assert set(mixed["workload"]) == {"", "cg", "lbm"}
    assert throughput({"A": side(named=MIXES[:1]), "B": side(named=MIXES[1:])}).empty


def test_what_is_modelled_gets_its_rates_and_no_ratio():
    found = rows_of(throughput({"A": side(), "B": side(platform="modelled"), "C": side({"cg": 4.0})}), "B")
    assert found["ratio"].isna().all()
    assert found.loc["cg", "rate"] > 0


def told(**sides):
    """What is said and shown of these studies."""
    several = SimpleNamespace(throughput=throughput(sides))
    return list(throughput_sentences(several)), [line.workload for line in throughput_lines(several)]


def test_studies_without_a_common_place_are_a_sentence_and_rows_without_a_number_no_lines():
    (sentence,), lines = told(A=side(named=MIXES[:1]), B=side(named=MIXES[1:]))
    assert sentence.startswith("Work per second is not compared: the studies have no member of the same mix")
    assert lines == []
    assert told(A=side(), B=side(platform="modelled"))[1] == ["cg", "lbm", "mcf"]  # no ratio of the whole list
    (sentence,), lines = told(A=side(), B=side())
    assert sentence.startswith("Work per second beside others, geometric mean over 7 places")
    assert lines == ["the whole list", "cg", "lbm", "mcf"]
