"""Fingerprints that are made of common parts are those of the whole text: no measured launch may get another one."""

import json

from castmates.study.plan_text import Fingerprints, plan_of, plan_text
from castmates.study.rounds import with_skipped, without_decisions
from castmates.study.spec import Design, Launch
from tests.unit.makers import plan, study


def test_fingerprints_are_those_of_the_whole_text():
    whole = plan(study(["x", "y"], ["a", "b"], budget={"launches": 3}))
    copied = plan_of(plan_text(whole))
    for each in (whole, copied, whole.model_copy(update={"launches": ()}), whole.model_copy(update={"study": 'a"b'})):
        ours = Fingerprints()
        assert ours.of_plan(each) == each.fingerprint(16)
        assert [ours.of_launch(launch) for launch in each.launches] == [
            launch.fingerprint(16) for launch in each.launches
        ]
        assert len({ours.of_launch(launch) for launch in each.launches}) == len(each.launches)


def test_what_has_its_default_stands_in_no_text_so_that_a_new_key_changes_none():
    launch = plan(study(["x"], ["a"])).launches[0]
    text = json.loads(launch.canonical())
    assert "skipped" not in text
    assert text["design"]["limits"] == {}
    assert Launch.model_validate(text) == launch
    changed = launch.design.limits.model_copy(update={"steal": 0.5})
    design = launch.design.model_copy(update={"limits": changed})
    assert json.loads(design.canonical())["limits"] == {"steal": 0.5}
    assert design.fingerprint() != launch.design.fingerprint() == Design.model_validate(text["design"]).fingerprint()


def test_a_decision_leaves_launches_their_fingerprints():
    before = plan(study(["x", "y"], ["a"], budget={"launches": 4, "rounds": "auto"}))
    after = plan(
        study(["x", "y"], ["a"], budget={"launches": 4, "rounds": "auto"}),
        decided={cohort.id: number for number, cohort in enumerate(before.cohorts, start=4)},
    )
    ours = Fingerprints()
    assert {launch.design.decided for launch in after.launches} == {True, False}
    assert [ours.of_launch(launch) for launch in without_decisions(after).launches] == [
        launch.fingerprint(16) for launch in before.launches
    ]


def test_a_launch_has_no_part_that_the_fingerprint_leaves_out_but_what_looks_decide():
    assert sorted(Launch.model_fields) == ["cohort", "design", "number", "seed", "skipped", "study"]
    before = plan(study(["x"], ["a", "b"], budget={"launches": 4, "most_launches": 8, "adaptive": True}))
    after = with_skipped(before, lambda launch: (launch.cohort.mixes[0].identity,))
    assert after.launches[0] != before.launches[0]
    assert without_decisions(after).launches == before.launches
    assert [Fingerprints().of_launch(launch) for launch in after.launches] == [
        launch.fingerprint(16) for launch in before.launches
    ]
