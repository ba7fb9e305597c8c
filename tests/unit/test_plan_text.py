"""The plan's text has each company once, and gives the plan back."""

import json

import pytest

from castmates.study.plan_text import Common, plan_of, plan_text, unfolded
from castmates.study.spec import Plan
from tests.unit.windows_maker import company, mix, plan

PLAN = plan([company("a-1", mix("bert@0", "stream@1")), company("b-2", mix("dlrm@0", "stream@1"))], launches=30)


def test_the_plan_comes_back_and_is_short():
    text = plan_text(PLAN)
    assert plan_of(text) == PLAN
    content = json.loads(text)
    assert list(content["companies"]) == ["a-1", "b-2"]
    assert len(content["designs"]) == 1
    assert content["launches"][30] == {"study": "example", "company": "b-2", "number": 1, "seed": 1, "design": "design"}
    assert Plan.model_validate(unfolded(content)) == PLAN


def test_launches_of_one_company_share_it():
    found = plan_of(plan_text(PLAN))
    assert len({id(launch.company) for launch in found.launches}) == 2
    assert len({id(launch.design) for launch in found.launches}) == 1
    common = Common()
    again = [common.launch_of(launch.model_dump(mode="json")) for launch in PLAN.launches]
    assert tuple(again) == PLAN.launches
    assert len({id(launch.company) for launch in again}) == 2


def test_companies_of_the_same_id_that_differ_are_told_apart():
    first, *rest = PLAN.launches
    rebuilt = first.model_copy(update={"company": first.company.model_copy(update={"native_key": "rebuilt"})})
    changed = PLAN.model_copy(update={"launches": (rebuilt, *rest)})
    assert plan_of(plan_text(changed)) == changed
    assert len(json.loads(plan_text(changed))["companies"]) == 3


@pytest.mark.parametrize("change", [{"companies": {}}, {"designs": {"design": {}}}, {"launches": [{"company": "x"}]}])
def test_a_plan_that_lacks_something_is_none(change):
    with pytest.raises(ValueError):
        plan_of(json.dumps(json.loads(plan_text(PLAN)) | change))
    with pytest.raises(ValueError):
        plan_of("[]")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"launches": 3}, "its 'launches' is not a list"),
        ({"launches": [1]}, "one of its launches is not a mapping"),
        ({"launches": [], "companies": []}, "its 'companies' is not a mapping"),
    ],
)
def test_what_is_of_another_kind_is_no_plan(content, why):
    for reads in (unfolded, lambda one: plan_of(json.dumps(one))):
        with pytest.raises(ValueError, match=why):
            reads(content)
