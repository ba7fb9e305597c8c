"""`castmates show --limit` and `sweep --confirm`: what cannot be asked is one sentence."""

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.pipeline.analyse import Terms, write_tables
from castmates.results.folder import StudyFolder
from tests.unit import partition_maker as maker
from tests.unit import study_folder

STUDY = "name: golden\nplatform: modelled\nmixes: [{lead: chase, antagonists: [stream]}]\n"
HOME = Path(__file__).parents[2]
RESULTS = Path("results/golden")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config/studies").mkdir(parents=True)
    for folder in ("config/workloads", "envs"):
        (tmp_path / folder).symlink_to(HOME / folder)
    (tmp_path / "config/studies/mine.yaml").write_text(STUDY)
    return tmp_path


def analysed(plan):
    study_folder.write(RESULTS, plan, maker.windows(plan))
    write_tables(plan, StudyFolder(RESULTS), Terms(0.02), RESULTS / "tables")


SHOW, CONFIRM = ("show", "--partitions"), ("sweep", "--confirm")


def ask(command, *arguments):
    return CliRunner().invoke(app, [*command, str(RESULTS), *arguments])


def refused(*arguments):
    done = ask(*arguments)
    assert done.exit_code == 1
    assert isinstance(done.exception, CastmatesError), done.exception
    assert "\n" not in str(done.exception)
    return str(done.exception)


def test_a_limit_that_is_none_is_refused_with_what_is_expected(project):
    analysed(maker.made(maker.atoms(ways=(2, 4), caps=(), sensitivity=()), launches=3))
    for command, limit in ((CONFIRM, "x"), *((SHOW, limit) for limit in ("0", "-3", "200", "nan", "3 % or so"))):
        said = f"--limit is '{limit}', expected a share above 0% and below 100%, such as 3%."
        assert refused(command, "--limit", limit) == said
    for limit in ("20%", "20 %"):
        done = ask(SHOW, "--limit", limit)
        assert done.exit_code == 0, done.exception
        assert "keep the loss within 20 %" in done.output
        assert "run `castmates sweep config/studies/mine.yaml --confirm --limit 20%" in done.output


@pytest.mark.parametrize("command", [SHOW, CONFIRM])
def test_a_study_that_is_not_analysed_names_the_command(project, command):
    plan = maker.made(maker.atoms(ways=(2,)), launches=3)
    study_folder.write(RESULTS, plan, maker.windows(plan))
    assert refused(command, "--limit", "3%") == (
        "results/golden/tables/pareto.parquet: the table is not there; run `castmates sweep config/studies/mine.yaml`."
    )


@pytest.mark.parametrize("command", [SHOW, CONFIRM])
def test_a_study_without_a_sweep_is_told_how_to_get_one(project, command):
    analysed(maker.made([maker.mix(maker.LEAD, maker.STREAM)], launches=3))
    said = refused(command, "--limit", "3%")
    assert said.startswith("config/studies/mine.yaml: no partition was measured, so none can be recommended; add")
    assert refused(command) == said


def test_scripts_get_the_rows_of_the_table(project):
    analysed(maker.made(maker.atoms(ways=(2, 4), caps=(), sensitivity=()), launches=3))
    data = json.loads(ask(SHOW, "--limit", "20%", "--format", "json").output)
    (row,) = data["recommended"]
    assert (row["verdict"], row["limit_pct"], row["lead_ways"]) == ("met", 20, 4)
    (price,) = row["paid"]
    assert (price["who"], price["loss"][0]) == ("stream", pytest.approx(100 * (1 - math.exp(-0.25))))
    (row,) = json.loads(ask(SHOW, "--limit", "90%", "--format", "json").output)["recommended"]
    assert (row["verdict"], row["partition"], row["paid"]) == ("not needed", "", [])
