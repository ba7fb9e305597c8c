"""The plan is append-only: what was measured stays, and only what is missing is added."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.study.model import Workload
from castmates.study.scenes import Room
from castmates.study.spec import Plan
from tests.unit.makers import plan, study, workloads

NAMES = ["a", "b", "c", "d", "e"]


def launch_names(one: Plan) -> set[str]:
    return {launch.path for launch in one.launches}


def test_one_cohort_per_lead():
    first = plan(study(["x", "y"], ["a", "b"]))
    assert len({launch.cohort.id for launch in first.launches}) == 2
    assert len(first.launches) == 2 * 5
    assert [mix.name for mix in first.mixes] == ["x+a", "x+b", "y+a", "y+b"]


def test_an_added_antagonist_forms_a_cohort_of_its_own():
    before = plan(study(["x"], ["a", "b"]))
    after = plan(study(["x"], ["a", "b", "c"]), measured=before.launches)
    assert launch_names(before) < launch_names(after)
    added = [launch for launch in after.launches if launch.path not in launch_names(before)]
    assert len(added) == 5
    assert {mix.name for launch in added for mix in launch.cohort.mixes} == {"x+c"}
    assert {"alone", "alone-again"} <= {scene.name for scene in added[0].cohort.scenes}


def test_measured_launches_keep_their_design_and_new_ones_get_the_new():
    before = plan(study(["x"], ["a"], budget={"launches": 2, "rounds": 3}))
    after = plan(study(["x"], ["a"], budget={"launches": 4, "rounds": 7}), measured=before.launches)
    assert [launch.design.rounds for launch in after.launches] == [3, 3, 7, 7]


def test_a_changed_command_is_another_workload():
    old = plan(study(["x"], ["a"]))
    programs = workloads("x", a=Workload(command="a --other"))
    new = plan(study(["x"], ["a"]), measured=old.launches, programs=programs)
    assert launch_names(new).isdisjoint(launch_names(old))


def test_patience_is_not_part_of_what_is_measured():
    old = plan(study(["x"], ["a"], budget={"launches": 2}), programs=workloads("x", a=Workload(command="a")))
    patient = workloads("x", a=Workload(command="a", ready_within=999))
    new = plan(study(["x"], ["a"], budget={"launches": 3}), measured=old.launches, programs=patient)
    assert launch_names(old) < launch_names(new)
    assert [launch.cohort.members[1].ready_within for launch in new.launches] == [180, 180, 999]


@pytest.mark.parametrize("changed", [{"content": "other"}, {"placebo": "other"}])
def test_another_content_is_measured_anew(changed):
    old = plan(study(["x"], ["a"]))
    new = plan(study(["x"], ["a"]), measured=old.launches, **changed)
    assert launch_names(new).isdisjoint(launch_names(old))
    assert [launch.seed for launch in new.launches] == [launch.seed for launch in old.launches], (
        "names alone decide the draw"
    )
    assert len({launch.seed for launch in new.launches}) == len(new.launches)


def test_where_something_is_built_is_not_part_of_what_is_measured():
    old = plan(study(["x"], ["a"], budget={"launches": 2}))
    new = plan(study(["x"], ["a"], budget={"launches": 3}), measured=old.launches, key="elsewhere")
    assert launch_names(old) < launch_names(new)
    assert [launch.cohort.native_key for launch in new.launches] == ["k", "k", "elsewhere"]


def test_cohorts_are_bounded():
    many = plan(study(["x"], NAMES, budget={"mixes_per_launch": 2}))
    assert max(len(launch.cohort.mixes) for launch in many.launches) == 2


def test_priorities_take_all_first_launches_first():
    from castmates.study.schedule import launch_priority

    launches = plan(study(["x", "y"], ["a"])).launches
    order = sorted(launches, key=lambda launch: -launch_priority(launch.seed, launch.number))
    assert [launch.number for launch in order] == sorted(launch.number for launch in launches)


def sizes(one: Plan) -> list[int]:
    return sorted(len(one.mixes) for one in {launch.cohort.id: launch.cohort for launch in one.launches}.values())


def names_of(one: Plan) -> set[tuple[str, ...]]:
    return {tuple(mix.antagonists[0] for mix in launch.cohort.mixes) for launch in one.launches}


def test_a_cohort_takes_no_more_than_its_share_of_the_memory():
    needs = {"x": 2, "a": 3, "b": 4, "c": 2, "d": 1, "e": 1}
    split = plan(study(["x"], NAMES), room=Room(bytes=10, needs=needs))
    # 8 of 10 may be taken, and the lead's 2 are in every cohort: each mix goes into the first that has room for it.
    assert names_of(split) == {("a@1", "c@1", "d@1"), ("b@1", "e@1")}
    assert sizes(plan(study(["x"], NAMES), room=Room(bytes=None, needs=needs))) == [5]


def test_instances_of_one_workload_on_different_cpus_take_their_memory_each():
    one = study(["x"], [], mixes=[{"lead": "x", "antagonists": ["a", "a"]}])
    with pytest.raises(
        CastmatesError, match=r"x\+a\+a takes 3\.0 GB \(x 1\.0 \+ a 1\.0 \+ a 1\.0\), but 80% of the memory that"
    ):
        plan(one, cpus=(0, 1, 2), room=Room(bytes=3 * 10**9, needs={"x": 10**9, "a": 10**9}))


def test_a_launch_is_kept_short_by_splitting_cohorts():
    budget = {"rounds": 10, "window": 1.0, "longest_launch": 85}
    split = plan(study(["x"], NAMES, budget=budget))
    # alone twice, a placebo and two scenes for each mix: 1 + 10 * 5 * 1.25 s for one; with two, alone comes twice in
    # a cycle, and they take 1 + 10 * 8 * 1.25 s
    assert sizes(split) == [1] * 5
    assert sizes(plan(study(["x"], NAMES, budget=budget | {"longest_launch": 100}))) == [1] * 5
    assert sizes(plan(study(["x"], NAMES, budget=budget | {"longest_launch": 102}))) == [1, 2, 2]
    assert sizes(plan(study(["x"], ["a"], budget=budget | {"longest_launch": 1}))) == [1]  # it cannot be split


def test_a_measured_cohort_is_never_regrouped():
    before = plan(study(["x"], NAMES))
    needs = dict.fromkeys(["x", *NAMES], 1)
    after = plan(study(["x"], NAMES), measured=before.launches[:1], room=Room(bytes=3, needs=needs))
    assert after.memory == needs
    assert after.model_copy(update={"memory": {}}) == before


def test_a_wanted_precision_plans_to_the_limit_and_says_when_each_launch_is_due():
    budget = {"precision": 0.01, "launches": 4, "batch": 3, "most_launches": 11}
    one = plan(study(["x"], ["a"], budget=budget))
    assert [[int(path.partition("/")[2]) for path in look] for look in one.looks] == [
        [1, 2, 3, 4],
        [5, 6, 7],
        [8, 9, 10],
        [11],
    ]
    assert plan(study(["x"], ["a"])).looks == ()


def test_controls_follow_the_first_look():
    budget = {"precision": 0.01, "launches": 4, "most_launches": 10}
    control = {"positive": {"lead": "y", "antagonists": ["b"]}, "negative": None}
    one = plan(study(["x"], ["a"], budget=budget, controls=control), programs=workloads("x", "y", "a", "b"))
    assert Counter(launch.cohort.lead.workload for launch in one.launches) == {"x": 10, "y": 4}
    assert all(path in one.looks[0] for path in launch_names(one) if path.startswith("y"))


@pytest.mark.parametrize(("lead", "beside", "with_placebo"), [("y", "b", {"y"}), ("x", "a", {"x"}), ("x", "b", {"x"})])
def test_a_control_has_its_placebo_also_in_a_study_without(lead, beside, with_placebo):
    control = {"positive": {"lead": lead, "antagonists": [beside]}, "negative": None}
    made = study(["x"], ["a"], budget={"placebo": False}, controls=control)
    one = plan(made, programs=workloads("x", "y", "a", "b"))
    kinds = {cohort.lead.workload: {scene.kind for scene in cohort.scenes} for cohort in one.cohorts}
    assert {name for name, found in kinds.items() if "placebo" in found} == with_placebo


def test_a_mix_that_changes_its_cohort_goes_on_counting():
    budget = {"precision": 0.01, "launches": 4, "most_launches": 10}
    both = plan(study(["x"], ["a", "b"], budget=budget))
    measured = [launch for launch in both.launches if launch.number <= 4]
    less = plan(study(["x"], ["a"], budget=budget), measured=measured)
    assert set(less.looks[0]) == {launch.path for launch in measured}
    assert [len(look) for look in less.looks] == [4, 2, 2, 2]
    assert len({launch.cohort.id for launch in less.launches}) == 2


def test_rounds_of_a_pilot_must_be_known_by_then():
    with pytest.raises(CastmatesError, match="takes its rounds from a pilot"):
        plan(study(["x"], ["a"], budget={"rounds": "pilot"}))


edits = st.lists(
    st.tuples(
        st.sets(st.sampled_from(NAMES), min_size=1),
        st.integers(1, 4),  # launches
        st.integers(1, 3),  # cohort
        st.integers(0, 10_000),  # which of the planned launches get measured
        st.none() | st.integers(10, 15),  # most launches, where a precision is wanted
    ),
    min_size=1,
    max_size=5,
)
NEEDS = {"x": 1, "y": 2, "a": 1, "b": 2, "c": 3, "d": 1, "e": 2}


@settings(max_examples=150, deadline=None)
@given(edits)
def test_any_history_of_edits_keeps_the_promises(history):
    measured = {}
    for antagonists, launches, cohort, luck, most in history:
        budget = {"launches": launches, "mixes_per_launch": cohort}
        if most is not None:
            budget = {"launches": 4, "mixes_per_launch": cohort, "precision": 0.01, "most_launches": most}
        one = study(["x", "y"], sorted(antagonists), budget=budget)
        room = Room(bytes=10, needs=NEEDS)
        now = plan(one, measured=measured.values(), room=room)
        paths = [launch.path for launch in now.launches]
        assert len(paths) == len(set(paths))
        # what is measured and still of use is in the plan, exactly as it was measured
        planned = {launch.path: launch for launch in now.launches}
        for path, launch in measured.items():
            if now.wanted.keys() & {mix.identity for mix in launch.cohort.mixes}:
                assert planned[path] == launch
        # every mix gets its launches, and a second look at a half-measured plan changes nothing
        for mix in now.mixes:
            assert sum(mix in launch.cohort.mixes for launch in now.launches) >= one.budget.looks[-1]
        # each look holds every launch once, and at every look each mix has the launches that are due
        if now.looks:
            assert sorted(path for look in now.looks for path in look) == sorted(paths)
            for number, due in enumerate(one.budget.looks, start=1):
                there = {path for look in now.looks[:number] for path in look}
                for mix in now.mixes:
                    assert sum(mix in planned[path].cohort.mixes for path in there) >= due
        some = random.Random(luck).sample(now.launches, k=luck % (len(now.launches) + 1))
        again = [*measured.values(), *(b for b in some if b.path not in measured)]
        assert plan(one, measured=again, room=room) == now
        measured |= {launch.path: launch for launch in some}


def test_the_plan_does_not_depend_on_the_order_of_measured_launches():
    before = plan(study(["x"], ["a", "b"]))
    shuffled = random.Random(1).sample(before.launches, k=len(before.launches))
    assert plan(study(["x"], ["a", "b", "c"]), measured=shuffled) == plan(
        study(["x"], ["a", "b", "c"]), measured=before.launches
    )


def test_a_program_that_is_a_lead_here_and_an_antagonist_there_has_the_right_role_in_each_cohort():
    one = study([], [], mixes=[{"lead": "a", "antagonists": ["b"]}, {"lead": "b", "antagonists": ["a"]}])
    layout = plan(one, programs=workloads("a", "b"))
    for launch in layout.launches:
        lead, *others = launch.cohort.members
        assert lead.role == "lead"
        assert {member.role for member in others} == {"antagonist"}
