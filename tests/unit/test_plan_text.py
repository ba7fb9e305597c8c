"""The plan's text has each cohort once, and gives the plan back."""

import json

import pytest

from castmates.study.plan_text import Common, plan_of, plan_text, unfolded
from castmates.study.spec import Plan
from tests.unit.snapshots import assert_as_before, refusal
from tests.unit.windows_maker import cohort, mix, plan

PLAN = plan([cohort("a-1", mix("bert@0", "stream@1")), cohort("b-2", mix("dlrm@0", "stream@1"))], launches=30)


def test_the_plan_comes_back_and_is_short():
    text = plan_text(PLAN)
    assert plan_of(text) == PLAN
    content = json.loads(text)
    assert list(content["cohorts"]) == ["a-1", "b-2"]
    assert len(content["designs"]) == 1
    assert content["launches"][30] == {"study": "example", "cohort": "b-2", "number": 1, "seed": 1, "design": "design"}
    assert Plan.model_validate(unfolded(content)) == PLAN


def test_launches_of_one_cohort_share_it():
    found = plan_of(plan_text(PLAN))
    assert len({id(launch.cohort) for launch in found.launches}) == 2
    assert len({id(launch.design) for launch in found.launches}) == 1
    common = Common()
    again = [common.launch_of(launch.model_dump(mode="json")) for launch in PLAN.launches]
    assert tuple(again) == PLAN.launches
    assert len({id(launch.cohort) for launch in again}) == 2


def test_cohorts_of_the_same_id_that_differ_are_told_apart():
    first, *rest = PLAN.launches
    rebuilt = first.model_copy(update={"cohort": first.cohort.model_copy(update={"native_key": "rebuilt"})})
    changed = PLAN.model_copy(update={"launches": (rebuilt, *rest)})
    assert plan_of(plan_text(changed)) == changed
    assert len(json.loads(plan_text(changed))["cohorts"]) == 3


@pytest.mark.parametrize("change", [{"cohorts": {}}, {"designs": {"design": {}}}, {"launches": [{"cohort": "x"}]}])
def test_a_plan_that_lacks_something_is_none(change):
    with pytest.raises(ValueError):
        plan_of(json.dumps(json.loads(plan_text(PLAN)) | change))
    with pytest.raises(ValueError):
        plan_of("[]")


def test_what_is_of_another_kind_is_no_plan():
    wrong = [{"launches": 3}, {"launches": [1]}, {"launches": [], "cohorts": []}]
    assert_as_before("no-plan", {str(content): refusal(unfolded, content) for content in wrong})
    for content in wrong:
        assert refusal(plan_of, json.dumps(content)) == refusal(unfolded, content)
