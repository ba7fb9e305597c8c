"""What lies below the losses of two studies: Welch's interval from two intervals, common groups, and what is shown."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from castmates.analysis.comparison.details import Changes, Kind, compare_changes, effects_together, operation_changes
from castmates.analysis.operations.effects import OTHERS
from castmates.analysis.statistics.intervals import holm
from castmates.cli.main import app
from castmates.report.comparison.compare import compare_studies
from castmates.report.comparison.details import compare_details
from castmates.report.comparison.several_words import as_data
from castmates.results.columns.study import LATENCY, RESOURCES, frame
from castmates.results.find import Measured
from castmates.results.folder import StudyFolder
from castmates.results.tables import write_table
from tests.unit import study_folder
from tests.unit.operations_maker import ALONE, launches
from tests.unit.phases import test_phase_figures as made_phases
from tests.unit.printed_intervals import assert_told
from tests.unit.snapshots import assert_as_before
from tests.unit.windows_maker import cohort, mix, plan, written

PLAN = plan([cohort("c", mix("lead@0", "other@1"))], launches=4)
KIND = Kind("counters")


def changes(values, scale="ratio"):
    """A study's changes from values of launches, an item a row: logarithms of ratios, or points."""
    values = np.asarray(values, dtype=float)
    many = values.shape[1]
    half = stats.t.ppf(0.975, many - 1) * stats.sem(values, axis=1)
    ends = {"change": 0.0, "change_low": -half, "change_high": half}
    back = np.exp if scale == "ratio" else np.asarray
    table = pd.DataFrame({name: back(values.mean(axis=1) + end) for name, end in ends.items()})
    about = {"mix": "lead+other", "member": "lead", "role": "lead", "scale": scale, "partition": "unmanaged"}
    table = table.assign(item=[f"i{row}" for row in range(len(values))], platform="measured", launches=many, **about)
    return Changes(PLAN, table[list(Changes.COLUMNS)])


@pytest.mark.parametrize("scale", ["ratio", "points"])
def test_two_intervals_give_welchs(scale):
    rng = np.random.default_rng(1)
    one, other = rng.normal(0.1, 0.02, (4, 3)), rng.normal(0.15, 0.06, (4, 7))
    factor = 1 if scale == "ratio" else 100
    table = compare_changes(changes(factor * one, scale), {"B": changes(factor * other, scale)}, KIND, 0.02)
    for row, (ours, theirs) in enumerate(zip(one, other, strict=True)):
        wanted = stats.ttest_ind(theirs, ours, equal_var=False)
        low, high = wanted.confidence_interval(0.95)
        ends = [theirs.mean() - ours.mean(), low, high]
        found = table.iloc[row][["difference", "difference_low", "difference_high"]].to_list()
        assert found == pytest.approx(np.exp(ends) if scale == "ratio" else 100 * np.array(ends))
        assert table.loc[row, "p_value"] == pytest.approx(wanted.pvalue)
    assert set(table["letter"]) == {"B"}
    few = compare_changes(changes(one[:, :2]), {"B": changes(other)}, KIND, 0.02)
    assert set(few["verdict"]) == {"too few launches"}
    assert few["difference_low"].isna().all()


def test_the_intervals_of_details_hold_the_truth():
    rng = np.random.default_rng(20261127)
    shares, own = [], []
    for many, spread in (((3, 8), (0.01, 0.04)), ((5, 5), (0.03, 0.03))):
        one, other = (rng.normal(0.1 * at, s, (4000, n)) for at, (n, s) in enumerate(zip(many, spread, strict=True)))
        table = compare_changes(changes(one), {"B": changes(other)}, KIND, 0.02)
        shares.append(held(table, "difference", math.exp(0.1)))
        own += [held(table, "change_a", 1.0), held(table, "change_b", math.exp(0.1))]
    assert_told("comparison_details", "difference_low", *shares)
    assert_told("comparison_details", "change_a_low", *own)


def held(table, name, truth):
    return float(((table[f"{name}_low"] < truth) & (truth < table[f"{name}_high"])).mean())


def test_verdicts_are_adjusted_over_the_rows_of_a_table_and_steps_apart():
    rng = np.random.default_rng(2)
    one, other = rng.normal(0, 0.02, (2, 12, 5))
    sides = [changes(values) for values in (one, other)]
    for side in sides:
        side.table.loc[0, "item"] = "step"
    table = compare_changes(sides[0], {"B": sides[1]}, Kind("phases", ("step",)), 0.02)
    assert table.loc[1:, "p_holm"].to_numpy() == pytest.approx(holm(table.loc[1:, "p_value"]))
    assert table.loc[0, "p_holm"] == table.loc[0, "p_value"]


def traced(seed, losses, alone=None):
    before = dict(ALONE)
    ALONE.clear()
    ALONE.update(alone or before)
    try:
        return launches(4, losses, np.random.default_rng(seed), between=0.004, times=1)
    finally:
        ALONE.clear()
        ALONE.update(before)


def test_groups_are_made_of_the_same_operations_in_both_studies():
    # In B one lookup takes so much that B by itself would show it alone, and a group `embed*` of the other one only.
    larger = ALONE | {"model/embed_1/Gather:ResourceGather": 1.2}
    losses = {"model/embed_1/Gather:ResourceGather": 1.0}
    together = effects_together({"A": traced(1, {}), "B": traced(2, losses, larger)}, 0.02)
    assert not together.other_graphs
    a, b = (set(together.effects[letter]["group"]) for letter in "AB")
    assert a == b
    sides = {letter: Changes(PLAN, operation_changes(PLAN, table)) for letter, table in together.effects.items()}
    table = compare_changes(sides["A"], {"B": sides["B"]}, Kind("operations", ("step",)), 0.02).set_index("item")
    assert table.loc["model/embed_1/Gather:ResourceGather", "difference"] == pytest.approx(2.0, abs=0.05)
    assert set(table.index[table["verdict"] == "larger in B"]) == {"model/embed_1/Gather:ResourceGather", "step"}
    step = table.loc["step"]
    assert step["p_holm"] == pytest.approx(step["p_value"]), "whole steps are adjusted apart"


def test_other_graphs_are_compared_by_type():
    fused = {name.replace("dense/MatMul:", "fused/MatMul:"): ms for name, ms in ALONE.items()}
    together = effects_together({"A": traced(1, {}), "B": traced(2, {"model/fused/MatMul:MatMul": 0.3}, fused)}, 0.02)
    assert together.other_graphs["lead"] > 0.3
    groups = set(together.effects["A"]["group"])
    assert groups == set(together.effects["B"]["group"])
    assert "MatMul forward" in groups
    assert "ResourceGather forward" in groups
    assert OTHERS in groups
    ratios = together.effects["B"].set_index("group")["ratio"]
    assert ratios["MatMul forward"] == pytest.approx(1.3, abs=0.03)


def speed(launch, number, scene, member):
    return 100 * math.exp(0.003 * launch.number * number - 0.1 * scene.startswith("corun"))


def study(place, quantile, more):
    """A study with tables of quantiles and counters, which are of fewer launches than it has."""
    folder = study_folder.write(place, PLAN, written(PLAN, speed), started=f"2026-01-05T10:00:0{quantile:.0f}+00:00")
    folder.joinpath("tables").mkdir()
    common = {"study": place.name, "mix": "lead+other", "member": "lead@0", "role": "lead", "partition": "unmanaged"}
    common |= {"baseline": "alone", "platform": "measured", "launches": 4, "possibly_biased": False}
    common |= {"steps": 400, "steps_needed": 100, "launches_few": 0}
    ends = {"ratio": quantile, "ratio_low": quantile * 0.99, "ratio_high": quantile / 0.99}
    latency = common | ends | {"kind": "corun", "scene": "corun:lead+other", "quantile": "p99", "what": "step"}
    write_table(frame([latency | {"launches_paired": 4}], LATENCY), folder / "tables" / "latency")
    change = {"change": 0.8 + more, "change_low": 0.79 + more, "change_high": 0.81 + more, "scale": "ratio"}
    counter = common | change | {"metric": "instructions per cycle", "scope": "member", "scene": "corun", "rounds": 12}
    write_table(frame([counter], RESOURCES), folder / "tables" / "resources")
    pd.DataFrame({"launch": range(1, 4)}).to_parquet(folder / "tables" / "launches.parquet")
    return folder


def test_terminal_folder_and_json_have_what_both_studies_left(tmp_path):
    folders = []
    for name, quantile, more in (("one", 1.1, 0.0), ("two", 1.6, 0.0005)):
        folders.append(study(tmp_path / name, quantile, more))
    out = tmp_path / "out"
    command = ["compare", *map(str, folders), "--output", str(out)]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    text = done.output.replace(str(tmp_path), "results")
    assert_as_before("compare-details", {"two studies": [line.rstrip() for line in text.splitlines() if line.strip()]})
    assert {file.stem for file in out.glob("comparison_*.csv")} == {"comparison_counters", "comparison_quantiles"}
    assert "p99 of a step" in (out / "index.html").read_text()
    told = as_data(compare_studies(folders, None))
    assert [row["verdict"] for row in told["quantiles"]] == ["larger in B"]
    assert told["operations"] == []


def with_phases(folder, longer, monkeypatch):
    """A study as a comparison reads it, in which forward takes so many times as long beside others."""
    monkeypatch.setattr(made_phases, "FORWARD", longer)
    made_phases.results(folder, antagonists=("stream",))
    windows = pd.read_parquet(folder / "tables" / "windows.parquet")
    whole = plan([cohort("dlrm-train-0000abcd", mix("dlrm-train@0", "stream@1"))], launches=3)
    ours = whole.cohorts[0]
    lead = ours.lead.model_copy(update={"phases": True})
    ours = ours.model_copy(update={"members": (lead, *ours.members[1:])})
    launches = tuple(launch.model_copy(update={"cohort": ours}) for launch in whole.launches)
    for launch in launches:
        own = windows[(windows["cohort"] == launch.cohort.id) & (windows["launch"] == launch.number)]
        own.to_parquet(folder / "launches" / launch.path / "windows.parquet")
    return Measured(StudyFolder(folder), whole.model_copy(update={"launches": launches}), windows, (), {}, None)


def test_phases_are_read_from_the_launches(tmp_path, monkeypatch):
    studies = {
        letter: with_phases(tmp_path / letter, longer, monkeypatch) for letter, longer in (("A", 1.2), ("B", 1.8))
    }
    found = compare_details(studies, {letter: study.plan for letter, study in studies.items()}, 0.02)
    table = found.tables["phases"].set_index("item")
    proven = set(table.index[table["verdict"] == "larger in B"])
    assert {"forward", "step"} <= proven
    assert "optimizer" not in proven
    share = made_phases.PARTS["forward"] / (sum(made_phases.PARTS.values()) + 0.1)
    assert table.loc["forward", "difference"] == pytest.approx(100 * 0.6 * share, rel=0.05)
