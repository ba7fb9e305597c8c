"""The plan is append-only: what was measured stays, and only what is missing is added."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.study.companies import Room
from castmates.study.model import Workload
from castmates.study.spec import Plan
from tests.unit.makers import plan, study, workloads

NAMES = ["a", "b", "c", "d", "e"]


def block_names(one: Plan) -> set[str]:
    return {block.path for block in one.blocks}


def test_one_company_per_lead():
    first = plan(study(["x", "y"], ["a", "b"]))
    assert len({block.company.id for block in first.blocks}) == 2
    assert len(first.blocks) == 2 * 5
    assert [mix.name for mix in first.mixes] == ["x+a", "x+b", "y+a", "y+b"]


def test_an_added_antagonist_forms_a_company_of_its_own():
    before = plan(study(["x"], ["a", "b"]))
    after = plan(study(["x"], ["a", "b", "c"]), measured=before.blocks)
    assert block_names(before) < block_names(after)
    added = [block for block in after.blocks if block.path not in block_names(before)]
    assert len(added) == 5
    assert {mix.name for block in added for mix in block.company.mixes} == {"x+c"}
    assert {"solo", "solo-again"} <= {scene.name for scene in added[0].company.scenes}


def test_nothing_measured_yet_means_the_new_antagonist_joins_the_launch():
    after = plan(study(["x"], ["a", "b", "c"]), measured=[])
    assert len({block.company.id for block in after.blocks}) == 1


def test_a_larger_budget_adds_blocks_and_a_smaller_one_takes_none_back():
    before = plan(study(["x"], ["a"], budget={"blocks": 3}))
    larger = plan(study(["x"], ["a"], budget={"blocks": 5}), measured=before.blocks)
    assert block_names(before) < block_names(larger)
    assert len(larger.blocks) == 5
    smaller = plan(study(["x"], ["a"], budget={"blocks": 2}), measured=larger.blocks)
    assert block_names(smaller) == block_names(larger)


def test_measured_blocks_keep_their_design_and_new_ones_get_the_new():
    before = plan(study(["x"], ["a"], budget={"blocks": 2, "rounds": 3}))
    after = plan(study(["x"], ["a"], budget={"blocks": 4, "rounds": 7}), measured=before.blocks)
    assert [block.design.rounds for block in after.blocks] == [3, 3, 7, 7]


def test_a_removed_antagonist_costs_nothing_and_coming_back_neither():
    before = plan(study(["x"], ["a", "b"]))
    less = plan(study(["x"], ["a"]), measured=before.blocks)
    assert block_names(less) == block_names(before)
    assert [mix.name for mix in less.mixes] == ["x+a"]
    assert plan(study(["x"], ["a", "b"]), measured=before.blocks) == before


def test_a_changed_command_is_another_workload():
    old = plan(study(["x"], ["a"]))
    programs = workloads("x", a=Workload(command="a --other"))
    new = plan(study(["x"], ["a"]), measured=old.blocks, programs=programs)
    assert block_names(new).isdisjoint(block_names(old))


def test_patience_is_not_part_of_what_is_measured():
    old = plan(study(["x"], ["a"], budget={"blocks": 2}), programs=workloads("x", a=Workload(command="a")))
    patient = workloads("x", a=Workload(command="a", ready_within=999))
    new = plan(study(["x"], ["a"], budget={"blocks": 3}), measured=old.blocks, programs=patient)
    assert block_names(old) < block_names(new)
    assert [block.company.members[1].ready_within for block in new.blocks] == [180, 180, 999]


@pytest.mark.parametrize("changed", [{"content": "other"}, {"placebo": "other"}])
def test_another_content_is_measured_anew(changed):
    old = plan(study(["x"], ["a"]))
    new = plan(study(["x"], ["a"]), measured=old.blocks, **changed)
    assert block_names(new).isdisjoint(block_names(old))
    assert [block.seed for block in new.blocks] == [block.seed for block in old.blocks], "names alone decide the draw"
    assert len({block.seed for block in new.blocks}) == len(new.blocks)


def test_where_something_is_built_is_not_part_of_what_is_measured():
    old = plan(study(["x"], ["a"], budget={"blocks": 2}))
    new = plan(study(["x"], ["a"], budget={"blocks": 3}), measured=old.blocks, key="elsewhere")
    assert block_names(old) < block_names(new)
    assert [block.company.native_key for block in new.blocks] == ["k", "k", "elsewhere"]


def test_companies_are_bounded():
    many = plan(study(["x"], NAMES, budget={"company": 2}))
    assert max(len(block.company.mixes) for block in many.blocks) == 2


def test_priorities_take_all_first_blocks_first():
    from castmates.study.schedule import block_priority

    blocks = plan(study(["x", "y"], ["a"])).blocks
    order = sorted(blocks, key=lambda block: -block_priority(block.seed, block.number))
    assert [block.number for block in order] == sorted(block.number for block in blocks)


def sizes(one: Plan) -> list[int]:
    return sorted(len(one.mixes) for one in {block.company.id: block.company for block in one.blocks}.values())


def names_of(one: Plan) -> set[tuple[str, ...]]:
    return {tuple(mix.antagonists[0] for mix in block.company.mixes) for block in one.blocks}


def test_a_company_takes_no_more_than_its_share_of_the_memory():
    needs = {"x": 2, "a": 3, "b": 4, "c": 2, "d": 1, "e": 1}
    split = plan(study(["x"], NAMES), room=Room(bytes=10, needs=needs))
    # 8 of 10 may be taken, and the lead's 2 are in every company: each mix goes into the first that has room for it.
    assert names_of(split) == {("a@1", "c@1", "d@1"), ("b@1", "e@1")}
    assert sizes(plan(study(["x"], NAMES), room=Room(bytes=None, needs=needs))) == [5]


def test_instances_of_one_workload_on_different_cpus_take_their_memory_each():
    one = study(["x"], [], mixes=[{"lead": "x", "antagonists": ["a", "a"]}])
    with pytest.raises(
        CastmatesError, match=r"x\+a\+a takes 3\.0 GB \(x 1\.0 \+ a 1\.0 \+ a 1\.0\), but 80% of the memory that"
    ):
        plan(one, cpus=(0, 1, 2), room=Room(bytes=3 * 10**9, needs={"x": 10**9, "a": 10**9}))


def test_a_block_is_kept_short_by_splitting_companies():
    budget = {"rounds": 10, "window": 1.0, "longest_block": 85}
    split = plan(study(["x"], NAMES, budget=budget))
    # solo twice, a placebo and two scenes for each mix: 1 + 10 * 5 * 1.25 s for one; with two, the solo comes twice in
    # a cycle, and they take 1 + 10 * 8 * 1.25 s
    assert sizes(split) == [1] * 5
    assert sizes(plan(study(["x"], NAMES, budget=budget | {"longest_block": 100}))) == [1] * 5
    assert sizes(plan(study(["x"], NAMES, budget=budget | {"longest_block": 102}))) == [1, 2, 2]
    assert sizes(plan(study(["x"], ["a"], budget=budget | {"longest_block": 1}))) == [1]  # it cannot be split


def test_a_measured_company_is_never_regrouped():
    before = plan(study(["x"], NAMES))
    needs = dict.fromkeys(["x", *NAMES], 1)
    after = plan(study(["x"], NAMES), measured=before.blocks[:1], room=Room(bytes=3, needs=needs))
    assert after.memory == needs
    assert after.model_copy(update={"memory": {}}) == before


def test_a_wanted_precision_plans_to_the_limit_and_says_when_each_block_is_due():
    budget = {"precision": 0.01, "blocks": 4, "batch": 3, "most_blocks": 11}
    one = plan(study(["x"], ["a"], budget=budget))
    assert [[int(path.partition("/")[2]) for path in look] for look in one.looks] == [
        [1, 2, 3, 4],
        [5, 6, 7],
        [8, 9, 10],
        [11],
    ]
    assert plan(study(["x"], ["a"])).looks == ()


def test_controls_follow_the_first_look():
    budget = {"precision": 0.01, "blocks": 4, "most_blocks": 10}
    control = {"positive": {"lead": "y", "antagonists": ["b"]}, "negative": None}
    one = plan(study(["x"], ["a"], budget=budget, controls=control), programs=workloads("x", "y", "a", "b"))
    assert Counter(block.company.lead.workload for block in one.blocks) == {"x": 10, "y": 4}
    assert all(path in one.looks[0] for path in block_names(one) if path.startswith("y"))


def test_a_mix_that_changes_its_company_goes_on_counting():
    budget = {"precision": 0.01, "blocks": 4, "most_blocks": 10}
    both = plan(study(["x"], ["a", "b"], budget=budget))
    measured = [block for block in both.blocks if block.number <= 4]
    less = plan(study(["x"], ["a"], budget=budget), measured=measured)
    assert set(less.looks[0]) == {block.path for block in measured}
    assert [len(look) for look in less.looks] == [4, 2, 2, 2]
    assert len({block.company.id for block in less.blocks}) == 2


def test_rounds_of_a_pilot_must_be_known_by_then():
    with pytest.raises(CastmatesError, match="takes its rounds from a pilot"):
        plan(study(["x"], ["a"], budget={"rounds": "pilot"}))


edits = st.lists(
    st.tuples(
        st.sets(st.sampled_from(NAMES), min_size=1),
        st.integers(1, 4),  # blocks
        st.integers(1, 3),  # company
        st.integers(0, 10_000),  # which of the planned blocks get measured
        st.none() | st.integers(10, 15),  # most blocks, where a precision is wanted
    ),
    min_size=1,
    max_size=5,
)
NEEDS = {"x": 1, "y": 2, "a": 1, "b": 2, "c": 3, "d": 1, "e": 2}


@settings(max_examples=150, deadline=None)
@given(edits)
def test_any_history_of_edits_keeps_the_promises(history):
    measured = {}
    for antagonists, blocks, company, luck, most in history:
        budget = {"blocks": blocks, "company": company}
        if most is not None:
            budget = {"blocks": 4, "company": company, "precision": 0.01, "most_blocks": most}
        one = study(["x", "y"], sorted(antagonists), budget=budget)
        room = Room(bytes=10, needs=NEEDS)
        now = plan(one, measured=measured.values(), room=room)
        paths = [block.path for block in now.blocks]
        assert len(paths) == len(set(paths))
        # what is measured and still of use is in the plan, exactly as it was measured
        planned = {block.path: block for block in now.blocks}
        for path, block in measured.items():
            if now.wanted.keys() & {mix.identity for mix in block.company.mixes}:
                assert planned[path] == block
        # every mix gets its blocks, and a second look at a half-measured plan changes nothing
        for mix in now.mixes:
            assert sum(mix in block.company.mixes for block in now.blocks) >= one.budget.looks[-1]
        # each look holds every block once, and at every look each mix has the blocks that are due
        if now.looks:
            assert sorted(path for look in now.looks for path in look) == sorted(paths)
            for number, due in enumerate(one.budget.looks, start=1):
                there = {path for look in now.looks[:number] for path in look}
                for mix in now.mixes:
                    assert sum(mix in planned[path].company.mixes for path in there) >= due
        some = random.Random(luck).sample(now.blocks, k=luck % (len(now.blocks) + 1))
        again = [*measured.values(), *(b for b in some if b.path not in measured)]
        assert plan(one, measured=again, room=room) == now
        measured |= {block.path: block for block in some}


def test_the_plan_does_not_depend_on_the_order_of_measured_blocks():
    before = plan(study(["x"], ["a", "b"]))
    shuffled = random.Random(1).sample(before.blocks, k=len(before.blocks))
    assert plan(study(["x"], ["a", "b", "c"]), measured=shuffled) == plan(
        study(["x"], ["a", "b", "c"]), measured=before.blocks
    )


def test_a_program_that_is_a_lead_here_and_an_antagonist_there_has_the_right_role_in_each_company():
    one = study([], [], mixes=[{"lead": "a", "antagonists": ["b"]}, {"lead": "b", "antagonists": ["a"]}])
    layout = plan(one, programs=workloads("a", "b"))
    for block in layout.blocks:
        lead, *others = block.company.members
        assert lead.role == "lead"
        assert {member.role for member in others} == {"antagonist"}
