"""Studies that confirm a partition: the same mix, fresh launches; and launches that do not count, with the reason."""

import json
from pathlib import Path

import pandas as pd
import pytest

from castmates import project
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.effects.verdicts import TOO_FEW
from castmates.analysis.partitions.recommendation import (
    CONFIRMED,
    MET,
    NO_SWEEP,
    NOT_MET,
    Searched,
    other_design,
    pareto_table,
    refusal,
)
from castmates.pipeline import confirm
from castmates.results.folder import StudyFolder
from castmates.results.tables import write_table
from castmates.study.confirmation import confirmation_name, confirming, group_study, mix_under
from castmates.study.model import Study
from castmates.study.reading import read_keys
from castmates.study.replaying import ReplayedPart, replaying
from castmates.study.spec import NodeClass, Plan
from castmates.study.tracing_keys import ProfileKeys
from castmates.study.workload_keys import VariantKeys
from tests.unit.partition_maker import atoms, made, windows
from tests.unit.snapshots import assert_as_before
from tests.unit.snapshots import refusal as refused

STUDIES = sorted(Path("config/studies").glob("*.yaml"))
MODELLED = "config/studies/modelled-cat-sweep.yaml"


@pytest.fixture(scope="module")
def parent():
    loaded = project.load(MODELLED)
    return loaded, loaded.plan()


def plan_of(study: Study, loaded) -> Plan:
    return project.Project(loaded.study_file, study, loaded.workloads, "").plan()


def test_losses_alone_are_measured_again(parent):
    """Neither traces nor variants nor rules of findings come along."""
    loaded, plan = parent
    more = {
        "profile": ProfileKeys(),
        "findings": ("rules.yaml",),
        "variants": {"vision": [VariantKeys(name="b", cores=2)]},
    }
    study = loaded.study.model_copy(update=more)
    groups = [(("vision", "database"), ())]
    confirmed = confirming(study, plan, mix_under(plan, "vision+database", "split-3"), 4)
    for fresh in (
        confirmed,
        group_study(study, groups, 4),
        replaying(study, plan, ReplayedPart(), 4, keeps_cpus=False),
    ):
        assert (fresh.profile, tuple(fresh.findings)) == (None, ())
    assert confirmed.variants == {}


@pytest.mark.parametrize("partition", ["split-3", "overlap-2-lead-6", "cap-2", "throttled-antagonists-mb20"])
def test_it_measures_the_same_mix_under_that_partition_alone(parent, partition):
    loaded, plan = parent
    mix = mix_under(plan, "vision+database", partition)
    study = read_keys(Study, confirming(loaded.study, plan, mix, 4).text(""), "confirm.yaml")
    fresh = plan_of(study, loaded)
    assert [(one.name, [each.name for each in one.partitions]) for one in fresh.mixes] == [
        ("vision+database", []), ("vision+database", [partition])
    ]  # fmt: skip
    assert mix.identity in {one.identity for one in fresh.mixes}
    assert len(fresh.launches) == 4
    assert not {launch.seed for launch in fresh.launches} & {launch.seed for launch in plan.launches}
    assert fresh.study == study.name == confirmation_name(loaded.study.name, mix)
    assert not fresh.notes


AS_CLOUDS_DO = """
name: clouds
platform: modelled
model: {sockets: 2, domains: 4, cores: 6, threads: 2}
budget: {launches: 3}
controls: null
cache: {sweeps: [{lead_ways: 2}, {antagonist_cap: 3}]}
workloads:
  x: {unit: step, cores: 2, model: {compute: 0.004}}
  a: {unit: step, model: {compute: 0.004}}
  b: {unit: step, cores: 2, model: {compute: 0.004}}
"""
RULES = {
    "a quota": "mixes: [{lead: x, antagonists: [a, b], share: {quota: [25%, 50%], period: 20}}]",
    "on the lead's CPUs": "mixes: [{lead: x, antagonists: [a], count: [1, 2], share: {cpus: lead}}]",
    "a quota on the lead's CPUs": "mixes: [{lead: x, antagonists: [a, a], share: {cpus: lead, quota: 50%}}]",
    "a quota at a distance": "mixes: [{lead: x, antagonists: [a], distance: [smt, socket], share: {quota: 30%}}]",
    "tried against a loss": "mitigations: [{lead: x, antagonists: [a, a], distance: smt, ways: [3], period: 30}]",
}


@pytest.mark.parametrize("rule", RULES)
def test_quotas_overcommitted_cpus_and_mitigations_are_confirmed_too(rule, tmp_path):
    (tmp_path / "clouds.yaml").write_text(AS_CLOUDS_DO + RULES[rule])
    loaded = project.load(tmp_path / "clouds.yaml")
    plan = loaded.plan()
    partitioned = [mix for mix in plan.mixes if mix.partitions and mix.antagonists]
    quotas = {part.name for mix in partitioned for part in mix.partitions if not part.of_cache}
    assert bool(quotas) == (rule != "on the lead's CPUs")
    for mix in partitioned:
        (partition,) = mix.partitions
        chosen = mix_under(plan, mix.name, partition.name)
        study = read_keys(Study, confirming(loaded.study, plan, chosen, 4).text(""), "confirm.yaml")
        fresh = plan_of(study, loaded)
        bare, again = fresh.mixes
        assert (again.identity, again.partitions, bare.partitions) == (mix.identity, (partition,), ())
        assert not fresh.notes


OVER_CLASSES = """
name: classes
platform: modelled
machines: {small: {model: {cores: 4, ways: 8}}, large: {model: {cores: 8, ways: 12}}}
budget: {launches: 3}
controls: null
cache: {sweeps: [{split: all}]}
mixes: [{lead: x, antagonists: [a], distance: llc}]
workloads: {x: {unit: step, model: {compute: 0.004}}, a: {unit: step, model: {compute: 0.004}}}
"""


@pytest.mark.parametrize(("mix", "partition"), [("x~small+a:llc", "split-6"), ("x~large+a:llc", "split-11")])
def test_a_partition_of_one_class_is_confirmed_on_that_class_alone(mix, partition, tmp_path):
    (tmp_path / "classes.yaml").write_text(OVER_CLASSES)
    loaded = project.load(tmp_path / "classes.yaml")
    plan = loaded.plan()
    chosen = mix_under(plan, mix, partition)
    study = read_keys(Study, confirming(loaded.study, plan, chosen, 4).text(""), "confirm.yaml")
    fresh = plan_of(study, loaded)
    assert list(study.machines) == [chosen.machine]
    assert chosen.identity in {one.identity for one in fresh.mixes}
    assert {one.machine for one in fresh.mixes} == {chosen.machine} < {"small", "large"}
    assert [part.name for one in fresh.mixes for part in one.partitions] == [partition]
    assert len(fresh.launches) == 4


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_survives_being_written(file):
    study = project.load(file).study
    again = read_keys(Study, study.text(""), "x.yaml")
    assert again.model_dump() == study.model_dump()  # random mixes are written out, and are then mixes like others


def test_what_cannot_be_confirmed_is_told(parent):
    loaded, plan = parent
    mix = mix_under(plan, "vision+database", "split-3")
    unswept = loaded.study.model_copy(update={"cache": loaded.study.cache.model_copy(update={"sweeps": []})})
    said = {
        "no such mix": refused(mix_under, plan, "nobody", "split-3"),
        "no such partition": refused(mix_under, plan, "vision+database", "split-99"),
        "two launches": refused(confirming, loaded.study, plan, mix, 2),
        "no sweep": refused(confirming, unswept, plan, mix, 3),
    }
    names = list(dict.fromkeys(mix.name for mix in plan.mixes if mix.antagonists))
    for found in ((NOT_MET, NOT_MET), (TOO_FEW,), (NO_SWEEP,), (NOT_MET, TOO_FEW, NOT_MET)):
        advice = pd.DataFrame({"mix": names[: len(found)], "verdict": found, "limit_pct": 3.0})
        said[f"advice: {found}"] = refused(confirm.wanted, loaded.study, plan, advice, "")
    advice = pd.DataFrame({"mix": names[:2], "verdict": [MET, TOO_FEW], "limit_pct": 3.0})
    said["advice of one mix"] = refused(confirm.wanted, loaded.study, plan, advice, names[1])
    assert_as_before("confirm-mistakes", said)
    assert len(confirmation_name("x" * 64, plan.mixes[1])) == 64


def record(mix, **facts):
    cohort = {"mixes": [json.loads(mix.model_dump_json())]}
    spec = {"study": "fresh", "seed": 77, "cohort": cohort} | facts.pop("spec", {})
    return {"status": "measured", "platform": "measured", "host": "here", "spec": spec} | facts


def test_launches_that_do_not_count(parent):
    _, plan = parent
    mix, other = (mix_under(plan, "vision+database", name) for name in ("split-3", "split-4"))
    beside = mix_under(plan, "vision+stream", "split-3")
    changed = mix.model_copy(update={"identity": "other programs"})
    records = {
        "fresh": record(mix),
        "of the search": record(mix, spec={"study": "s"}),
        "of a seed of the search": record(mix, spec={"seed": 2}),
        "failed": record(mix, status="failed"),
        "emulated": record(mix, platform="emulated"),
        "elsewhere": record(mix, host="there"),
        "another partition": record(other),
        "another antagonist": record(beside),
        "another identity": record(changed),
    }
    searched = Searched("s", mix, "measured", {1, 2}, {"here"})
    assert_as_before("confirm-refused", {name: refusal(one, searched) for name, one in records.items()})
    modelled = Searched("s", mix, "modelled", {1, 2}, {"here"})
    assert refusal(record(mix, host="there", platform="modelled"), modelled) == ""


def test_how_fresh_launches_were_measured_otherwise(parent):
    _, plan = parent
    design = plan.launches[0].design
    longer = design.model_copy(update={"window": 2 * design.window, "rounds": design.rounds + 1})
    assert other_design([design], [design, design]) == ""
    assert other_design([], [design]) == ""
    assert other_design([longer], [design]) == (
        f"{longer.rounds} rounds, not {design.rounds}; windows of {longer.window:g} s, not {design.window:g} s"
    )
    assert other_design([design, longer], [design]).startswith(f"{design.rounds} or {longer.rounds} rounds, not ")


def left(folder: Path, plan: Plan, table, host="here"):
    """Measured launches on disk."""
    for launch in plan.launches:
        place = folder / "launches" / launch.path
        own = table[(table["cohort"] == launch.cohort.id) & (table["launch"] == launch.number)]
        write_table(own, place / "windows")
        spec = json.loads(launch.model_dump_json())
        (place / "launch.json").write_text(
            json.dumps({"status": "measured", "platform": "measured", "host": host, "spec": spec})
        )


def seeded(plan: Plan, study: str, seed: int) -> Plan:
    launches = [launch.model_copy(update={"study": study, "seed": seed + launch.number}) for launch in plan.launches]
    return plan.model_copy(update={"study": study, "launches": tuple(launches)})


def test_fresh_launches_are_estimated_by_themselves_and_refused_ones_are_counted(tmp_path):
    found, *_, mix = atoms(ways=(2, 4), caps=(), sensitivity=())
    search = seeded(made([found, mix]), "search", 0)
    results = tmp_path / "search"
    left(results, search, windows(search))
    name = confirmation_name("search", mix)
    (results / "confirm").mkdir()
    (results / "confirm" / f"{name}.yaml").write_text("")
    empty = confirm.confirmed_rows(search, StudyFolder(results))
    assert empty[["launches", "refused", "stage", "source"]].values.tolist() == [[0, 0, CONFIRMED, name]]
    fresh = seeded(made([found, mix]), name, 100)
    slower = windows(fresh).assign(rate=lambda table: table["rate"] * (1 - 0.1 * (table["kind"] == "corun")))
    left(tmp_path / name, fresh, slower)
    (row,) = confirm.confirmed_rows(search, StudyFolder(results)).to_dict("records")
    assert (row["partition"], row["launches"], row["refused"], row["design"]) == ("split-4", 4, 0, "")
    assert row["loss_pct"] == pytest.approx(100 * (1 - 0.9 * 2.718281828 ** -(0.1 + 0.02 + 0.06)))
    left(tmp_path / name, fresh.model_copy(update={"launches": fresh.launches[:1]}), slower, host="there")
    (row,) = confirm.confirmed_rows(search, StudyFolder(results)).to_dict("records")
    assert (row["launches"], row["refused"]) == (3, 1)
    assert row["why_refused"] == "was measured on another machine (there)"
    left(tmp_path / name, seeded(fresh, "search", 0), slower)
    (row,) = confirm.confirmed_rows(search, StudyFolder(results)).to_dict("records")
    assert (row["launches"], row["refused"], row["why_refused"]) == (0, 4, "belongs to the search")


def test_fresh_launches_of_which_none_counts_stay_with_their_class(tmp_path):
    found, *_, mix = atoms(lead="dlrm~small@0", antagonist="stream~small@1", ways=(4,), caps=(), sensitivity=())
    plan = made([found, mix])
    search = seeded(plan.model_copy(update={"machines": (NodeClass(name="small", capture="", facts=None),)}), "s", 0)
    left(tmp_path / "s", search, windows(search))
    name = confirmation_name("s", mix)
    (tmp_path / "s/confirm").mkdir()
    (tmp_path / f"s/confirm/{name}.yaml").write_text("")
    searched = pareto_table(search, windows(search), estimate_effects(search, windows(search), 0.0))
    none = confirm.confirmed_rows(search, StudyFolder(tmp_path / "s"))
    assert none["launches"].tolist() == [0]
    for column in ("mix", "lead", "antagonists", "machine"):  # by which the rows of a mix find each other
        assert set(none[column]) == set(searched[column]), column
