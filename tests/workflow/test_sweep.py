"""The whole workflow, from a YAML file to a report, with native programs."""

import html
import json
import re
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from castmates.results.columns import study as tables
from tests.workflow.sweeps import TABLES

pytestmark = pytest.mark.core


def test_the_sweep_leaves_what_the_contract_promises(finished):
    results = finished.results
    for table, columns in {"effects": tables.EFFECTS, "controls": tables.CONTROLS, "launches": tables.LAUNCHES}.items():
        assert list(pd.read_csv(results / f"tables/{table}.csv").columns) == list(columns)
        assert list(pd.read_parquet(results / f"tables/{table}.parquet").columns) == list(columns)
    for figure in ("heatmap", "windows", "control"):
        for suffix in ("svg", "page.svg", "csv"):
            assert (results / f"figures/{figure}.{suffix}").stat().st_size > 0
    assert (results / "mixes/chase+stream.json").is_file()
    assert (results / "machine.json").is_file()
    effects = finished.effects()
    assert set(effects["baseline"]) == {"alone", "placebo"}
    assert (effects["platform"] == "measured").all()
    assert (effects["launches"] == 2).all()


def test_the_report_is_one_file_that_says_what_was_measured(finished):
    page = (finished.results / "report/index.html").read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']https?://[^"']*\.(js|css|png|svg)""", page)
    result = re.search(r'<section class="result".*?</section>', page, re.DOTALL)[0]
    assert "the interval covers these launches only" in result  # two launches: no interval between launches
    assert "<td>stream</td>" in result


def test_a_finished_sweep_has_nothing_to_do(finished):
    finished.assert_finished()


def test_snakemakes_own_report_works(finished):
    done = finished.run("--report", "report.zip")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(finished.folder / "report.zip") as archive:
        words = html.unescape(archive.read("report/report.html").decode())
        drawn = [Path(name).stem for name in archive.namelist() if name.endswith(".svg")]
    figures = (finished.results / "figures").glob("*.svg")
    captions = {
        file.stem: file.with_suffix(".txt").read_text().strip() for file in figures if not file.match("*.page.svg")
    }
    assert sorted(drawn) == sorted(captions)
    assert all(caption in words or json.dumps(caption)[1:-1] in words for caption in captions.values())


def test_moving_touching_and_restyling_measure_nothing_again(project):
    study = project.folder / "config/config.yaml"
    study.write_text("# a comment\n" + study.read_text())
    for file in [project.folder / "Snakefile", *project.folder.glob("scripts/*.py"), *project.folder.glob("envs/*")]:
        file.touch()
    done = project.run("--dry-run")
    assert done.returncode == 0
    assert "measure_launch" not in done.stdout, done.stdout  # the page shows the study's text, and is written anew


def test_neither_a_moved_cache_nor_another_text_of_the_rule_measures_again(project, tmp_path):
    rule = project.folder / "workflow/rules/measure.smk"
    rule.write_text(rule.read_text().replace("--plan {input.plan:q}", "--plan  {input.plan:q}"))
    project.cache = tmp_path / "elsewhere"
    project.assert_finished()


def test_results_without_snakemakes_own_records_are_kept(project):
    shutil.rmtree(project.folder / ".snakemake")
    before = project.launches()
    project.sweep(TABLES)
    assert project.launches() == before
