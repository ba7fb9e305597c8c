"""The caches of a study over classes of nodes: each class is described by its own, wherever the report needs one."""

import math

import pandas as pd
import pytest

from castmates import project
from castmates.analysis.comparison.launches import gifts
from castmates.analysis.effects.effects import estimate_controls, estimate_effects
from castmates.analysis.partitions.held import NOT_READ, UNCERTAIN, states
from castmates.analysis.partitions.mitigations import estimate_mitigations
from castmates.analysis.partitions.recommendation import advice, pareto_table
from castmates.analysis.partitions.sensitivity import knees, sensitivity_table
from castmates.report.answer.answer import answer
from castmates.report.figures import mitigations, partitions, sensitivity
from castmates.report.figures.index import figures_of
from castmates.report.figures.timeline import cache_bytes
from castmates.report.results import Results
from castmates.report.text import machine
from castmates.report.text.recommendation import context, sentence
from castmates.results.columns.study import CARRYOVER, LAUNCHES, frame
from castmates.study.class_names import without_class
from castmates.study.node_classes import cache_of, parts_of
from castmates.terminal.preview.screen import masks
from tests.unit.partition_maker import loss
from tests.unit.snapshots import assert_as_before
from tests.unit.test_figure_partitions import texts
from tests.unit.test_outlook import printed
from tests.unit.windows_maker import written

STUDY = """
name: classes
platform: modelled
machines:
  small: {model: {ways: 8, way_size: 1 MiB}}
  large: {model: {ways: 12, way_size: 2 MiB, io_ways: "0xc00"}}
budget: {launches: 3}
controls: null
cache: {sweeps: [{split: all}, {lead_ways: [2, 6]}]}
mixes: [{lead: dlrm, antagonists: [flood]}]
mitigations: [{lead: dlrm, antagonists: [flood], ways: [4]}]
workloads: {dlrm: {unit: step, model: {compute: 0.004}}, flood: {unit: step, model: {compute: 0.004}}}
"""


def rate(_launch, _number, scene, member):
    return 100 * math.exp(-loss(without_class(scene), without_class(member)))


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The study, and what a sweep of it leaves."""
    file = tmp_path_factory.mktemp("classes") / "classes.yaml"
    file.write_text(STUDY)
    loaded = project.load(file)
    plan = loaded.plan()
    windows = written(plan, rate, 2)
    tables: dict[str, list] = {name: [] for name in ("effects", "controls", "curves", "knees", "mitigations")}
    for part in parts_of(plan):
        tables["effects"].append(estimate_effects(part, windows, 0.02))
        tables["controls"].append(estimate_controls(part, windows, 0.02))
        tables["curves"].append(sensitivity_table(part, tables["effects"][-1]))
        tables["knees"].append(knees(tables["curves"][-1], part.cache.ways))
        tables["mitigations"].append(estimate_mitigations(part, windows, 0.02))
    return loaded, Results(
        name="classes", plan=plan, windows=windows, launches=frame([], LAUNCHES), carryover=frame([], CARRYOVER),
        effects=joined(tables["effects"]), controls=joined(tables["controls"]),
        sensitivity=joined(tables["curves"]), knees=joined(tables["knees"]),
        mitigations=joined(tables["mitigations"]),
    )  # fmt: skip


def joined(parts):
    return pd.concat(parts, ignore_index=True)


def of_part(table, part):
    return table[table["machine"] == part.machine]


def test_each_class_has_its_own_cache_and_a_study_without_classes_one(swept):
    plan = swept[1].plan
    for name, (ways, way_bytes) in {"small": (8, 2**20), "large": (12, 2**21)}.items():
        part = next(part for part in parts_of(plan) if part.machine == name)
        assert cache_of(plan, name) == part.cache
        assert (part.cache.ways, part.cache.way_bytes) == (ways, way_bytes)
    alone = plan.model_copy(update={"machines": (), "cache": plan.machines[0].cache})
    assert cache_of(alone, "") == alone.cache


def test_occupancy_has_its_figure(swept):
    _, results = swept
    assert "timeline" in figures_of(results.plan, results.folder)
    blind = tuple(one.model_copy(update={"cache": one.cache.model_copy(update={"events": ()})}) for one in
                  results.plan.machines)  # fmt: skip
    assert "timeline" not in figures_of(results.plan.model_copy(update={"machines": blind}), results.folder)
    sizes = {each.machine: cache_bytes(results, each.id) for each in results.plan.cohorts}
    assert sizes == {"small": 8 * 2**20, "large": 24 * 2**20}


def test_the_report_counts_ways_out_of_those_of_the_class(swept):
    plan, found = swept[1].plan, swept[1]
    parts = parts_of(plan)
    pareto = joined([pareto_table(part, found.windows, of_part(found.effects, part)) for part in parts])
    gains = found.effects["verdict"].mask(found.effects["baseline"] == "unmanaged", "gain")
    advised = advice(plan, pareto, found.knees, found.effects.assign(verdict=gains), 20.0)
    assert dict(zip(advised["lead"], advised["cache_ways"], strict=True)) == {"dlrm~small": 8, "dlrm~large": 12}
    panels = sensitivity._panels(found, found.sensitivity.to_dict("records"), [])
    assert {(panel.ways, panel.way_bytes) for panel in panels} == {(8, 2**20), (12, 2**21)}
    tried = {panel.title.partition(" ")[0]: panel.cache.ways for panel in mitigations._panels(found)}
    assert tried == {"dlrm~small": 8, "dlrm~large": 12}
    of_class = {part.machine: set(states(part).values()) for part in parts}
    assert of_class == {"small": {NOT_READ}, "large": {NOT_READ, UNCERTAIN}}
    masks_of = {str(gift) for part in parts for (_, partition), gift in gifts(part).items() if partition == "split-4"}
    labels = [" ".join(text.split()) for draw in (sensitivity.draw, partitions.draw) for text in texts(draw(found)[0])]
    words = {
        "first screen": [f"{curve.place[0]} {curve.with_most}" for curve in answer(found).curves],
        "advice": [sentence(row, "") for row in advised.to_dict("records")],
        "alone": [f"{row['lead']}: {row['measured']}" for row in context(found)["knees"] if not row["antagonists"]],
        "figures": dict.fromkeys(label for label in labels if "MiB" in label),
        "health": machine.sentences(found),
        "comparison": sorted(masks_of),
    }
    assert_as_before("class-caches", words)


def test_the_plan_shows_schemata_and_isolation_by_class(swept):
    loaded, results = swept
    said = printed(*masks(loaded, results.plan))
    assert said.count("Schemata of the scenes of cohort ") == len(results.plan.cohorts)
    assert_as_before("class-caches-plan", {"masks": [line.rstrip() for line in said.splitlines()]})
