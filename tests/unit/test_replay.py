"""`castmates sweep --replay` short of measuring: what is opened and refused, what is written, verdicts and words."""

import json
import math
import re
import shutil
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from castmates.analysis.comparison.comparison import compare
from castmates.analysis.comparison.replay import replayed
from castmates.analysis.core import SESSIONS
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.statistics.intervals import holm
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.project import load
from castmates.report.comparison.replay import (
    contradictions,
    control_notes,
    headline,
    machine_sentences,
    other_class,
    replay_of,
    sentences,
)
from castmates.report.paper.crate import About, Run, metadata
from castmates.report.paper.paper import Folder, write_for_replay
from castmates.results.find import read_measured
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.published import find_published, read_published
from tests.unit import study_folder
from tests.unit.snapshots import assert_as_before
from tests.unit.test_comparison import LOSSES_A, side
from tests.unit.windows_maker import cohort, mix, plan, written

ROOT = Path(__file__).resolve().parents[2]
STUDY = {
    "name": "small",
    "platform": "modelled",
    "leads": ["chase", "dlrm"],
    "antagonists": ["stream"],
    "mixes": {
        "list": [{"lead": "chase", "antagonists": ["compute"], "distance": "llc", "count": [1, 2]}],
        "random": {"count": 1, "from": ["tree-like"]},
    },
    "place": {"jobs": {"never-measured": 2}},
    "budget": {"launches": 3, "rounds": 2, "window": 0.5},
    "cache": {"sweeps": [{"split": ["4"]}, {"lead_ways": ["2"]}]},
    "controls": None,
    "margin": "5%",
    "workloads": {
        "dlrm": {"like": "chase", "title": "another"},
        **{name: {"like": "stream", "tags": ["tree-like"]} for name in ("oak", "elm", "ash")},
        "never-measured": {"like": "chase"},
    },
}


def loss(launch, number, scene, member):
    return 100 * math.exp(0.002 * launch.number * number - (0.3 + 0.001 * launch.number) * scene.startswith("corun"))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a modelled study and its made-up results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("castmates.project.ENVIRONMENTS", ROOT / "envs")  # which the clone's folder had at the start
    Path("study.yaml").write_text(yaml.safe_dump(STUDY))
    plan = load("study.yaml").plan()
    study_folder.write(Path("results/small"), plan, written(plan, loss, platform="modelled"))
    return plan


def publish(place: Path) -> Path:
    """What `castmates paper` publishes and a replay reads; its figures and LaTeX are left out."""
    results, folder = StudyFolder(Path("results/small")), Folder(place)
    folder.copy(Path("study.yaml"), "small.yaml", "The study.")
    for name in ("plan.json", "machine.json"):
        folder.copy(results.path / name, name, "As measured.")
    assert not write_for_replay(folder, read_plan(results.plan_file), Path("study.yaml"))
    for record in results.record_files():
        folder.copy(record, str(record.relative_to(results.path)), "A record.")
    measured = read_measured(Path("results/small"))
    place.mkdir(exist_ok=True)
    measured.windows.to_parquet("windows.parquet")
    folder.copy(Path("windows.parquet"), "data/windows.parquet", "The windows.")
    about = About("small", "", "2026-01-01T00:00:00+00:00", "", (), "0.1.0")
    folder.finish(metadata(about, folder.parts(), [Run("", ["plan.json"], {})]))
    return place


def replay(*arguments):
    return CliRunner().invoke(app, ["sweep", "--replay", *map(str, arguments), "--only-write"])


def refused(*arguments) -> str:
    done = replay(*arguments)
    assert isinstance(done.exception, CastmatesError), done.output
    return str(done.exception)


def questions(plan):
    return {(mix.name, tuple(each.name for each in mix.partitions)) for mix in plan.mixes}


def again(*arguments):
    """The study that a replay writes, planned here."""
    done = replay(*arguments)
    assert done.exit_code == 0, done.output or done.exception
    file = next(line for line in done.stderr.splitlines() if line.startswith("study: ")).removeprefix("study: ")
    return load(file), load(file).plan()


@pytest.mark.landing
def test_a_published_folder_and_results_are_planned_as_the_published_study_was(project):
    publish(Path("crate"))
    seeds = set()
    for named in ("crate", "results/small", "study.yaml"):
        shutil.rmtree("results/small-replay", ignore_errors=True)
        study, plan = again(named)
        assert (study.study.name, study.study.margin) == ("small-replay", 0.05)
        assert questions(plan) == questions(project), named
        ours, theirs = ({launch.cohort.canonical() for launch in one.launches} for one in (plan, project))
        assert ours == theirs, "equal cohorts, so that nothing but the seeds is another"
        seeds |= {launch.seed for launch in plan.launches}
        assert not {launch.seed for launch in plan.launches} & {launch.seed for launch in project.launches}
        assert len(plan.launches) == len(project.launches)
    assert len(seeds) == len(project.launches), "the same replay, however it is named"
    catalogue = yaml.safe_load(Path("results/small-replay/replay/workloads/published.yaml").read_text())["workloads"]
    assert catalogue["dlrm"]["title"] == "another"


@pytest.mark.landing
def test_a_launch_is_its_cohort_with_the_rounds_that_it_had_and_a_lead_its_mixes(project):
    publish(Path("crate"))
    for one in project.cohorts:
        study, plan = again(f"crate/launches/{one.id}/1", "--launches", "4")
        assert study.study.name == f"small-replay-{one.id.rpartition('-')[2]}"
        assert {mix.name for mix in plan.mixes} == {mix.name for mix in one.mixes}
        tried = {each.name for mix in one.mixes for each in mix.partitions}
        assert {each.name for mix in plan.mixes for each in mix.partitions} == tried
        assert {launch.design.rounds for launch in plan.launches} == {2}
        assert {launch.number for launch in plan.launches} == {1, 2, 3, 4}
    _, plan = again("crate", "--lead", "dlrm")
    assert questions(plan) == {each for each in questions(project) if each[0].startswith("dlrm")}


def test_what_cannot_be_replayed_is_refused_in_a_sentence(project):
    crate = publish(Path("crate"))
    Path("empty").mkdir()
    Path("crate.zip").write_bytes(b"PK")
    asked = ["nowhere", "empty", "crate.zip", "crate.zip/launches/c/1", "crate/data", "crate/launches/chase-00000000/1"]
    told = {words: refused(*words.split()) for words in (*asked, "crate --lead bert")}
    (crate / "data/windows.parquet").write_bytes(b"doctored")
    told["doctored"] = re.sub(r"[0-9a-f]{64}", "…", refused("crate"))
    (crate / "data/windows.parquet").unlink()
    told["without its windows"] = refused("crate")
    cohorts = {cohort.id: f"{cohort.lead.workload}-…" for cohort in project.cohorts}
    for id_, name in cohorts.items():
        told = {words: said.replace(id_, name) for words, said in told.items()}
    assert_as_before("replays-refused", told)


def test_another_published_study_never_measures_into_the_same_folder(project):
    crate = publish(Path("crate"))
    again("crate")
    plan = crate / "plan.json"
    plan.write_text(plan.read_text().replace('"titles"', '"titles" '))
    described = json.loads((crate / "ro-crate-metadata.json").read_text())
    for each in described["@graph"]:
        if each["@id"] == "plan.json":
            each["sha256"] = sha256(plan.read_bytes()).hexdigest()
    (crate / "ro-crate-metadata.json").write_text(json.dumps(described))
    assert "results/small-replay has results of another published study; give the replay another name" in refused(
        "crate"
    )
    Path("results/mine").mkdir()
    assert "results/mine has results of something else" in refused("crate", "--name", "mine")
    assert "--name is '../mine', but a name is made of at most 64 lower-case" in refused("crate", "--name", "../mine")
    assert again("crate", "--name", "second")[0].study.name == "second"


def test_a_crate_without_its_study_is_refused(project):
    (publish(Path("crate")) / "replay/study.yaml").unlink()
    assert "this crate has no replay/study.yaml, so what to measure is not known" in refused("crate")


def test_a_workload_that_is_another_program_here_is_named_before_it_is_measured(project):
    publish(Path("crate"))
    text = Path("crate/replay/workloads/published.yaml").read_text()
    assert len(read_published(find_published(Path("crate"))).records) == len(project.launches)
    changed = text.replace("parallel: 1.0", "parallel: 2.0")
    assert changed != text
    Path("crate/replay/workloads/published.yaml").write_text(changed)
    described = json.loads(Path("crate/ro-crate-metadata.json").read_text())
    for each in described["@graph"]:
        if each["@id"] == "replay/workloads/published.yaml":
            each["sha256"] = sha256(changed.encode()).hexdigest()
    Path("crate/ro-crate-metadata.json").write_text(json.dumps(described))
    done = replay("crate")
    assert "chase in chase+stream: model: " in done.stderr
    assert "stream in chase+stream: model: " not in done.stderr


@pytest.mark.parametrize(
    ("losses", "margin", "verdict"),
    [
        ([0.11, 0.10, 0.12, 0.09], 0.10, "agrees"),
        ([0.2001, 0.2, 0.1999], 0.5, "agrees"),  # proven, and within the margin all the same
        ([0.2001, 0.2, 0.1999], 0.02, "differs"),
        ([0.02, 0.2, 0.1], 0.02, "unclear"),
        ([0.1, 0.1], 0.5, "too few launches"),
    ],
)
def test_verdicts(losses, margin, verdict):
    table = replayed(compare(side(LOSSES_A), side(losses), margin), margin)
    row = table[(table["member"] == "dlrm") & (table["baseline"] == "alone")].iloc[0]
    assert row["verdict"] == verdict
    assert table["p_holm"].to_numpy() == pytest.approx(holm(table["p_value"]), nan_ok=True), "over all effects"
    assert math.isnan(row["joint_slowdown_low"]) is (verdict in ("differs", "too few launches"))
    if verdict == "agrees":
        assert row["joint_slowdown_low"] < row["joint_slowdown"] < row["joint_slowdown_high"]


def test_the_words_name_what_differs_and_a_published_number_that_its_windows_do_not_give(project):
    there = read_measured(Path("results/small"))
    plan = project.model_copy(update={"study": "again"})
    launches = tuple(launch.model_copy(update={"seed": launch.seed + 1}) for launch in plan.launches)
    plan = plan.model_copy(update={"launches": launches})

    def more(launch, number, scene, member):
        return loss(launch, number, scene, member) * (0.7 if scene == "corun:dlrm+stream" and member[0] == "d" else 1)

    study_folder.write(Path("results/again"), plan, written(plan, more, platform="modelled"))
    here = read_measured(Path("results/again"))
    (lead,) = {mix.lead for mix in project.mixes if mix.name == "chase+stream"}
    stated = pd.DataFrame(
        {
            "mix": ["chase+stream"],
            "member": [lead],
            "baseline": ["alone"],
            "partition": ["unmanaged"],
            "slowdown": [2.0],
        }
    )
    found = replay_of(there, here, 0.05, "a/crate", effects=stated)
    assert found.status == 3
    words = sentences(found)
    assert words[0] == headline(found)
    assert "differ within" not in words[0]
    assert any(each.startswith("dlrm beside stream: loss of 26.1 [") and each.endswith(": differs.") for each in words)
    assert any("The published table has a loss of 50.0 % for chase in chase+stream" in each for each in words)
    assert "Published: small (a/crate): " in "\n".join(words)
    assert replay_of(there, here, 0.9).status == 0, "within 90 % even that agrees"


def test_a_published_number_over_sessions_is_checked_as_the_mean_of_the_means_of_its_sessions(tmp_path):
    sizes, hours = (4, 2, 2), (0, 5, 24)
    study = plan([cohort("c", mix("lead@0", "stream@1"))], sum(sizes))
    times = [hour * 3600.0 + 60 * number for size, hour in zip(sizes, hours, strict=True) for number in range(size)]
    logs = np.array([0.10, 0.11, 0.09, 0.10, 0.20, 0.21, 0.30, 0.31])
    windows = written(study, lambda launch, _, scene, __: math.exp(-logs[launch.number - 1] * ("corun" in scene)))
    windows["started"] = 1.76e9 + np.array(times)[windows["launch"] - 1]
    there = read_measured(study_folder.write(tmp_path / "there", study, windows))
    effects = estimate_effects(study, windows, 0.02)
    assert set(effects.loc[effects["role"] == "lead", "over"]) == {SESSIONS}
    check = partial(contradictions, there)
    assert check(effects) == []

    wrong = effects.assign(slowdown=effects["slowdown"].mask(effects["baseline"] == "placebo", math.exp(logs.mean())))
    (found,) = check(wrong)
    means = np.mean([part.mean() for part in np.split(logs, np.cumsum(sizes)[:-1])])
    assert (found.baseline, found.windows) == ("placebo", pytest.approx(math.exp(means)))
    # Of a part of the study's launches others may be sessions.
    assert check(wrong.assign(sessions=2)) == []


def test_machines_of_one_class_and_of_another():
    topology = {"online": "0-3", "siblings": [], "packages": 1, "nodes": [{"id": 0, "cpus": "0-3"}],
                "llcs": [{"id": 0, "bytes": 2**25, "ways": 16, "cpus": "0-3"}]}  # fmt: skip
    one = {"cpu_model": "A", "topology": topology, "memory_bytes": 16e9, "microcode": "0x1", "compiler": "cc 12"}
    same = one | {"memory_bytes": 16.1e9, "microcode": "0x2", "mitigations": {"mds": "no"}}
    other = one | {"topology": topology | {"llcs": [{"id": 0, "bytes": 2**26, "ways": 16, "cpus": "0-3"}]}}
    told = machine_sentences(one, same, [("Kernel", "6.1", "6.2"), ("Host", "a", "b")])
    assert_as_before("replayed-machines", {"same class": told, "another class": other_class(one, other)})
    assert other_class(one, same) == other_class({"model": {"a": 1}}, {"model": {"a": 1}}) == ""
    assert other_class(one, {"hostname": "x"}) is None
    assert other_class({"model": {"a": 1}}, {"model": {"a": 2}})


def test_controls_that_do_not_vouch_for_the_replay_are_named():
    rows = [("control", "unstable", "Steady it is not."), ("sensitivity", "sensitive", "It is."), ("masks", "x", "y")]
    stamps = pd.DataFrame(rows, columns=["stamp", "word", "sentence"])
    assert control_notes(stamps) == ["Controls of the replay: unstable. Steady it is not."]
