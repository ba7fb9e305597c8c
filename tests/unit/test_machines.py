"""A study over classes of nodes: planned for each from its capture, a mix of a class is a separate mix."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from castmates import project
from castmates.errors import CastmatesError
from castmates.machine.capture.capture import record
from castmates.study.class_names import named, without_class
from castmates.study.mitigations import place_of, with_place
from castmates.study.node_classes import parts_of
from castmates.study.plan_text import plan_of, plan_text, task_in, task_of
from tests.unit import machines, sysfs
from tests.unit.snapshots import assert_as_before, refusal

ROOT = Path(__file__).parents[2]
STUDY = {
    "name": "over-classes",
    "leads": ["chase"],
    "antagonists": ["stream"],
    "mixes": [{"lead": "chase", "antagonists": ["stream"], "distance": ["llc", "other-socket"]}],
    "controls": None,
}
MODELLED = {  # none of the catalogue's workloads
    "platform": "modelled",
    "leads": ["ranking"],
    "antagonists": ["flood"],
    "mixes": [{"lead": "ranking", "antagonists": ["flood"], "distance": ["llc", "other-socket"]}],
    "workloads": {name: {"unit": "step", "model": {"compute": 0.01}} for name in ("ranking", "flood")},
}
MODELS = {"small": {"model": {"cores": 4, "ways": 8}}, "large": {"model": {"cores": 8, "ways": 12}}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    return tmp_path


def captured(folder, name, machine, processor):
    root = sysfs.build(folder / f"root-{name}", machine)
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: {processor}\n")
    (root / "proc/meminfo").write_text("MemTotal:       131072000 kB\n")
    file = folder / f"{name}.json.gz"
    record(file, root)
    return str(file)


def at(folder, value):
    """The captures of a value are in this folder."""
    if isinstance(value, dict):
        return {key: at(folder, each) for key, each in value.items()}
    return str(folder / value) if str(value).endswith(".gz") else value


def load(folder, changes):
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(STUDY | changes, sort_keys=False))
    return project.load(file)


@pytest.fixture
def two(folder):
    xeon = captured(folder, "xeon", machines.xeon(), "Intel(R) Xeon(R) Gold 6326")
    epyc = captured(folder, "epyc", machines.epyc(), "AMD EPYC 7443")
    return load(folder, {"machines": {"xeon": xeon, "epyc": {"capture": epyc, "slurm": {"constraint": "milan"}}}})


def test_names_carry_the_class_and_lose_it():
    for name in ("chase", "chase@1", "chase+stream:smt", "chase@2#2"):
        assert without_class(named(name, "xeon")) == name
    assert named("chase+stream+stream:smt", "xeon") == "chase~xeon+stream+stream:smt"
    assert place_of("chase~xeon+stream:smt") == "smt"
    assert with_place("stream~xeon+stream~xeon", "chase~xeon+stream+stream:llc") == "stream+stream:llc"


def test_every_mix_is_planned_for_every_class_from_its_capture(two):
    plan = two.plan()
    assert [machine.name for machine in plan.machines] == ["xeon", "epyc"]
    names = [mix.name for mix in plan.mixes]
    assert len(names) == len(set(names))
    # Two names may stand for one measurement within a class, but never in two classes.
    of_class = [{mix.identity for mix in plan.mixes if mix.machine == name} for name in ("xeon", "epyc")]
    assert of_class[0].isdisjoint(of_class[1])
    names_on = [{without_class(mix.name) for mix in part.mixes} for part in parts_of(plan)]
    assert names_on[0] == names_on[1]
    for each in two.by_class:
        alone = project.on_captured_machine(replace(two, study=each.study), each.elsewhere.file).plan()
        members = {
            member.name: member for launch in plan.launches for member in launch.cohort.members
        }  # by names that no other class has
        for launch in alone.launches:
            for member in launch.cohort.members:
                ours = members[named(member.name, each.machine)]
                # Placement, memory nodes and sizes (`4llc`) are those of the captured machine.
                assert (ours.cpus, ours.nodes, ours.command) == (member.cpus, member.nodes, member.command)
    cohorts = [launch.cohort for launch in plan.launches]
    commands = {each.machine: m.command for each in cohorts for m in each.members if m.workload == "stream"}
    assert commands["xeon"] != commands["epyc"], "each class has the sizes of its own cache"


def test_launches_carry_their_class_and_never_share_a_cohort(two):
    plan = two.plan()
    for launch in plan.launches:
        assert {mix.machine for mix in launch.cohort.mixes} == {launch.cohort.machine}
        for member in launch.cohort.members:
            assert named(without_class(member.name), launch.cohort.machine) == member.name
    parts = parts_of(plan)
    assert [part.machine for part in parts] == ["xeon", "epyc"]
    assert sorted(launch.path for part in parts for launch in part.launches) == [
        launch.path for launch in plan.launches
    ]
    assert plan_of(plan_text(plan)) == plan


def test_a_launch_knows_what_its_workloads_take_on_nodes_of_its_class(two):
    plan, takes = two.plan(), {}
    for part in two.by_class:
        takes[part.machine] = (
            project.on_captured_machine(replace(two, study=part.study), part.elsewhere.file).plan().memory
        )
    assert takes["xeon"]["stream"] != takes["epyc"]["stream"], "each class has the sizes of its own cache"
    for launch in plan.launches:
        for task in (task_in(plan, launch.path), task_of(plan_text(plan), launch.path)):
            assert task.needs == takes[launch.cohort.machine]
    assert {part.machine: part.memory for part in parts_of(plan)} == takes


def test_what_a_class_cannot_seat_is_left_out_there_with_its_reason(folder):
    study = load(
        folder, {"machines": {"one": {"model": {}}, "two": {"model": {"domains": 2, "sockets": 2}}}, **MODELLED}
    )
    plan = study.plan()
    assert {mix.name for mix in plan.mixes} >= {"ranking~two+flood:other-socket", "ranking~one+flood:llc"}
    (left_out,) = plan.left_out
    assert (left_out.mix, left_out.lead) == ("ranking~one+flood:other-socket", "ranking~one")
    assert "another socket" in left_out.reason
    with pytest.raises(CastmatesError, match=r"no class of nodes has a place for the mix ranking\+flood:other-socket"):
        load(folder, {
            "machines": MODELS, **MODELLED,
        }).plan()  # fmt: skip


def test_a_plan_without_classes_has_no_word_of_them(folder):
    plan = load(folder, MODELLED | {"mixes": []}).plan()
    text = plan_text(plan)
    assert "~" not in text
    assert not {"machine", "machines", "ignored_hosts"} & json.loads(plan.canonical()).keys()
    assert json.loads(text)["study"] == "over-classes"


def test_bad_input_gets_a_sentence(folder):
    for name in ("xeon", "again"):
        captured(folder, name, machines.xeon(), "Intel(R) Xeon(R) Gold 6326")
    wrong = [
        {"machines": {"xeon": "nothing.json.gz"}}, {"machines": {"xeon": "xeon.json.gz", "same": "again.json.gz"}},
        {"platform": "modelled", "machines": {"xeon": "xeon.json.gz"}}, {"machines": MODELS},
        {"platform": "modelled", "machines": {"a": {"model": {}}, "b": {"model": {}}}}, {"machines": {"xeon": {}}},
        {"machines": {"xeon": {"capture": "xeon.json.gz", "slurm": {"exclusive": "yes"}}}},
        {"machines": {"Xeon": "xeon.json.gz"}},
    ]  # fmt: skip

    def said(changes):
        said = refusal(lambda: load(folder, at(folder, changes)).plan()).replace(str(folder), "HERE")
        return re.sub(r"of \d+ characters", "of N characters", said)  # they have the folder in them

    assert_as_before("classes-of-nodes", {str(changes): said(changes) for changes in wrong})


def test_a_study_with_classes_is_not_planned_for_another_machine(two):
    with pytest.raises(CastmatesError, match=r"names its machines \(xeon, epyc\) and is planned for them"):
        project.on_captured_machine(two, Path("xeon.json.gz"))
