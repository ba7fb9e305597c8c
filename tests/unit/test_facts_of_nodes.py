"""Facts of a class of nodes: those of the nodes that measured it, and no better than the worst of them."""

import json

import pytest

from castmates.analysis.effects.stamps import UNVERIFIED, VERIFIED, as_one, masks_stamp
from castmates.report.results import Results
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from castmates.results.known_nodes import facts_of_nodes
from castmates.runner.modelled.launch import facts_of_classes
from castmates.study.modelled import MachineModel
from castmates.study.spec import NodeClass, Partition, Share
from tests.unit.rdt_trials import trial
from tests.unit.windows_maker import cohort, mix, plan, written

WORKS = trial()
PEAK = {"at": "2026-01-05T10:00:00+00:00", "curve": []}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "machines").mkdir()
    for host, facts in {"b": {"rdt_trial": WORKS}, "c": {"memory_peak": PEAK}}.items():
        (tmp_path / f"machines/{host}.json").write_text(json.dumps({"hostname": host} | facts))
    return StudyFolder(tmp_path)


def of_class(name, hosts):
    """A part of a study whose launches were measured on these hosts, with its windows."""
    whole = plan([cohort("c1", mix("x@0", "y@1")), cohort("c2", mix("z@0", "y@1"))], launches=len(hosts))
    windows = written(whole, lambda *_: 1.0, rounds=2)
    windows["host"] = ["elsewhere" if each == "c2" else hosts[number - 1] for each, number in
                       zip(windows["cohort"], windows["launch"], strict=True)]  # fmt: skip
    launches = tuple(launch for launch in whole.launches if launch.cohort.id == "c1")
    machines = (NodeClass(name=name, capture="", facts=None),)
    return whole.model_copy(update={"launches": launches, "machines": machines}), windows


def names(folder, hosts, machine):
    return [facts.get("hostname") for facts in facts_of_nodes(folder, *of_class("xeon", hosts), machine)]


def test_they_are_those_of_its_own_nodes_the_most_measured_first(folder):
    assert names(folder, ["c", "b", "b"], {"hostname": "a"}) == ["b", "c"]
    assert names(folder, ["c", "a", "a"], {"hostname": "a"}) == ["a", "c"]
    assert names(folder, ["unknown", "b", "b"], {"hostname": "a"}) == ["b", None]
    assert names(folder, ["", "", ""], {"hostname": "a"}) == [], "not of the machine that planned"


def test_a_modelled_class_has_the_facts_of_its_model(folder):
    models = {name: MachineModel(ways=ways) for name, ways in (("small", 8), ("large", 12))}
    machine = facts_of_classes(models)
    for name, ways in (("small", 8), ("large", 12)):
        (facts,) = facts_of_nodes(folder, *of_class(name, ["", ""]), machine)
        assert facts["topology"]["llcs"][0]["ways"] == ways


def test_masks_are_verified_where_every_node_has_tested_them(folder):
    tested, untested = ({"hostname": "b", "rdt_trial": WORKS}, {"hostname": "c", "memory_peak": PEAK})
    failed = {"rdt_trial": trial(isolation="not isolated")}
    for nodes, word in {
        (0, 0): VERIFIED, (0, 1): UNVERIFIED, (1, 0): UNVERIFIED, (0, 2): UNVERIFIED,
    }.items():  # fmt: skip
        facts = as_one([(tested, untested, failed)[number] for number in nodes])
        assert masks_stamp({"split-4"}, {"measured"}, facts)[0] == word, nodes
    assert as_one([]) == {}
    assert as_one([tested, untested]) == {"hostname": "b", "rdt_trial": None, "memory_peak": PEAK}


@pytest.mark.parametrize(("hosts", "words"), [(["b"], "verified"), (["b", "c"], "unverified"), (["c"], "unverified")])
def test_the_page_believes_masks_that_the_nodes_of_a_class_have_tested(folder, hosts, words):
    part, windows = of_class("xeon", hosts)
    (folder.path / "machine.json").write_text(json.dumps({"hostname": "the login node"}))
    ours = windows[windows["cohort"] == "c1"]
    launches = tuple(
        launch.model_copy(update={"cohort": launch.cohort.model_copy(update={"machine": "xeon"})})
        for launch in part.launches
    )
    split = Partition(name="split-4", shares=(Share(member="x@0", ways=15),))
    mixes = (mix("x@0", "y@1").model_copy(update={"partitions": (split,)}),)
    effects = frame([{"partition": "split-4", "platform": "measured"}], {"partition": "str", "platform": "str"})
    empty = {name: frame([], {"platform": "str"}) for name in ("controls", "launches", "carryover")}
    whole = part.model_copy(update={"launches": launches, "mixes": mixes})
    assert Results(name="s", plan=whole, windows=ours, folder=folder, effects=effects, **empty).masks[0] == words
