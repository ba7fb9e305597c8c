"""What changes of a number beside others: what is compared with what, and whether intervals hold the truth."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.operations.per_trace import differences
from tests.unit.operations_maker import COMMON
from tests.unit.printed_intervals import assert_told

SCENES = {"alone": ("alone", ""), "corun:lead@0+other@1": ("corun", "lead@0+other@1")}


def trace(scene, launch, repetition, **more):
    kind, mix = SCENES[scene]
    about = {"scene": scene, "kind": kind, "mix": mix, "launch": launch, "round": repetition}
    return COMMON | about | more


def test_traces_are_compared_inside_a_round_and_what_one_lacks_is_nothing():
    alone, corun = SCENES
    rows = [trace(alone, launch, 1, pool="a", busy=1.0 + launch) for launch in (1, 2, 3)]
    rows += [trace(corun, launch, 1, pool="a", busy=1.5 + launch) for launch in (1, 2, 3)]
    rows += [trace(corun, 3, 1, pool="b", busy=0.3)]  # works in one trace alone
    rows += [trace(corun, 3, 2, pool="a", busy=99.0)]  # of another graph, so it is not among what is compared
    both = pd.DataFrame([trace(corun, launch, 1) for launch in (1, 2, 3)])
    found = differences(pd.DataFrame(rows), both, ["pool"], "busy", 0.0).reset_index().set_index("pool")
    assert found["difference"].to_dict() == pytest.approx({"a": 0.5, "b": 0.1})
    assert set(found["kind"]) == {"corun"}
    assert found.loc["b", "difference_low"] < 0 < found.loc["b", "difference_high"]
    there = differences(pd.DataFrame(rows), both, ["pool"], "busy")
    assert there.index.get_level_values("pool").tolist() == ["a"], "what one of both lacks is left out"
    assert differences(pd.DataFrame(rows), both[:0], ["pool"], "busy", 0.0).empty


@pytest.mark.simulation
def test_the_intervals_hold_the_truth():
    studies, launches, truth = 3000, 4, 0.05
    dice = np.random.default_rng(1)
    level = dice.normal(0.4, 0.1, (studies, launches, 1, 1)) + np.array([0.0, truth])
    effect = np.concatenate(
        [np.zeros((studies, launches, 1, 1)), dice.normal(0, 0.02, (studies, launches, 1, 1))], axis=3
    )
    values = level + effect + dice.normal(0, 0.01, (studies, launches, 2, 2))
    rows = pd.DataFrame(
        [trace(scene, launch, repetition) for launch in range(launches) for repetition in (1, 2) for scene in SCENES]
    )
    table = pd.concat([rows] * studies, ignore_index=True).assign(
        study=np.repeat([f"s{number}" for number in range(studies)], len(rows)), number=values.reshape(-1)
    )
    found = differences(table, table[table["kind"] == "corun"], [], "number")
    held = float(((found["difference_low"] < truth) & (truth < found["difference_high"])).mean())
    assert len(found) == studies
    for printed in ("input_pipeline", "thread_pools", "memory_use", "input_stages", "isa_use"):
        assert_told(printed, "difference_low", held)
    assert_told("roofline", "ratio_low", held)
