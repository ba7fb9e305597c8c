"""The plan is append-only: what was measured stays, and only what is missing is added."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.study.model import Workload
from castmates.study.planning import active_mixes
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
    assert [mix.name for mix in active_mixes(less, less.blocks[0].company)] == ["x+a"]
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


edits = st.lists(
    st.tuples(
        st.sets(st.sampled_from(NAMES), min_size=1),
        st.integers(1, 4),  # blocks
        st.integers(1, 3),  # company
        st.integers(0, 10_000),  # which of the planned blocks get measured
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(edits)
def test_any_history_of_edits_keeps_the_promises(history):
    measured = {}
    for antagonists, blocks, company, luck in history:
        one = study(["x", "y"], sorted(antagonists), budget={"blocks": blocks, "company": company})
        now = plan(one, measured=measured.values())
        paths = [block.path for block in now.blocks]
        assert len(paths) == len(set(paths))
        # what is measured and still of use is in the plan, exactly as it was measured
        planned = {block.path: block for block in now.blocks}
        for path, block in measured.items():
            if active_mixes(now, block.company):
                assert planned[path] == block
        # every mix gets its blocks, and a second look at a half-measured plan changes nothing
        for mix in now.mixes:
            assert sum(mix in block.company.mixes for block in now.blocks) >= blocks
        some = random.Random(luck).sample(now.blocks, k=luck % (len(now.blocks) + 1))
        assert plan(one, measured=[*measured.values(), *(b for b in some if b.path not in measured)]) == now
        measured |= {block.path: block for block in some}


def test_the_plan_does_not_depend_on_the_order_of_measured_blocks():
    before = plan(study(["x"], ["a", "b"]))
    shuffled = random.Random(1).sample(before.blocks, k=len(before.blocks))
    assert plan(study(["x"], ["a", "b", "c"]), measured=shuffled) == plan(
        study(["x"], ["a", "b", "c"]), measured=before.blocks
    )
