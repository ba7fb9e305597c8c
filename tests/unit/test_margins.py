"""Margins of the matrix: geometric means of whole rows and columns, with intervals that cover the truth."""

import numpy as np
import pytest

from castmates.analysis.effects.effects import CONTENTIOUSNESS, SENSITIVITY, estimate_effects, margins
from castmates.results.columns.study import MARGINS
from tests.unit.printed_intervals import assert_told
from tests.unit.windows_maker import cohort, mix, plan, written

LOSS = {("a", "x"): 0.1, ("a", "y"): 0.3, ("b", "x"): 0.2, ("b", "y"): 0.0}


def matrix(leads, antagonists, launches=4):
    """A cohort for each lead, with all the antagonists; a placebo costs nothing."""
    names = [(lead, [mix(f"{lead}@0", f"{other}@1") for other in antagonists]) for lead in leads]
    return plan([cohort(lead, *mixes) for lead, mixes in names], launches=launches)


def exact(_launch, _number, scene, member):
    if not scene.startswith("corun"):
        return 100.0
    lead, other = scene.removeprefix("corun:").split("+")
    return 100.0 * np.exp(-LOSS[lead, other]) if member.startswith(lead) else 50.0


def of(table, margin, who, baseline="alone"):
    rows = table[(table["margin"] == margin) & (table["who"] == who) & (table["baseline"] == baseline)]
    return rows.iloc[0]


def test_a_study_whose_windows_were_all_rejected_has_no_margins():
    design = matrix("ab", "xy")
    windows = written(design, exact)
    assert margins(design, windows.assign(valid=False)).empty


def test_a_margin_is_the_geometric_mean_of_its_cells():
    table = margins(matrix("ab", "xy"), written(matrix("ab", "xy"), exact, rounds=2))
    assert list(table.columns) == list(MARGINS)
    for margin, who, mean in [
        (SENSITIVITY, "a", 0.2), (SENSITIVITY, "b", 0.1), (CONTENTIOUSNESS, "x", 0.15), (CONTENTIOUSNESS, "y", 0.15)
    ]:  # fmt: skip
        row = of(table, margin, who)
        assert row["slowdown"] == pytest.approx(np.exp(mean))
        assert row["slowdown_low"] == pytest.approx(np.exp(mean))  # launches that agree to the last bit
        assert row["loss_pct"] == pytest.approx(100 * (1 - np.exp(-mean)))
        assert row["cells"] == row["cells_of"] == 2


def test_a_row_or_column_with_a_missing_cell_has_no_margin():
    def without(launch, number, scene, member):
        return None if scene == "corun:a+y" else exact(launch, number, scene, member)

    table = margins(matrix("ab", "xy"), written(matrix("ab", "xy"), without, rounds=2))
    assert np.isnan(of(table, SENSITIVITY, "a")["slowdown"])
    assert np.isnan(of(table, CONTENTIOUSNESS, "y")["loss_pct"])
    assert of(table, SENSITIVITY, "b")["slowdown"] == pytest.approx(np.exp(0.1))
    assert of(table, CONTENTIOUSNESS, "x")["slowdown"] == pytest.approx(np.exp(0.15))


def test_a_launch_that_lacks_a_cell_does_not_count_and_a_mean_never_lacks_a_part():
    def torn(launch, number, scene, member):
        lost = scene == ("corun:a+x" if launch.number % 2 else "corun:a+y")
        return None if lost and launch.cohort.id == "a" else exact(launch, number, scene, member)

    table = margins(matrix("ab", "xy"), written(matrix("ab", "xy"), torn, rounds=1))
    assert np.isnan(of(table, SENSITIVITY, "a")["slowdown"])
    assert of(table, SENSITIVITY, "a")["launches"] == 0
    assert of(table, CONTENTIOUSNESS, "x")["slowdown"] == pytest.approx(np.exp(0.15))


def test_below_three_launches_there_is_a_mean_and_no_interval():
    table = margins(matrix("ab", "xy", launches=2), written(matrix("ab", "xy", launches=2), exact, rounds=1))
    row = of(table, CONTENTIOUSNESS, "x")
    assert row["slowdown"] == pytest.approx(np.exp(0.15))
    assert np.isnan(row["slowdown_low"])


def test_a_study_of_one_mix_has_that_mix_as_its_margins():
    one = plan([cohort("a", mix("a@0", "x@1"))], launches=4)
    rng = np.random.default_rng(3)
    windows = written(one, lambda *where: exact(*where) * np.exp(rng.normal(0, 0.01)), rounds=2)
    effect = estimate_effects(one, windows, 0.02).query("role == 'lead' and baseline == 'alone'").iloc[0]
    for margin, who in ((SENSITIVITY, "a"), (CONTENTIOUSNESS, "x")):
        row = of(margins(one, windows), margin, who)
        assert row["slowdown"] == pytest.approx(effect["slowdown"])
        assert row["slowdown_low"] == pytest.approx(effect["slowdown_low"])


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("margin", "leads", "antagonists"),
    [
        (SENSITIVITY, [f"l{n}" for n in range(500)], ["x", "y"]),
        (CONTENTIOUSNESS, ["a", "b"], [f"x{n}" for n in range(500)]),
    ],
)
def test_the_intervals_cover_the_truth(margin, leads, antagonists):
    """Each of 500 margins is a separate study: launches move every co-run; what is beside whom moves it too."""
    rng, moved = np.random.default_rng(20261122), {}

    def rate(launch, _number, scene, _member):
        if not scene.startswith("corun"):
            return 100.0
        # Antagonists of one launch share its luck only in the sensitivity, where they are cells of one margin.
        luck = (launch.path,) if margin == SENSITIVITY else (launch.path, scene)
        shared = moved.setdefault(luck, rng.normal(0, 0.02))
        own = moved.setdefault((launch.path, scene, "own"), rng.normal(0, 0.03 if launch.cohort.id == "b" else 0.01))
        return 100.0 * np.exp(-0.2 + shared + own)

    of_plan = matrix(leads, antagonists, launches=5)
    table = margins(of_plan, written(of_plan, rate, rounds=1))
    rows = table[(table["margin"] == margin) & (table["baseline"] == "alone")]
    assert len(rows) == 500
    held = (rows["slowdown_low"] <= np.exp(0.2)) & (np.exp(0.2) <= rows["slowdown_high"])
    assert 0.92 <= held.mean() <= 0.985
    assert_told("margins", "slowdown_low", held.mean())
