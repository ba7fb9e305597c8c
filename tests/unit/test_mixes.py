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


def mixes_of(one: Study, cpus=(0, 1), programs=None):
    programs = programs or workloads("x", "y", "a", "b")
    catalogue.check_names(one, programs, "study.yaml")
    cast = resolve(one, Programs(programs, prepared(programs), "p"), Host(layout(cpus)), "study.yaml")
    return cast.mixes, cast.members


def error(*arguments, **keys) -> str:
    with pytest.raises(CastmatesError) as caught:
        mixes_of(*arguments, **keys)
    assert "\n" not in str(caught.value)
    return str(caught.value)


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
    ("one", "said"),
    [
        (study(["x"], ["c"]), "'c' in 'antagonists' is not in the catalogue"),
        (study(["x"], ["aa"]), "did you mean 'a'?"),
        (study(["x", "x"], ["a"]), "'x' is listed twice in 'leads'"),
        (study(["x"], []), "nothing to measure"),
        (study([], [], mixes=[{"lead": "x", "antagonists": ["q"]}]), "'q' in 'mixes.1.antagonists'"),
        (
            study(["x"], [], mixes=[{"lead": "x", "antagonists": ["a", "b"]}]),
            "asks for 3 cores (1 + 1 + 1), but only 2",
        ),
        (study(["x"], ["a"], placement={"lead": "7"}), "'placement.lead' names CPU 7, which is not there; CPUs 0-1"),
        (
            study(["x"], ["a"], placement={"lead": "0", "antagonists": "0"}),
            "has 0 CPUs besides the lead's, but the antagonists ask for 1",
        ),
        (study(["x"], ["a"], placement={"lead": "1-0"}), "'placement.lead' has the range 1-0, which ends before"),
        (study(["x"], ["a"], placement={"antagonists": "1,1"}), "'placement.antagonists' names CPU 1 twice"),
    ],
)
def test_what_cannot_be_is_said(one, said):
    assert said in error(one)


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
    assert [scene.name for scene in scenes_of(found, members, antagonists_alone=False)] == of_the_lead


def test_what_antagonists_lose_is_measured_where_mitigations_need_it():
    keys = "name: x\nbudget: {antagonists_alone: false}\nmitigations: [{lead: a, antagonists: [b]}]\n"
    with pytest.raises(CastmatesError, match=r"line 2: .*no 'antagonists_alone: false' beside 'mitigations'"):
        read_keys(Study, keys, "study.yaml")


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


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"command": "xz {inputs}/a"}, "one.yaml: the workload 'a' uses {inputs} but has no 'inputs'"),
        ({"command": "x", "variables": {"IN": "{inputs}"}}, "uses {inputs} but has no 'inputs'"),
        ({"command": "x", "options": {"from": "{inputs}"}}, "uses {inputs} but has no 'inputs'"),
        ({"command": "x", "inputs": "texts"}, "no such data set, did you mean 'text'? (there are: text)"),
        ({"command": "x", "progress": "output"}, "has 'progress: output' but no 'step_line'"),
        ({"command": "x", "ready_line": "go"}, "but its progress is 'runs'; make it 'output'"),
    ],
)
def test_keys_that_contradict_each_other(keys, said):
    with pytest.raises(CastmatesError) as caught:
        gather(one={"a": keys})
    assert said in str(caught.value)


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


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"one": {"a": {"like": "b"}, "b": {"like": "c"}, "c": {"like": "a"}}}, "a -> b -> c -> a"),
        ({"one": {"a": {"like": "a"}}}, "a -> a"),
        ({"one": {"a": {"like": "bb"}, "b": {"command": "x"}}}, "is like 'bb', which is not in the catalogue"),
        (
            {"one": {"a": {"command": "x"}}, "two": {"a": {"command": "y"}}},
            "two.yaml: the workload 'a' is also in one.yaml",
        ),
        ({"one": {"a": {"cores": 2}}}, "'a' has no 'command'"),
        ({"one": {"a": {"command": "x", "environment": "torch"}}}, "one.yaml: the workload 'a' needs the environment"),
    ],
)
def test_mistakes_across_workloads(files, said):
    with pytest.raises(CastmatesError) as caught:
        gather(**files)
    assert said in str(caught.value)


def test_a_studys_own_workload_may_not_hide_one_of_the_catalogue():
    with pytest.raises(CastmatesError, match=r"study.yaml: the workload 'a' is also in one.yaml"):
        gather(own={"a": {"command": "x"}}, one={"a": {"command": "y"}})


@given(st.sets(st.integers(0, 300), min_size=1))
def test_names_of_cpus_are_short_and_read_back(wanted):
    from castmates.study import cpus

    assert set(cpus.parse(cpus.name_of(wanted).replace(".", ","), "key")) == wanted
