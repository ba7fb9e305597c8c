"""`castmates plan --predict`: what was not measured, how far off predictions are, and refusals in one sentence."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.simulated_grids import Grid, measured
from castmates.analysis.prediction.predicted import combined_loss
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.results.columns.study import EFFECTS
from castmates.results.folder import StudyFolder
from castmates.results.tables import write_table
from castmates.study import catalogue
from castmates.study.model import Catalogue, Study
from castmates.study.placement_keys import design
from castmates.study.plan_text import plan_text
from castmates.study.reading import read_keys
from castmates.study.spec import Plan, Prediction
from castmates.terminal.preview.outline import prediction_words
from tests.unit.snapshots import assert_as_before, refusal

NAMES = ["stream", "chase", "gather", "tree", "spmv", "stencil"]
STUDY = f"name: some\nplatform: modelled\npredict: {{leads: [{', '.join(NAMES)}], measure: 40%}}\n"


class Known(Grid):
    """A grid whose losses are a sensitivity times a pressure."""

    def truth(self, mix):
        numbers = [NAMES.index(name) for name in mix]
        return tuple(
            combined_loss([0.1 * one * 0.1 * (6 - other) for other in numbers[:place] + numbers[place + 1 :]])
            for place, one in enumerate(numbers)
        )


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of which 40 % of the pairs are measured, as its tables and its plan have it."""
    monkeypatch.chdir(tmp_path)
    models = "".join(f"  {name}: {{model: {{compute: 0.01}}}}\n" for name in NAMES)
    file = Path("some.yaml")
    file.write_text(f"{STUDY}controls: null\ncatalogue: catalogue\nworkloads:\n{models}")
    Path("catalogue").mkdir()
    return file


def analysed(file, pairs=None, check=()):
    keys = read_keys(Study, file.read_text(), str(file)).predict
    drawn = design(keys, 1)
    grid = Prediction(leads=tuple(keys.leads), antagonists=tuple(keys.columns), pairs=len(drawn.pairs), check=check)
    plan = Plan(study="some", titles={}, mixes=(), controls=(), launches=(), prediction=grid)
    folder = StudyFolder.of("some")
    folder.tables.mkdir(parents=True, exist_ok=True)
    folder.plan_file.write_text(plan_text(plan))
    table = measured(Known({}, NAMES), pairs or drawn.fitted, np.random.default_rng(1)).assign(platform="modelled")
    usual = {"str": "", "bool": False, "int64": 0}
    for name, kind in EFFECTS.items():
        own = table[name] if name in table else pd.Series([pd.NA] * len(table), dtype="object")
        table[name] = own.fillna(usual.get(kind, np.nan)).astype(kind)
    write_table(table[list(EFFECTS)], folder.tables / "effects")


def ask(*arguments):
    return CliRunner().invoke(app, ["plan", "--predict", *map(str, arguments)])


def test_what_was_not_measured_is_listed_and_named_predicted(study):
    analysed(study)
    shown = json.loads(ask(study, "--format", "json").output)
    assert len(shown["losses"]) == 8  # of 36, 14 were measured as leads and 14 as antagonists
    assert {row["source"] for row in shown["losses"]} == {"predicted"}
    assert all(row["loss_low"] < row["loss_pct"] < row["loss_high"] for row in shown["losses"])
    assert len(shown["worth_measuring"]) == 5
    lines = ask(study).output.splitlines()
    assert sum("predicted (modelled)" in line for line in lines) == 8
    every = ask(study, "--all").output
    assert sum(" modelled" in line for line in every.splitlines()) == 28
    near = json.loads(ask(study, "--format", "json", "--limit", "3%").output)["worth_measuring"]
    assert all(line.endswith("which may lose more or less than 3.0 %") for line in near)


def test_one_combination_is_answered(study):
    analysed(study)
    (row,) = json.loads(ask(study, "--lead", "stencil", "--beside", "tree,stream", "--format", "json").output)["losses"]
    assert (row["lead"], row["antagonists"], row["source"]) == ("stencil", "stream+tree", "predicted")
    assert row["loss_low"] is None  # nothing shows how far off losses beside two are


def test_a_pair_that_only_checks_the_fit_is_shown_as_measured(study):
    fresh = NAMES[0], NAMES[0]
    fitted = design(read_keys(Study, study.read_text(), str(study)).predict, 1).fitted
    assert fresh not in fitted
    analysed(study, [*fitted, fresh], check=(fresh,))
    (row,) = json.loads(ask(study, "--lead", fresh[0], "--beside", fresh[1], "--format", "json").output)["losses"]
    assert (row["source"], row["launches"]) == ("measured", 5)


def test_what_cannot_be_answered_is_one_sentence(study):
    analysed(study)
    said = {}
    for words in (
        "--beside stream",
        "--lead nobody --beside ,",
        "--lead nobody",
        "--lead nobody --beside tree",
        "--limit x",
    ):
        said[words] = str(ask(study, *words.split()).exception)
    analysed(study, [("stream", "chase"), ("tree", "gather")])
    said["too few pairs"] = str(ask(study).exception)
    for keys in GRIDS:
        said[keys] = refusal(read_keys, Study, f"name: x\npredict: {{{keys}}}\n", "study.yaml")
    assert_as_before("predict-mistakes", said)


GRIDS = (
    "leads: [a, b, c], measure: 10%", "leads: [a, b], measure: 150%", "leads: [a, a]", "leads: [a]",
    "leads: [a, b], bubbles: [b]", "leads: [a, b], antagonists: [c, d], bubbles: [b]",
    "leads: [a, b], bubbles: [c], reporters: [c], measure: 100%", "leads: [a, b, c], check: -1",
    "leads: [a, b, c], mesure: 40%",
)  # fmt: skip


def test_a_name_in_the_grid_that_no_catalogue_has_is_refused():
    study = read_keys(Study, "name: x\npredict: {leads: [stream, chaze], measure: 100%}\n", "study.yaml")
    text = "workloads: {stream: {command: s}, chase: {command: c}}"
    workloads = catalogue.gather_catalogue([("w.yaml", read_keys(Catalogue, text, "w.yaml"))], study, "study.yaml", ())
    with pytest.raises(
        CastmatesError, match=r"'chaze' in 'predict.leads' is not in the catalogue, did you mean 'chase'"
    ):
        catalogue.check_names(study, workloads, "study.yaml")


@pytest.mark.parametrize("keys", ["leads: [serve, chase]", "leads: [chase, tree], reporters: [serve]"])
def test_what_a_service_loses_is_not_predicted(keys):
    study = read_keys(Study, f"name: x\ncontrols: null\npredict: {{{keys}, measure: 100%}}\n", "study.yaml")
    text = (
        "workloads: {serve: {command: s, requests: true, progress: heartbeat}, chase: {command: c}, tree: {command: t}}"
    )
    workloads = catalogue.gather_catalogue([("w.yaml", read_keys(Catalogue, text, "w.yaml"))], study, "study.yaml", ())
    with pytest.raises(CastmatesError, match=r"'serve' in 'predict\.\w+' is an open-loop service"):
        catalogue.check_names(study, workloads, "study.yaml")


def test_a_plan_shows_what_is_too_little_and_what_is_left_for_no_check():
    said = {}
    for pairs, check, to_check in ((3, 0, 0), (6, 2, 2), (6, 2, 9), (6, 0, 1)):
        keys = {"leads": ("a", "b", "c"), "antagonists": ("a", "b", "c"), "pairs": pairs, "to_check": to_check}
        grid = Prediction(**keys, check=(("a", "b"),) * check)
        plan = Plan(study="", titles={}, mixes=(), controls=(), launches=(), prediction=grid)
        said[f"{pairs} pairs, {check} of {to_check} to check"] = prediction_words(plan)
    assert_as_before("predict-plan", said)
