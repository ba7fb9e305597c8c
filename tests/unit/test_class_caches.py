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
from castmates.report.figures.timeline_rows import cache_bytes
from castmates.report.results import Results
from castmates.report.text import machine
from castmates.report.text.recommendation import context, sentence
from castmates.results.columns.study import CARRYOVER, LAUNCHES, frame
from castmates.study.class_names import without_class
from castmates.study.node_classes import cache_of, parts_of
from castmates.terminal.preview.screen import NOTHING_NOW, masks
from tests.unit.partition_maker import loss
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
    windows = written(
        plan, lambda _b, _n, scene, member: 100 * math.exp(-loss(*map(without_class, (scene, member)))), 2
    )
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


def test_the_first_screen_counts_ways_out_of_those_of_the_class(swept):
    found = {curve.place[0].partition("+")[0]: curve.with_most for curve in answer(swept[1]).curves}
    assert found["dlrm~small"].startswith("with 7 of the 8 cache ways, ")
    assert found["dlrm~large"].startswith("with 11 of the 12 cache ways, ")


def test_advice_counts_ways_out_of_those_of_the_class(swept):
    plan, found = swept[1].plan, swept[1]
    pareto = joined([pareto_table(part, found.windows, of_part(found.effects, part)) for part in parts_of(plan)])
    effects = found.effects.assign(
        verdict=found.effects["verdict"].mask(found.effects["baseline"] == "unmanaged", "gain")
    )
    advised = advice(plan, pareto, found.knees, effects, 20.0)
    assert dict(zip(advised["lead"], advised["cache_ways"], strict=True)) == {"dlrm~small": 8, "dlrm~large": 12}
    assert "of 12 ways (split-" in "".join(sentence(row, "") for row in advised.to_dict("records"))


def test_a_lead_alone_was_also_measured_with_all_ways_of_its_class(swept):
    found = {row["lead"]: row["measured"] for row in context(swept[1])["knees"] if not row["antagonists"]}
    assert {lead: words.partition(",")[2] for lead, words in found.items()} == {
        "dlrm~small": " and all 8 (the baseline itself)",
        "dlrm~large": " and all 12 (the baseline itself)",
    }


def test_a_panel_of_the_sensitivity_has_the_ways_and_the_size_of_its_class(swept):
    results = swept[1]
    found = sensitivity._panels(results, results.sensitivity.to_dict("records"), [])
    assert {(panel.ways, panel.way_bytes) for panel in found} == {(8, 2**20), (12, 2**21)}
    assert any("MiB in one cache" in text for text in texts(sensitivity.draw(results)[0]))


def test_losses_under_partitions_name_the_size_of_a_way_in_each_class(swept):
    (label,) = [text for text in texts(partitions.draw(swept[1])[0]) if text.startswith("ways of the lead")]
    assert label == "ways of the lead (1 MiB each on small, 2 MiB each on large)"


def test_only_masks_of_the_class_with_ways_of_io_may_be_joined(swept):
    of_class = {part.machine: set(states(part).values()) for part in parts_of(swept[1].plan)}
    assert of_class == {"small": {NOT_READ}, "large": {NOT_READ, UNCERTAIN}}


def test_the_health_panel_names_the_ways_of_io(swept):
    assert "some but not all of the ways 0xc00 that I/O fills too" in machine.sentences(swept[1])


def test_what_is_tried_against_a_loss_has_the_cache_of_its_class(swept):
    assert {panel.title.partition(" ")[0]: panel.cache.ways for panel in mitigations._panels(swept[1])} == {
        "dlrm~small": 8,
        "dlrm~large": 12,
    }


def test_the_plan_shows_schemata_and_isolation_by_class(swept):
    loaded, results = swept
    said = printed(*masks(loaded, results.plan))
    assert [f"({ways} ways, {size})" in said for ways, size in ((8, "8 MiB"), (12, "24 MiB"))] == [True, True]
    assert said.count("Schemata of the scenes of cohort ") == len(results.plan.cohorts)
    assert "On small: To choose one of 7 isolating partitions takes 5 launches" in said
    assert "On large: To choose one of 10 isolating partitions takes 5 launches" in said
    assert said.count("Left out is split-11") == 1, "of large alone"
    assert NOTHING_NOW not in said


def test_a_comparison_has_the_size_of_masks_by_class(swept):
    for part, size in zip(parts_of(swept[1].plan), ("4 MiB", "8 MiB"), strict=True):
        (words,) = {str(gift) for (_, partition), gift in gifts(part).items() if partition == "split-4"}
        assert f"(4 ways, {size})" in words
