"""Fingerprints that are made of common parts are those of the whole text: no measured block may get another one."""

import json

from castmates.study.decisions import with_skipped, without_decisions
from castmates.study.fingerprints import Fingerprints
from castmates.study.plan_text import plan_of, plan_text
from castmates.study.spec import Block, Design
from tests.unit.makers import plan, study


def test_fingerprints_are_those_of_the_whole_text():
    whole = plan(study(["x", "y"], ["a", "b"], budget={"blocks": 3}))
    copied = plan_of(plan_text(whole))
    for each in (whole, copied, whole.model_copy(update={"blocks": ()}), whole.model_copy(update={"study": 'a"b'})):
        ours = Fingerprints()
        assert ours.of_plan(each) == each.fingerprint(16)
        assert [ours.of_block(block) for block in each.blocks] == [block.fingerprint(16) for block in each.blocks]
        assert len({ours.of_block(block) for block in each.blocks}) == len(each.blocks)


def test_what_has_its_default_stands_in_no_text_so_that_a_new_key_changes_none():
    block = plan(study(["x"], ["a"])).blocks[0]
    text = json.loads(block.canonical())
    assert "skipped" not in text
    assert text["design"]["limits"] == {}
    assert Block.model_validate(text) == block
    changed = block.design.limits.model_copy(update={"steal": 0.5})
    design = block.design.model_copy(update={"limits": changed})
    assert json.loads(design.canonical())["limits"] == {"steal": 0.5}
    assert design.fingerprint() != block.design.fingerprint() == Design.model_validate(text["design"]).fingerprint()


def test_a_decision_leaves_blocks_their_fingerprints():
    before = plan(study(["x", "y"], ["a"], budget={"blocks": 4, "rounds": "auto"}))
    after = plan(
        study(["x", "y"], ["a"], budget={"blocks": 4, "rounds": "auto"}),
        decided={company.id: number for number, company in enumerate(before.companies, start=4)},
    )
    ours = Fingerprints()
    assert {block.design.decided for block in after.blocks} == {True, False}
    assert [ours.of_block(block) for block in without_decisions(after).blocks] == [
        block.fingerprint(16) for block in before.blocks
    ]


def test_a_block_has_no_part_that_the_fingerprint_leaves_out_but_what_looks_decide():
    assert sorted(Block.model_fields) == ["company", "design", "number", "seed", "skipped", "study"]
    before = plan(study(["x"], ["a", "b"], budget={"blocks": 4, "most_blocks": 8, "adaptive": True}))
    after = with_skipped(before, lambda block: (block.company.mixes[0].identity,))
    assert after.blocks[0] != before.blocks[0]
    assert without_decisions(after).blocks == before.blocks
    assert [Fingerprints().of_block(block) for block in after.blocks] == [
        block.fingerprint(16) for block in before.blocks
    ]
