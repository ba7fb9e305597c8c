"""Counts over the rounds of a launch: the drift that was put in is found, and a slower round is none."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.explanations.counted_metrics import IPC
from castmates.analysis.explanations.counters import BY_ROUND, DRIFTS, NAMES, NAMES_OF_STEPS, over_rounds
from castmates.report.figures import counters_evolution
from castmates.report.figures.texts import texts_for
from tests.unit.snapshots import assert_as_before
from tests.unit.test_counters_figure import HEAD, made_up
from tests.unit.test_counters_figure import results as with_counts
from tests.unit.test_figures import texts

ROUNDS = 6


def drifting(row):
    """Misses grow by a tenth from round to round, alone; cycles and instructions stay."""
    grows = row["event"] == "LLC-load-misses" and row["scene"] == "alone"
    return row | ({"value": row["value"] * 1.1 ** row["round"]} if grows else {})


def found(**more):
    counts, windows = made_up(rounds=ROUNDS, **more)
    return over_rounds([counts], [steps(windows)], windows)


def steps(windows):
    """Two heartbeats in each window: iterations go on through the launch."""
    rows = [
        HEAD | {"cohort": window["cohort"], "launch": window["launch"], "window": window["window"],
                "member": window["member"], "units": 100 * window["window"] + more}
        for window in windows.to_dict("records") for more in (0, 50)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_drift_is_found_where_it_was_put_with_an_interval_over_launches():
    by_round, drifts = found(spoil=drifting)
    assert (list(by_round.columns), list(drifts.columns)) == (list(BY_ROUND), list(DRIFTS))
    own = drifts.set_index(["kind", "metric"])
    # The last two of six rounds against the first two: four rounds apart.
    assert own.loc[("alone", "LLC-load-misses"), "drift"] == pytest.approx(1.1**4, rel=0.01)
    assert own.loc[("corun", "LLC-load-misses"), "drift"] == pytest.approx(1, rel=0.01)
    assert own.loc[("alone", IPC), "drift"] == pytest.approx(1, rel=0.01)
    assert (drifts["drift_low"] <= drifts["drift"]).all()
    assert (drifts["drift"] <= drifts["drift_high"]).all()
    assert found(spoil=drifting, launches=2)[1]["drift_low"].isna().all()
    misses = by_round[(by_round["metric"] == "LLC-load-misses") & (by_round["kind"] == "alone")]
    assert misses["round"].tolist() == list(range(1, ROUNDS + 1))
    assert misses["value"].tolist() == pytest.approx([1e3 * 1.1**one for one in range(1, ROUNDS + 1)], rel=0.01)
    assert set(misses["launches"]) == {3}


def test_rounds_are_placed_by_the_iterations_that_they_cover():
    by_round, _ = found()
    own = by_round[(by_round["metric"] == IPC) & (by_round["kind"] == "alone")].set_index("round")["iteration"]
    assert own.is_monotonic_increasing
    assert own[2] - own[1] == 200, "two windows a round, of 100 iterations each"
    counts, windows = made_up(rounds=ROUNDS)
    assert over_rounds([counts], [], windows)[0]["iteration"].isna().all()


def test_a_slower_round_is_no_change_because_counts_are_per_unit():
    counts, windows = made_up(rounds=ROUNDS)
    late = windows["round"] > 3
    slower = windows.assign(rate=windows["rate"].where(~late, windows["rate"] / 2))
    halved = counts.assign(value=counts["value"].where(counts["round"] <= 3, counts["value"] / 2))
    drifts = over_rounds([halved], [], slower)[1]
    assert drifts["drift"].tolist() == pytest.approx([1] * len(drifts), rel=0.01)


def test_rejected_windows_and_too_few_rounds_have_no_drift():
    counts, windows = made_up(rounds=2)
    by_round, drifts = over_rounds([counts], [], windows)
    assert len(by_round)
    assert drifts.empty
    by_round, drifts = over_rounds([counts], [], windows.assign(valid=False))
    assert (by_round.empty, drifts.empty) == (True, True)


def test_an_event_whose_turn_comes_every_other_round_drifts_over_its_own_rounds():
    def turns(row):
        waits = row["event"] == "LLC-load-misses" and row["round"] % 2
        return drifting(row) | ({"value": np.nan, "status": "not counted"} if waits else {})

    _, drifts = found(spoil=turns)
    own = drifts.set_index(["kind", "metric"])["drift"]
    assert own["alone", "LLC-load-misses"] == pytest.approx(1.1**4, rel=0.01), "round 6 against round 2"


def study(folder, launches=3):
    counts, windows = made_up(launches=launches, rounds=ROUNDS, spoil=drifting)
    return with_counts(folder, counts, windows)


def test_the_figure_begins_with_instructions_per_cycle_and_says_what_drifts(tmp_path):
    results = study(tmp_path / "study")
    figure, source = counters_evolution.draw(results)
    assert len(figure.axes[1].lines) == 2, "alone and beside the antagonist"
    assert source["drift"].notna().all()
    few = with_counts(tmp_path / "few", *made_up(rounds=1))
    said = {}
    for name, one in {"six rounds": results, "one round": few}.items():
        drawn, _ = counters_evolution.draw(one)
        words = dict.fromkeys(" ".join(text.split()) for text in texts(drawn))
        said[name] = [*words, texts_for("counters_evolution", one).alternative]
    assert_as_before("counter-rounds", said)


def test_names_that_come_as_categories_which_differ_from_part_to_part_change_nothing():
    """Bundles come with names as categories, each with those of its own launches."""
    counts, windows = made_up(rounds=ROUNDS, spoil=drifting)
    whole = over_rounds([counts], [steps(windows)], windows)

    def parts(table, names):
        return [part.astype(dict.fromkeys(names, "category")) for _, part in table.groupby("launch")]

    in_parts = over_rounds(parts(counts, NAMES), parts(steps(windows), NAMES_OF_STEPS), windows)
    assert len(in_parts[0])
    for ours, theirs in zip(in_parts, whole, strict=True):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
