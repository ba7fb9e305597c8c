"""Small words of the page: counts of scenes, designs and names read as English."""

from types import SimpleNamespace

import pandas as pd
import pytest

from castmates.analysis.effects.stamps import study_verdict
from castmates.report.text import design as plan
from castmates.report.text.latency import _scene, refusals
from castmates.study.rounds import with_decisions
from tests.unit import makers
from tests.unit.test_controls import judged


@pytest.mark.parametrize(
    ("refused", "scenes", "said"),
    [(1, 1, "its only scene"), (2, 2, "both scenes"), (3, 3, "all 3 scenes"), (1, 3, "1 of 3 scenes")],
)
def test_in_how_many_scenes(refused, scenes, said):
    rows = [
        {"member": "a@0", "workload": "a", "what": "step", "quantile": "p95", "refused": "few" * (n < refused),
         "kind": "corun", "scene": f"corun:a+s{n}", "mix": f"a@0+s{n}@1", "partition": "unmanaged"}
         for n in range(scenes)
    ]  # fmt: skip
    assert refusals(SimpleNamespace(latency=pd.DataFrame(rows))) == [f"p95 of a is left out in {said}; beside s0: few."]


def test_a_design_is_told_in_words():
    [(_, pairs)] = plan.designs(makers.plan(makers.study(["a"], ["b"], machine={"prepare": {}})))
    texts = dict(pairs)
    assert texts["spare rounds"] == "1"
    assert texts["limits"].startswith("steal 3%, foreign 5%, ")
    assert texts["prepare"] == "nothing"
    assert texts["counters"].startswith("events basic, ")


def test_designs_that_differ_in_rounds_alone_are_told_together():
    one = makers.study(["a"], ["b"])
    made = makers.plan(one)
    ((heading, pairs),) = plan.designs(with_decisions(made, {made.cohorts[0].id: 9}))
    assert heading == "Design of the launches (times in seconds)"
    assert dict(pairs)["rounds"] == "3 (in 2 launches), 9 (in 3 launches)"
    assert "decided" not in dict(pairs)
    assert dict(plan.designs(made)[0][1])["rounds"] == "not decided (in 3 launches), 3 (in 2 launches)"
    fixed = makers.plan(makers.study(["a"], ["b"], budget={"rounds": 4}))
    assert dict(plan.designs(fixed)[0][1])["rounds"] == "4"


def test_several_leads_with_too_few_launches_agree_with_their_verb():
    said = study_verdict(judged("too few launches", "too few launches"))[1]
    assert "there are fewer of dlrm and bert;" in said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("alone", "alone", "", "unmanaged", "a"), "alone"),
        (("placebo", "placebo:1@split-4", "", "split-4", "a"), "placebo on 1, under split-4"),
        (("corun", "corun:a+b+c@split-4", "a@0+b@1+c@2", "split-4", "a"), "beside b and c, under split-4"),
        (("corun", "corun:a+b", "a@0+b@1", "unmanaged", "b"), "beside a"),
        (("antagonist-alone", "antagonist-alone:b@1", "", "unmanaged", "b"), "alone"),
    ],
)
def test_a_scene_in_words(row, said):
    assert _scene(dict(zip(("kind", "scene", "mix", "partition", "workload"), row, strict=True))) == said
