"""The figure of many mixes and their sentences: every mix once, sorted, with the mean that the table has."""

from functools import cache

import numpy as np
import pytest

from castmates.analysis.effects.system import system_metrics
from castmates.analysis.effects.system_over_mixes import system_over_mixes
from castmates.report.figures import system_mixes
from castmates.report.figures.index import figures_of
from castmates.report.results import Results
from castmates.report.text import over_mixes
from tests.unit.legible import problems
from tests.unit.test_over_mixes import drawn_study
from tests.unit.windows_maker import written


@cache
def results(launches, count=40, sizes=range(1, 4)):
    """Results of random mixes that were measured in so many launches."""
    design = drawn_study(count, sizes, launches)
    dice = np.random.default_rng(1)
    windows = written(design, lambda *about: noisy(dice, *about), rounds=2)
    tables = {"system": system_metrics(design, windows), "system_over_mixes": system_over_mixes(design, windows)}
    return Results(name="example", plan=design, windows=windows, **tables)


def noisy(dice, _launch, _number, scene, who):
    if not scene.startswith("corun"):
        return 100.0
    beside = [name for name in scene.removeprefix("corun:").split("+") if name != who.partition("@")[0]]
    return 100.0 * np.exp(dice.normal(0, 0.02)) / (1 + sum(int(name[1]) for name in beside) / 10)


@pytest.mark.parametrize(("count", "sizes"), [(40, range(1, 4)), (12, range(1, 2)), (100, range(1, 5))])
def test_the_figure_is_legible_and_has_every_mix_once_in_order(count, sizes):
    made = results(3, count, sizes)
    drawn, source = system_mixes.draw(made)
    assert problems(drawn) == []
    for metric in ("STP", "ANTT"):
        own = source[source["metric"] == metric]
        assert len(own) == own["mix"].nunique() == count
        assert own.groupby("antagonists")["value"].is_monotonic_increasing.all()
    assert len(drawn.axes) == 2
    assert system_mixes.caption(made).count("3 launches") == 1


def test_sentences_quote_one_number_of_antagonists_at_a_time():
    made = results(3)
    words = over_mixes.sentences(made)
    assert len(words) == 3
    assert all("STP" in line and "ANTT" in line and "could have been drawn" in line for line in words)
    row = next(row for row in over_mixes.rows(made) if row["metric"] == "STP" and row["antagonists"] == 2)
    assert row["these"] in words[1]
    assert row["everything"] in words[1]
    one_size = over_mixes.sentences(results(3, 12, range(1, 2)))
    assert len(one_size) == 1


def test_too_few_launches_have_means_and_no_intervals():
    made = results(2)
    assert "[" not in " ".join(over_mixes.sentences(made))
    assert "Too few launches for intervals" in system_mixes.caption(made)
    assert problems(system_mixes.draw(made)[0]) == []


def test_a_study_has_the_figure_if_it_makes_mixes():
    made = results(3)
    assert "system_mixes" in figures_of(made.plan, made.folder)
    assert "system_mixes" not in figures_of(made.plan.model_copy(update={"sets": ()}), made.folder)
