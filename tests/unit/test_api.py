"""`castmates.load`: the tables of a study as attributes, read when they are asked for, each column explained."""

import re
import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

import castmates
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.report.results import Results, read_results
from castmates.results.columns.contract import USUAL
from castmates.results.columns.launch import LAUNCH_TABLES
from castmates.results.columns.registry import TABLES


@pytest.fixture
def folder(drawn_study, tmp_path):
    return shutil.copytree(drawn_study, tmp_path / "study")


def test_tables_are_read_when_they_are_asked_for_and_once(folder):
    results = castmates.load(folder)
    table = results.effects
    assert isinstance(table, pd.DataFrame)
    assert "loss_pct" in table
    (folder / "tables/effects.parquet").unlink()
    (folder / "tables/controls.parquet").unlink()
    assert results.effects is table
    with pytest.raises(CastmatesError, match=r"controls.parquet: the table is not there; run `castmates sweep"):
        _ = results.controls
    with pytest.raises(CastmatesError, match=r"\.parquet: the table is not there"):
        read_results(folder)  # which reads all of it at once


def test_a_table_that_the_study_does_not_ask_for_is_a_sentence_with_the_key_that_does(folder):
    with pytest.raises(CastmatesError, match=r"study has no table 'mitigations', .*: `mitigations` would\.$"):
        _ = castmates.load(folder).mitigations
    assert read_results(folder).mitigations.empty


def test_plan_machine_and_figures_come_with_it(folder):
    results = castmates.load(folder)
    assert repr(results) == f"<results of study: 10 launches in {folder}>"
    assert results.plan.study == results.name == "study"
    assert results.machine.cpu_model == "Synthetic CPU @ 2.0 GHz"
    assert not [name for name in results.figures if name.endswith(".page")], "the page has a drawing of its own"
    figure = results.figures["heatmap"]
    assert CliRunner().invoke(app, ["show", str(folder), "--format", "pdf"]).exit_code == 0
    assert figure.pdf.read_bytes().startswith(b"%PDF")
    assert "<svg" in figure._repr_svg_()
    assert figure.caption
    assert figure.alternative
    assert len(figure.data)
    remedy = f"the figure's file is not there; run `castmates show {folder} --format png`"
    with pytest.raises(CastmatesError, match=re.escape(f"heatmap.png: {remedy}")):
        _ = figure.png


def test_tables_of_launches_are_those_of_all_launches(folder):
    results = castmates.load(folder)
    for name in LAUNCH_TABLES:
        table = getattr(results, name)
        assert list(LAUNCH_TABLES[name])[:3] == list(table)[:3]


def test_a_study_file_of_this_name_elsewhere_is_another_study(folder, monkeypatch, tmp_path):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here/study.yaml").write_text("name: study\nmargin: 50%\n")
    assert castmates.load(folder).study is None
    (tmp_path / "here/results").mkdir()
    folder.rename(tmp_path / "here/results/study")
    assert castmates.load("results/study").margin == 0.5
    assert castmates.load("study.yaml").margin == 0.5


@pytest.mark.parametrize(("named", "said"), [("nowhere", "neither a study file nor"), (".", "there is no plan.json")])
def test_what_has_no_results_is_a_sentence(named, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CastmatesError, match=said):
        castmates.load(named)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_column_is_explained_and_declared_once(table):
    assert not [column.name for column in table.columns if not column.meaning]
    assert len(table) == len(table.columns)


def test_columns_are_explained():
    shown = Results.columns("effects").set_index("column")["meaning"]
    assert shown["slowdown"] == "rate(baseline) / rate(scene), geometric mean over what `over` names"
    assert shown["loss_low"] == "lower end of the interval of loss_pct"
    assert shown["platform"] == USUAL["platform"].meaning
    with pytest.raises(CastmatesError, match="there is no table 'effect'; there are: "):
        Results.columns("effect")


def test_other_names_are_errors_as_usual():
    with pytest.raises(AttributeError, match="module 'castmates' has no attribute 'lod'"):
        _ = castmates.lod
    assert dir(castmates) == ["CastmatesError", "Results", "__version__", "load"]
