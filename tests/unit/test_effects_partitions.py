"""Effects under partitions: exact on numbers worked out by hand, and no weight on what is known without them."""

import math

import pandas as pd
import pytest

from castmates.analysis.design.pilot import look, spreads, widths, window_noise
from castmates.analysis.effects.effects import estimate_controls, estimate_effects
from castmates.results.columns.study import EFFECTS
from castmates.study.spec import UNMANAGED
from tests.unit.partition_maker import LEAD, STREAM, atoms, made, windows
from tests.unit.windows_maker import mix

ONE = made(atoms())


def effects(of=ONE, noise=0.0):
    return estimate_effects(of, windows(of, noise), 0.02)


def logs(table, **where) -> dict[str, float]:
    for column, value in where.items():
        table = table[table[column] == value]
    return {row["baseline"]: math.log(row["slowdown"]) for row in table.to_dict("records")}


def test_each_baseline_of_a_partition_by_hand():
    table = effects()
    lead = logs(table, partition="split-4", member=LEAD)
    whole, own, antagonist = 0.1 + 0.02 + 0.3 / 5, 0.1, 0.3 / 5
    assert lead == pytest.approx(
        {
            "alone": whole,
            "placebo": whole - 0.02,
            "placebo@mask": antagonist,
            "unmanaged": whole - 0.32,  # the co-run without a partition loses 0.32: it gives something back
        }
    )
    assert whole - own - 0.02 == pytest.approx(antagonist)
    assert logs(table, partition="split-4", member=STREAM) == pytest.approx({"alone": 0.25})
    assert logs(table, partition="cap-2", member=LEAD) == pytest.approx(
        {"alone": 0.12, "placebo": 0.10, "unmanaged": 0.12 - 0.32}
    )
    alone = table[table["mix"] == "dlrm"]
    assert set(alone["baseline"]) == {"alone"}
    assert alone["antagonists"].tolist() == ["", ""]
    assert logs(table, partition="lead-6") == pytest.approx({"alone": 0.4 / 6})


def test_rows_without_a_partition_are_those_of_a_study_that_has_none():
    table = effects(noise=0.01)
    plain = made([mix(LEAD, STREAM)])
    scenes = {scene.name for scene in plain.launches[0].cohort.scenes}
    same = windows(ONE, 0.01)
    without = estimate_effects(plain, same[same["scene"].isin(scenes)], 0.02)
    unmanaged = table[table["partition"] == UNMANAGED].reset_index(drop=True)
    pd.testing.assert_frame_equal(unmanaged, without)
    controls = estimate_controls(ONE, same, 0.02)
    pd.testing.assert_frame_equal(controls, estimate_controls(plain, same[same["scene"].isin(scenes)], 0.02))


def test_scenes_between_which_masks_change_are_compared_across_stretches():
    table = effects()
    across = {key: set(rows["across_stretches"]) for key, rows in table.groupby(["partition", "baseline"])}
    assert across["split-4", "placebo@mask"] == across[UNMANAGED, "alone"] == across[UNMANAGED, "alone"] == {False}
    assert across["split-4", "alone"] == across["split-4", "unmanaged"] == across["lead-6", "alone"] == {True}


def test_ways_of_the_lead_and_types():
    table = effects()
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(EFFECTS)
    ways = table.groupby("partition")["lead_ways"].first()
    assert ways["split-8"] == 8
    assert ways["lead-2"] == 2
    assert pd.isna(ways["cap-2"])
    assert pd.isna(ways[UNMANAGED])


def test_verdicts_under_partitions_are_adjusted_among_themselves():
    table = effects(noise=0.02)
    for partitioned in (False, True):
        family = table[
            (table["role"] == "lead")
            & (table["baseline"] == "alone")
            & ((table["partition"] != UNMANAGED) == partitioned)
        ]
        smallest = family["p_value"].idxmin()
        assert family.loc[smallest, "p_holm"] == pytest.approx(min(1, len(family) * family.loc[smallest, "p_value"]))


def test_a_cohort_of_partitions_alone_measures_its_mix_without_them_too():
    one, *tried = atoms(sensitivity=())
    apart = made([one], tried)
    table = effects(apart)
    alone = table[(table["partition"] == UNMANAGED) & (table["baseline"] == "alone")].iloc[0]
    assert (alone["launches"], alone["rounds"]) == (8, 16)
    under = table[(table["partition"] == "split-4") & (table["baseline"] == "unmanaged")].iloc[0]
    assert (under["launches"], under["rounds"]) == (4, 8)


def test_a_sweep_that_is_no_longer_wanted_is_left_out():
    kept = ONE.model_copy(update={"mixes": ONE.mixes[:1]})
    assert set(effects(kept)["partition"]) == {UNMANAGED}


def test_a_wanted_precision_is_that_of_every_partition():
    found = widths(ONE, windows(ONE, 0.01))
    assert {place for place, _ in found.items()} == {
        ("dlrm+stream", UNMANAGED), ("dlrm+stream", "split-2"), ("dlrm+stream", "split-4"), ("dlrm+stream", "split-8"),
        ("dlrm+stream", "cap-2"), ("dlrm", "lead-2"), ("dlrm", "lead-6"),
    }  # fmt: skip
    paths = tuple(launch.path for launch in ONE.launches)
    looked = ONE.model_copy(update={"looks": (paths[:2], paths[2:])})
    (one,) = look(looked, windows(ONE, 0.01), 0.5, [])
    assert one.launches == 2


def test_a_pilot_tells_how_the_mix_varies_without_partitions():
    found = spreads(ONE, windows(ONE, 0.01))
    assert set(found) == {ONE.mixes[0].identity}
    assert found[ONE.mixes[0].identity].log == pytest.approx(0.32, abs=0.03)
    assert window_noise(windows(ONE, 0.01)) == pytest.approx(0.014, abs=0.012)
