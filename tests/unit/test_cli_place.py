"""`castmates advice --place`: what it advises from a study's tables, what it writes, and mistakes in one sentence."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.effects.pooling import launches_table
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder
from castmates.results.tables import write_table
from castmates.study.model import Study
from castmates.study.reading import read_keys
from tests.unit import partition_maker as maker
from tests.unit import study_folder
from tests.unit.windows_maker import cohort, mix, plan, written

HOME = Path(__file__).parents[2]
RESULTS = Path("results/golden")
STUDY = """
name: golden
platform: modelled
model: {domains: 2, cores: 3}
mixes: [{lead: chase, antagonists: [stream]}]
place: {jobs: {chase: {count: 2, limit: 12%}, stream: 2}}
"""
LOST = {("chase", "chase"): 0.02, ("chase", "stream"): 0.1, ("stream", "chase"): 0.05, ("stream", "stream"): 0.3}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A study of all four pairs, as launches without noise show them; its rates are made up."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    for folder in ("config/workloads", "envs"):
        (tmp_path / folder).symlink_to(HOME / folder)
    (tmp_path / "study.yaml").write_text(STUDY)
    pairs = [mix(f"{lead}@0", f"{other}@1") for lead, other in LOST]

    def rate(launch, _number, scene, member):
        if not scene.startswith("corun:"):
            return 100.0
        lead, other = (name.workload for name in launch.cohort.members)
        beside = other if member.endswith("@0") else lead
        return 100 * (1 - LOST[member.partition("@")[0], beside]) * (1 + 0.001 * launch.number)

    analysed(plan([cohort(f"c{number}", one) for number, one in enumerate(pairs)], launches=3), rate)
    return tmp_path


def analysed(of, rate=None):
    shutil.rmtree(RESULTS, ignore_errors=True)
    windows = maker.windows(of) if rate is None else written(of, rate, platform="modelled")
    study_folder.write(RESULTS, of, windows)
    records = [json.loads(StudyFolder(RESULTS).record_file(launch).read_text()) for launch in of.launches]
    tables = {"effects": estimate_effects(of, windows, 0.02), "windows": windows, "launches": launches_table(records)}
    for name, table in tables.items():
        write_table(table, RESULTS / "tables" / name)


def ask(*arguments):
    return CliRunner().invoke(app, ["advice", "study.yaml", "--place", *map(str, arguments)])


def refused(*arguments):
    done = ask(*arguments)
    assert done.exit_code == 1
    assert isinstance(done.exception, CastmatesError), done.exception
    assert "\n" not in str(done.exception)
    return str(done.exception)


@pytest.mark.landing
def test_the_advice_of_a_study_and_what_it_gains(project):
    done = ask("--format", "json")
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    best = [(row["domain"], row["job"], row["beside"]) for row in found["groupings"] if row["rank"] == 1]
    # 2 × 5 + 2 × 10 % lost beside each other, 2 × 2 + 2 × 30 % apart.
    assert sorted(best) == [
        (0, "chase", "stream"),
        (0, "stream", "chase"),
        (1, "chase", "stream"),
        (1, "stream", "chase"),
    ]
    assert all(
        row["keeps"] == ("kept" if row["job"] == "chase" else "") for row in found["groupings"] if row["rank"] == 1
    )
    ways = {row["way"]: row for row in found["ways"] if not row["job"]}
    assert ways["best"]["loss_pct"] == pytest.approx(7.5, abs=0.2)
    assert ways["random"]["loss_pct"] > ways["spreading"]["loss_pct"] > ways["best"]["loss_pct"]
    # Of the three ways to seat two and two, one has equals together: a third of the arrivals.
    assert ways["spreading"]["loss_pct"] == pytest.approx((2 * 7.5 + 16.0) / 3, abs=0.4)
    assert 0 < ways["random"]["predicted"] < 1
    assert found["platform"] == "modelled"
    page = (RESULTS / "place/index.html").read_text()
    assert "modelled (not measured)" in page
    assert "The best grouping keeps all 2 limits" in page
    assert {"groupings.csv", "ways.parquet", "placement-figure.svg"} <= {
        file.name for file in (RESULTS / "place").iterdir()
    }
    text = ask().stdout
    assert "MODELLED (NOT MEASURED)" in text
    assert "groupings of these were compared" in text


def test_what_stands_in_the_way_of_limits_and_what_is_predicted_is_shown(project):
    (project / "jobs.yaml").write_text("jobs: {chase: {count: 1, limit: 1%}, stream: 2}\ndomains: 1\ncores: 3\n")
    done = ask("--jobs", "jobs.yaml")
    assert done.exit_code == 0, done.exception
    assert "No grouping is shown to keep the one limit. The nearest keeps none" in done.stdout
    assert "In the way: chase beside stream + stream is expected to lose 1" in done.stdout
    assert "it is shown to keep it beside none, and not beside stream." in done.stdout
    assert "3 of the 3 losses of the best grouping are predicted, not measured" in done.stdout
    assert "partly predicted" in (RESULTS / "place/index.html").read_text()


@pytest.mark.landing
def test_fresh_launches_are_a_study_of_the_groups_alone(project):
    done = ask("--confirm", "--only-write", "--launches", "4")
    assert done.exit_code == 0, done.exception
    (file,) = (RESULTS / "place").glob("*.yaml")
    study = read_keys(Study, file.read_text(), str(file))
    groups = {tuple(sorted((each.lead, *each.antagonists))) for each in study.mixes}
    advised = pd.read_csv(RESULTS / "place/groupings.csv", keep_default_na=False)
    wanted = {tuple(sorted((row.job, *row.beside.split("+")))) for row in advised.itertuples() if row.beside}
    assert groups == wanted
    assert (study.budget.launches, study.controls, study.place.jobs, study.placement.llc) == (4, None, {}, "shared")
    assert study.seed != 1
    assert yaml.safe_load(file.read_text())["name"] == file.stem
    assert ask("--confirm", "--only-write").exit_code == 0
    assert len(list((RESULTS / "place").glob("*.yaml"))) == 1  # the same groups are the same study


@pytest.mark.landing
def test_masks_of_a_group_are_those_that_were_measured(project):
    parts = maker.atoms("dlrm-train@0", "stream@1", ways=(4, 8), caps=(), sensitivity=())
    analysed(maker.made(parts))
    (project / "jobs.yaml").write_text("jobs: {dlrm-train: {count: 1, limit: 20%}, stream: 1}\ndomains: 1\ncores: 2\n")
    rows = json.loads(ask("--jobs", "jobs.yaml", "--format", "json").stdout)["groupings"]
    assert [(row["job"], row["ways"], row["mask"]) for row in rows] == [("dlrm-train", 8, "0ff"), ("stream", 4, "f00")]
    ask("--jobs", "jobs.yaml", "--confirm", "--only-write")
    (file,) = (RESULTS / "place").glob("*.yaml")
    (sweep,) = read_keys(Study, file.read_text(), str(file)).cache.sweeps
    assert {who: own.data for who, own in sweep.masks.items()} == {"lead": "0xff", "antagonists": "0xf00"}
    (project / "jobs.yaml").write_text("jobs: {dlrm-train: 1, stream: 1}\ndomains: 1\ncores: 2\nmasks: false\n")
    rows = json.loads(ask("--jobs", "jobs.yaml", "--format", "json").stdout)["groupings"]
    assert [row["mask"] for row in rows] == ["", ""]


@pytest.mark.parametrize(
    ("jobs", "sentence"),
    [
        ("jobs: {chase: 7}", "the jobs take 7 cores, and the 2 domains have 6; place fewer jobs, or more domains."),
        ("jobs: {chess: 1}", "'chess' in 'jobs' is not in the catalogue, did you mean 'chase'?"),
        ("jobs: {chase: 0}", "'jobs.chase' is 0, but expected a whole number from 1 to 256, or the keys count and"),
        (
            "jobs: {chase: {limit: 0}}",
            "'jobs.chase.limit' is 0, but expected a share above 0% and below 100%",
        ),
        ("jobs: {chase: 200, stream: 57}", "'jobs' is {'chase': 200, 'stream': 57}, but expected 256 jobs at most"),
        ("jobs: {}", "there are no jobs to place; write them under `jobs`"),
        ("jobs: {chase: 1}\ndomains: 3", "'domains' is 3, but the machine has 2"),
        ("jobs: {chase: 1}\ncores: 4", "'cores' is 4, but a cache of the machine has 3 around it"),
        ("jobs: {chase: 1}\nmachine: xeon", "'machine' is 'xeon', but the study has no classes of nodes"),
        ("jobs: {gups: 2, chase: 2}\ndomains: 1\ncores: 4", "no grouping of these jobs can be judged"),
    ],
)
def test_mistakes_are_one_sentence(project, jobs, sentence):
    (project / "jobs.yaml").write_text(jobs)
    assert sentence in refused("--jobs", "jobs.yaml")


def test_losses_of_two_platforms_are_never_mixed(project):
    effects = pd.read_parquet(RESULTS / "tables/effects.parquet")
    some = effects["mix"].to_numpy() == effects["mix"].iloc[0]
    write_table(effects.assign(platform=effects["platform"].where(~some, "emulated")), RESULTS / "tables/effects")
    assert "results/golden: its launches are emulated and modelled, and losses of several platforms" in refused()


def test_the_plan_shows_what_the_study_will_not_know(project):
    more = STUDY.replace("stream: 2}", "stream: 2, chase-in-cache: 1}")
    (project / "study.yaml").write_text(more)
    said = CliRunner().invoke(app, ["plan", "study.yaml"], catch_exceptions=False).stdout
    assert (
        "5 jobs on 2 last-level caches with 3 cores each; the study does not measure 6 of the 8 mixes (chase beside"
        in said
    )
    (project / "study.yaml").write_text(STUDY.replace("chase: {", "chess: {"))
    done = CliRunner().invoke(app, ["plan", "study.yaml"])
    assert "'chess' in 'place.jobs' is not in the catalogue, did you mean 'chase'?" in str(done.exception)
