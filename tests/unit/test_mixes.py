"""A study becomes mixes on CPUs, or one sentence that explains why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.study import catalogue
from castmates.study.mixes import Host, Programs, resolve
from castmates.study.model import Catalogue, Study, Workload
from castmates.study.reading import read_keys
from castmates.study.scenes import scenes_of
from castmates.study.spec import Member
from tests.unit.makers import ENVIRONMENTS, layout, prepared, study, workloads
from tests.unit.snapshots import assert_as_before, refusal


def mixes_of(one: Study, cpus=(0, 1), programs=None):
    programs = programs or workloads("x", "y", "a", "b")
    catalogue.check_names(one, programs, "study.yaml")
    cast = resolve(one, Programs(programs, prepared(programs), "p"), Host(layout(cpus)), "study.yaml")
    return cast.mixes, cast.members


def test_what_cannot_be_is_said():
    three = [{"lead": "x", "antagonists": ["a", "b"]}]
    of = {
        "an unknown antagonist": study(["x"], ["c"]),
        "almost an antagonist": study(["x"], ["aa"]),
        "a lead twice": study(["x", "x"], ["a"]),
        "nothing": study([], ["a"]),
        "nothing beside it": study(["x"], [], cache={"sweeps": [{"split": "all"}]}),
        "an unknown one in a mix": study([], [], mixes=[{"lead": "x", "antagonists": ["q"]}]),
        "too many cores": study(["x"], [], mixes=three),
        "a CPU that is not there": study(["x"], ["a"], placement={"lead": "7"}),
        "one CPU for both": study(["x"], ["a"], placement={"lead": "0", "antagonists": "0"}),
        "a range backwards": study(["x"], ["a"], placement={"lead": "1-0"}),
        "a CPU twice": study(["x"], ["a"], placement={"antagonists": "1,1"}),
    }
    assert_as_before("mixes", {name: refusal(mixes_of, one) for name, one in of.items()})


def test_leads_and_antagonists_are_crossed_and_mixes_added_once():
    one = study(["x"], ["a"], mixes=[{"lead": "x", "antagonists": ["a"]}, {"lead": "y", "antagonists": ["a", "b"]}])
    found, members = mixes_of(one, cpus=(0, 1, 2))
    assert [mix.name for mix in found] == ["x+a", "y+a+b"]
    assert members["x@0"].cpus == (0,)
    assert found[1].antagonists == ("a@1", "b@2")


def test_two_instances_get_cpus_of_their_own():
    found, _ = mixes_of(study(["x"], [], mixes=[{"lead": "x", "antagonists": ["a", "a"]}]), cpus=(0, 1, 2))
    assert {mix.name for mix in found} == {"x+a+a"}
    assert found[0].antagonists == ("a@1", "a@2")


def test_explicit_cpus_are_taken_in_their_order():
    one = study(["x"], ["a"], placement={"lead": "3", "antagonists": "2,0-1"})
    found, _ = mixes_of(one, cpus=(0, 1, 2, 3))
    assert (found[0].lead, found[0].antagonists) == ("x@3", ("a@2",))


@pytest.mark.parametrize(
    ("keys", "alone"),
    [
        ({}, []),
        ({"profile": {}}, ["extra"]),
        ({"mixes": []}, ["extra", "job"]),
    ],
)
def test_a_lead_without_a_mix_is_measured_alone_where_that_is_asked_for(keys, alone):
    attached = Workload(command="python train.py", progress="heartbeat", attach="torch")
    programs = workloads("stream", job=attached, extra=attached)
    asked = {"mixes": [{"lead": "job", "antagonists": ["stream"]}]} | keys
    leads = ["extra"] if asked["mixes"] else ["extra", "job"]
    found, _ = mixes_of(study(leads, [], **asked), programs=programs)
    assert [mix.name for mix in found if not mix.antagonists] == alone


@given(
    st.lists(st.integers(1, 3), min_size=2, max_size=5),
    st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True),
)
def test_no_cpu_serves_two_members_of_a_mix(cores, cpus):
    names = [f"w{number}" for number in range(len(cores))]
    programs = {name: Workload(command=name, cores=need) for name, need in zip(names, cores, strict=True)}
    one = study([], [], mixes=[{"lead": names[0], "antagonists": names[1:]}])
    try:
        found, members = mixes_of(one, cpus=cpus, programs=programs)
    except CastmatesError:
        assert sum(cores) > len(cpus)
        return
    taken = [cpu for name in (found[0].lead, *found[0].antagonists) for cpu in members[name].cpus]
    assert len(taken) == len(set(taken)) == sum(cores)
    assert set(taken) <= set(cpus)


def test_scenes_hold_each_baseline_once():
    found, members = mixes_of(study(["x"], ["a", "b"]))
    of_the_lead = ["alone", "alone-again", "placebo:1", "corun:x+a", "corun:x+b"]
    assert [scene.name for scene in scenes_of(found, members)] == [
        *of_the_lead,
        "antagonist-alone:a@1",
        "antagonist-alone:b@1",
    ]
    assert [scene.name for scene in scenes_of(found, members, {"antagonist-alone"})] == of_the_lead
    of_the_lead.remove("placebo:1")
    assert [scene.name for scene in scenes_of(found, members, {"antagonist-alone", "placebo"})] == of_the_lead


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "budget: {antagonists_alone: false}\nmitigations: [{lead: a, antagonists: [b]}]\n",
            "line 2: .*no 'antagonists_alone: false' beside 'mitigations'",
        ),
        (
            "budget: {placebo: false}\nmitigations: [{lead: a, antagonists: [b]}]\n",
            "line 2: .*no 'placebo: false' beside 'mitigations'",
        ),
        (
            "budget: {placebo: false}\ncache: {sweeps: [{name: s, split: 4}]}\n",
            "line 3: .*no 'cache.sweeps' beside 'placebo: false'",
        ),
    ],
)
def test_scenes_are_measured_where_something_is_compared_with_them(keys, said):
    with pytest.raises(CastmatesError, match=said):
        read_keys(Study, f"name: x\n{keys}", "study.yaml")


def gather(own=None, **files):
    named = [(f"{name}.yaml", Catalogue.model_validate({"workloads": entries})) for name, entries in files.items()]
    one = Study.model_validate({"name": "s", "workloads": own or {}})
    return catalogue.gather_catalogue(named, one, "study.yaml", ENVIRONMENTS, ("text",))


def test_like_takes_over_what_is_not_said():
    found = gather(one={"a": {"command": "go", "cores": 2, "title": "A"}, "b": {"like": "a", "cores": 3}})
    assert (found["b"].command, found["b"].cores, found["b"].unit) == ("go", 3, "run")


def test_options_are_appended_and_those_of_like_hold_name_by_name():
    stream = {"command": "stream --now", "options": {"bytes": "64M", "mode": "triad", "rate": 0.5, "huge": True}}
    child = {"like": "stream", "options": {"mode": "copy", "huge": False, "threads": 2}}
    found = gather(one={"stream": stream, "child": child, "plain": {"like": "stream"}})
    assert " ".join(found["stream"].words) == "stream --now --bytes 64M --mode triad --rate 0.5 --huge"
    assert " ".join(found["child"].words) == "stream --now --bytes 64M --mode copy --rate 0.5 --threads 2"
    assert found["plain"].words == found["stream"].words


def test_mistakes_in_catalogues():
    keys = [
        {"command": "xz {inputs}/a"}, {"command": "x", "variables": {"IN": "{inputs}"}},
        {"command": "x", "options": {"from": "{inputs}"}}, {"command": "x", "inputs": "texts"},
        {"command": "x", "progress": "output"}, {"command": "x", "ready_line": "go"}, {"cores": 2}, {"like": "a"},
        {"command": "x", "environment": "torch"},
    ]  # fmt: skip
    files = [
        {"one": {"a": {"like": "b"}, "b": {"like": "c"}, "c": {"like": "a"}}},
        {"one": {"a": {"like": "bb"}, "b": {"command": "x"}}},
        {"one": {"a": {"command": "x"}}, "two": {"a": {"command": "y"}}},
        {"own": {"a": {"command": "x"}}, "one": {"a": {"command": "y"}}},
    ]
    assert_as_before(
        "catalogues",
        {str(each): refusal(gather, **each) for each in [*({"one": {"a": each}} for each in keys), *files]},
    )


def test_other_braces_stay_as_they_are():
    assert gather(one={"a": {"command": "awk '{print}' {input}"}})["a"].words == ["awk", "{print}", "{input}"]


def member_of(**keys):
    programs = workloads("x", "y") | {"x": Workload.model_validate({"command": "x", **keys})}
    found, members = mixes_of(study(["x"], ["y"]), programs=programs)
    return found[0].identity, members["x@0"]


def test_keys_count_where_they_say_what_is_measured():
    plain, member = member_of()
    assert Member.model_validate_json(member.canonical()) == member
    assert member_of(package="xz-utils")[0] == plain
    output, spoken = member_of(progress="output", step_line="step", inputs="text")
    assert output not in (plain, member_of(progress="output", step_line="stop", inputs="text")[0])
    assert Member.model_validate_json(spoken.canonical()) == spoken


@given(st.sets(st.integers(0, 300), min_size=1))
def test_names_of_cpus_are_short_and_read_back(wanted):
    from castmates.study import cpus

    assert set(cpus.parse(cpus.name_of(wanted).replace(".", ","), "key")) == wanted
