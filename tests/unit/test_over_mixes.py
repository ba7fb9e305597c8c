"""Means over sets of mixes: by hand where that is possible, and what must hold between the two intervals."""

import numpy as np
import pytest
from scipy import stats

from castmates.analysis.effects.system import ANTT, JAIN, STP, system_metrics
from castmates.analysis.effects.system_over_mixes import (
    BY_MEMBERS,
    BY_SIZE,
    Draw,
    Launches,
    of_all,
    of_these,
    system_over_mixes,
)
from castmates.results.columns.mixes import SYSTEM_OVER_MIXES
from castmates.study.drawing import Terms, drawn_on
from castmates.study.spec import MixSet
from tests.unit.test_coverage_of_mixes import study
from tests.unit.windows_maker import cohort, mix, plan, written

NAMES = [f"w{number}" for number in range(6)]


def launch_values(values, cohort=None):
    """A row of values per mix; mixes of one cohort share their launches."""
    values = np.asarray(values, dtype=float)
    mixes, launches = values.shape
    cohort = np.repeat(np.arange(mixes) if cohort is None else cohort, launches)
    launch = cohort * launches + np.tile(np.arange(launches), mixes)
    return Launches(np.repeat(np.arange(mixes), launches), launch, cohort, values.ravel())


def test_mixes_that_share_all_launches_have_the_interval_of_the_means_of_launches():
    values = np.random.default_rng(1).normal(0, 1, (4, 5)) + np.random.default_rng(2).normal(0, 2, 5)
    found = of_these(launch_values(values, cohort=[0, 0, 0, 0]))
    low, high = stats.t.interval(0.95, 4, values.mean(), stats.sem(values.mean(axis=0)))
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), low, high))
    apart = of_these(launch_values(values))
    assert apart.high - apart.low < found.high - found.low, "as if launches of one cohort were independent"


def test_a_launch_without_one_of_its_mixes_moves_no_other_mean():
    values = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0], [5.0, 5.0, 5.0, 5.0]])
    whole = launch_values(values, cohort=[0, 0, 0])
    kept = np.ones(12, dtype=bool)
    kept[4] = False  # the second mix in the first launch
    part = Launches(*(each[kept] for each in (whole.mix, whole.launch, whole.cohort, whole.value)))
    assert part.means == pytest.approx([2.5, 30.0, 5.0])
    assert of_these(part).mean == pytest.approx(12.5)
    assert np.isfinite(of_these(part).low)


@pytest.mark.parametrize(("mixes", "launches"), [(2, 5), (5, 2)])
def test_too_few_mixes_or_launches_have_no_interval(mixes, launches):
    values = np.random.default_rng(1).normal(0, 1, (mixes, launches))
    members = [("w0", name) for name in NAMES[1 : mixes + 1]]
    population = Draw(["w0"], NAMES).population(members, by_members=False)
    for found in (of_these(launch_values(values)), of_all(launch_values(values), population)):
        assert found.mean == pytest.approx(values.mean())
        assert np.isnan(found.low)
        assert np.isnan(found.high)


def test_where_all_are_drawn_both_intervals_are_the_same():
    members = [(lead, other) for lead in NAMES for other in NAMES if lead != other]
    values = np.random.default_rng(1).normal(0, 1, (len(members), 3)) + np.arange(len(members))[:, None]
    population = Draw(NAMES, NAMES).population(members, by_members=True)
    these, everything = of_these(launch_values(values)), of_all(launch_values(values), population)
    assert population.estimable
    assert everything.mean == pytest.approx(these.mean)
    assert everything.high - everything.low == pytest.approx(these.high - these.low, rel=1e-6)


def test_what_a_workload_does_to_all_its_mixes_is_no_luck_of_the_draw():
    """An exact additive world: the mean over all mixes is found without error from a third of them."""
    effect = dict(zip(NAMES, (0.0, 0.5, -1.0, 2.0, 0.1, 3.0), strict=True))
    members = [(each.lead, *each.antagonists) for each in drawn_on(Terms(3, NAMES, NAMES, range(1, 3)), (), 30)]
    values = np.array([[sum(map(effect.get, each)) + 0.25 * len(each)] * 3 for each in members])
    found = of_all(launch_values(values), Draw(NAMES, NAMES).population(members, by_members=True))
    sizes = np.array([len(each) for each in members])
    truth = (np.mean(list(effect.values())) * sizes + 0.25 * sizes).mean()
    assert found.mean == pytest.approx(truth)
    assert found.high - found.low == pytest.approx(0, abs=1e-9)


def test_a_few_simulated_studies_hold_the_truth():
    """The short version of test_coverage_of_mixes.py."""
    these, everything, *_ = np.mean([study("10 pairs of 6", "each mix differs", seed) for seed in range(60)], axis=0)
    assert min(these, everything) > 0.85


def exact(_launch, _number, scene, who):
    """Every member is as slow as its number, in thirds, plus the numbers of those beside it in tenths."""
    if not scene.startswith("corun"):
        return 100.0
    members = scene.removeprefix("corun:").split("+")
    own = who.partition("@")[0]
    return 100.0 / (1 + int(own[1]) / 3 + sum(int(name[1]) for name in members if name != own) / 10)


def drawn_study(count, sizes, launches=3):
    mixes = [
        mix(f"{each.lead}@0", *(f"{name}@{place}" for place, name in enumerate(each.antagonists, start=1)))
        for each in drawn_on(Terms(1, NAMES, NAMES, sizes), (), count)
    ]
    of_lead = [[one for one in mixes if one.lead == f"{lead}@0"] for lead in NAMES]
    made = plan([cohort(f"c-{own[0].lead}", *own) for own in of_lead if own], launches)
    sets = (MixSet(name="random", mixes=tuple(one.name for one in mixes), leads=tuple(NAMES), pool=tuple(NAMES)),)
    return made.model_copy(update={"sets": sets})


def test_the_table_has_the_mean_over_the_mixes_of_the_table_of_mixes():
    design = drawn_study(16, range(1, 3))
    windows = written(design, exact, rounds=2)
    table, single = system_over_mixes(design, windows), system_metrics(design, windows)
    assert list(table.columns) == list(SYSTEM_OVER_MIXES)
    assert set(table["how"]) == {BY_MEMBERS, BY_SIZE}, "eight pairs of six workloads show too little of who is in them"
    for metric in (STP, ANTT):
        own = single[single["metric"] == metric]
        for size, rows in [(None, own), (1, own[own["members"] == 2]), (2, own[own["members"] == 3])]:
            asked = table["antagonists"].eq(size) if size else table["antagonists"].isna()
            line = table[(table["metric"] == metric) & asked.fillna(value=False)]
            assert len(line) == 1
            assert line["value"].item() == pytest.approx(np.exp(np.log(rows["value"]).mean()))
            assert line["mixes"].item() == line["mixes_of"].item() == len(rows)
    assert table["possible"].dropna().isin([6 * 5, 6 * 10, 6 * 15]).all()
    assert table.loc[table["metric"] == JAIN, "high"].max() <= 1


def test_sets_that_are_all_there_is_have_no_mean_over_others():
    design = drawn_study(12, range(1, 2))
    pairs = (design.sets[0].model_copy(update={"name": "pairs", "leads": (), "pool": ()}),)
    table = system_over_mixes(design.model_copy(update={"sets": pairs}), written(design, exact, rounds=2))
    assert table["low"].notna().all()
    assert table["all_value"].isna().all()
    assert set(table["set"]) == {"pairs"}
    assert system_over_mixes(design.model_copy(update={"sets": ()}), written(design, exact, rounds=2)).empty


def test_mixes_that_an_adaptive_study_stopped_early_are_not_taken_for_well_known():
    rng, many = np.random.default_rng(5), np.array([4] * 11 + [12])
    launch, mix = np.nonzero(np.arange(12)[:, None] < many[None, :])
    held = 0
    for _ in range(1500):
        values = rng.normal(0, 1, (12, 12)) + rng.normal(0, 1, (12, 1))
        found = of_these(Launches(mix, launch, np.zeros_like(mix), values[launch, mix]))
        held += found.low < 0 < found.high
    assert 0.93 < held / 1500 < 0.97, "it was 0.86 with the degrees of freedom of all launches"
