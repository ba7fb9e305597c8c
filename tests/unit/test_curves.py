"""Curves of adaptive studies: what lies on one, the table of its cells, and how figures show those not measured."""

from dataclasses import replace

import numpy as np
import pytest

from castmates.analysis.partitions.sensitivity import curves_table
from castmates.report.figures import heatmap_partitions, partitions, sensitivity
from castmates.report.figures.style import NOT_MEASURED_HATCH
from castmates.study.curves import ALL_OF_IT, QUOTA, WAYS, curves
from castmates.study.spec import Plan
from tests.unit.modelled.makers import project_of
from tests.unit.partition_maker import atoms
from tests.unit.test_figure_partitions import texts
from tests.unit.test_figure_shares import results

STUDY = """
name: example
platform: modelled
mixes: [{lead: ranking, antagonists: [flood], share: {quota: [20%, 40%, 60%, 80%]}}]
controls: null
model: {ways: 12}
cache: {sweeps: [{split: [2, 4, 6]}, {antagonist_cap: [1, 2], lead: 6}, {masks: {lead: "0xf00", antagonists: "0xff"}}]}
"""
GRID = (2, 3, 4, 5, 6, 8)


@pytest.fixture
def adaptive():
    """Results of an adaptive study of two curves, in which splits 3 and 5 were never measured."""
    found = results(atoms(ways=GRID, caps=(), sensitivity=(2, 4, 5, 6)), platform="modelled")
    mixes = Plan.model_validate(found.plan).mixes
    gone = {mix.identity for mix in mixes if mix.partitions and mix.partitions[0].name in ("split-3", "split-5")}
    plan = Plan.model_validate(found.plan).model_copy(update={"later": tuple(gone)})
    there = found.effects[~found.effects["partition"].isin(["split-3", "split-5"])]
    points = found.sensitivity[~found.sensitivity["partition"].isin(["split-3", "split-5"])]
    return replace(found, effects=there, sensitivity=points, plan=plan, curves=curves_table(plan, there)), found


def test_partitions_that_differ_in_one_amount_are_a_curve(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = {curve.family: curve for curve in curves(project_of(tmp_path, STUDY).plan().mixes)}
    assert set(found) == {"split", "quota"}
    assert [cell.amount for cell in found["split"].cells] == [2, 4, 6]
    assert found["split"].unit == WAYS
    # Where the lead is slowest first: beside all of the antagonists' CPU time, which is the mix without a quota.
    assert [cell.amount for cell in found["quota"].cells] == [ALL_OF_IT, 80, 60, 40, 20]
    assert found["quota"].cells[0].partition == "unmanaged"
    assert found["quota"].unit == QUOTA


def test_cells_between_measured_ones_are_interpolated_with_the_bound_of_these(adaptive):
    one, whole = adaptive
    table = one.curves[one.curves["curve"] == "split"].set_index("partition")
    assert dict(table["source"]) == {f"split-{ways}": "interpolated" if ways in (3, 5) else "measured" for ways in GRID}
    bound = table.loc["split-3", ["loss_low", "loss_high"]].tolist()
    assert bound == pytest.approx([table.loc["split-4", "loss_low"], table.loc["split-2", "loss_high"]])
    true = whole.effects[(whole.effects["baseline"] == "alone") & (whole.effects["role"] == "lead")]
    true = true.set_index("partition").loc["split-3", "loss_pct"]
    assert table.loc["split-3", "loss_low"] <= true <= table.loc["split-3", "loss_high"]
    assert table.loc["split-3", "launches"] == 0
    ends = one.effects[~one.effects["partition"].isin(["split-8"])]
    beyond = curves_table(one.plan, ends).set_index("partition").loc["split-8"]
    assert (beyond["source"], np.isnan(beyond["loss_pct"])) == ("unknown", True)
    assert curves_table(one.plan.model_copy(update={"later": ()}), one.effects).empty


@pytest.mark.parametrize("module", [sensitivity, partitions, heatmap_partitions])
def test_figures_show_which_cells_were_not_measured(adaptive, module):
    one, whole = adaptive
    figure, source = module.draw(one)
    assert source.columns[-1] == "source"
    assert set(source["source"]) == {"measured", "interpolated"}
    assert set(source.loc[source["source"] == "interpolated", "partition"]) == {"split-3", "split-5"}
    assert "interpolated" in " ".join(texts(figure)).replace("\n", " ")
    assert "interpolated, not measured" in module.caption(one)
    assert "interpolated" not in module.caption(whole)
    if module is not sensitivity:  # which reads out the ends of curves, and these are measured
        assert module.alternative(one).endswith(" more cells are interpolated, not measured.")
    hatches = [patch.get_hatch() for axes in figure.axes for patch in axes.patches]
    assert hatches.count(NOT_MEASURED_HATCH) == (2 if module is heatmap_partitions else 0)
    _, plain = module.draw(whole)
    assert "source" not in plain
