"""Small words of the page: counts of scenes, designs and names read as English."""

from types import SimpleNamespace

import pandas as pd
import pytest

from castmates.analysis.effects.stamps import study_verdict
from castmates.report.text import design as plan
from castmates.report.text.latency import refusals
from tests.unit import makers
from tests.unit.test_controls import judged


@pytest.mark.parametrize(
    ("refused", "scenes", "said"),
    [(1, 1, "its only scene"), (2, 2, "both scenes"), (3, 3, "all 3 scenes"), (1, 3, "1 of 3 scenes")],
)
def test_in_how_many_scenes(refused, scenes, said):
    rows = [
        {"member": "a@0", "quantile": "p95", "scene": f"s{n}", "refused": "few" * (n < refused)} for n in range(scenes)
    ]
    assert refusals(SimpleNamespace(latency=pd.DataFrame(rows))) == [f"p95 of a is refused in {said}; in s0: few."]


def test_a_design_is_told_in_words():
    [(_, pairs)] = plan.designs(makers.plan(makers.study(["a"], ["b"], machine={"prepare": {}})))
    texts = dict(pairs)
    assert texts["spare rounds"] == "1"
    assert texts["limits"].startswith("steal 0.03, foreign 0.05, ")
    assert texts["prepare"] == "nothing"
    assert texts["counters"].startswith("events basic, ")


def test_several_leads_with_too_few_blocks_agree_with_their_verb():
    said = study_verdict(judged("too few blocks", "too few blocks"))[1]
    assert "there are fewer of dlrm and bert;" in said
