"""The test for carry-over from the scene before: exact by hand, honest and strong on simulated studies.

`python -m tests.unit.test_carryover` prints the table of docs/methodology.md.
"""

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.effects.carryover import estimate_carryover
from castmates.results.columns.launch import SLICES
from castmates.results.columns.study import CARRYOVER, frame
from castmates.study.schedule import Orders, Stretch, stretches
from tests.unit.partition_maker import atoms, made
from tests.unit.printed_intervals import assert_told
from tests.unit.windows_maker import Truth, cohort, mix, plan, simulated, slices_of, written

SEED = 20261121
STUDIES = 400
ROUNDS = 3
ONE = plan([cohort("dlrm-1", mix("dlrm@0", "stream@1"))], launches=4)
MACHINES = {
    "quiet windows": Truth(launch=0.02, interaction=0.015, noise=0.01),
    "noisy windows": Truth(launch=0.02, interaction=0.015, noise=0.03, rejected=0.05),
}
CONDITIONS = [("quiet windows", 3), ("quiet windows", 5), ("quiet windows", 10), ("noisy windows", 10)]
PLANTED = 0.02


def cycles(launch, count=4):
    return Orders().draw(Stretch((), launch.cohort.scenes, str(launch.seed)), count)


def ordered(of, rate, count=4):
    """Slices in the order of the schedule, all of one stretch; `rate` is given the scene before."""
    table = slices_of(written(of, lambda *_: 1.0, count))
    for launch in of.launches:
        before = None
        for number, order in enumerate(cycles(launch, count), start=1):
            for position, scene in enumerate(order, start=1):
                here = (table["launch"] == launch.number) & (table["cycle"] == number) & (table["scene"] == scene.name)
                table.loc[here, "slice"] = (number - 1) * len(order) + position
                table.loc[here, "rate"] = rate(launch, number, scene, before)
                before = scene
    return table.sample(frac=1, random_state=1)


def row(table, member):
    (found,) = table[table["member"] == member].to_dict("records")
    return found


def test_cycles_scenes_and_launches_are_taken_out_and_the_trace_is_left():
    """However large they are: what a scene costs in a launch, and how fast a cycle is, is no trace."""

    def rate(launch, number, scene, before):
        dice = np.random.default_rng([launch.number, len(scene.name)])
        trace = 0.03 * (before is not None and "dlrm@0" not in before.active)
        return math.exp(dice.normal(0, 0.3) + 0.2 * (-1) ** number - trace)

    found = row(estimate_carryover(ONE, [ordered(ONE, rate)]), "dlrm@0")
    assert found["verdict"] == "seen"
    bounds = [found[name] for name in ("change_low", "change_pct", "change_high")]
    assert bounds == pytest.approx([100 * math.expm1(-0.03)] * 3)


def test_who_never_stands_still_has_no_trace_and_says_so():
    """Neither a placebo nor a co-run before a slice freezes the lead, and only that is asked."""
    scenes = tuple(scene for scene in ONE.launches[0].cohort.scenes if scene.kind != "antagonist-alone")
    launches = [b.model_copy(update={"cohort": b.cohort.model_copy(update={"scenes": scenes})}) for b in ONE.launches]
    lean = ONE.model_copy(update={"launches": tuple(launches)})
    slow_after_others = ordered(lean, lambda *place: 1.0 - 0.1 * len(place[-1].active if place[-1] else ()))
    found = row(estimate_carryover(lean, [slow_after_others]), "dlrm@0")
    assert (found["verdict"], found["launches"], found["windows_after_frozen"]) == ("never frozen", 0, 0)


def test_stretches_that_never_freeze_a_member_show_nothing_of_it():
    """Under a partition the lead runs in every scene: with these slices it would seem to be frozen more seldom."""
    of, dice = made(atoms(ways=(2, 4), caps=(), sensitivity=())), np.random.default_rng(9)
    slices = slices_of(written(of, lambda *_: math.exp(dice.normal(0, 0.01)), 4))
    for launch in of.launches:
        for number, stretch in enumerate(stretches(launch, 1), start=1):
            orders = enumerate(Orders().draw(stretch, 4), start=1)
            for at, (cycle, scene) in enumerate((cycle, scene) for cycle, order in orders for scene in order):
                here = (
                    (slices["launch"] == launch.number) & (slices["cycle"] == cycle) & (slices["scene"] == scene.name)
                )
                slices.loc[here, ["slice", "stretch"]] = at, number
    bare = slices[~slices["scene"].str.contains("@split")]
    every, without = (row(estimate_carryover(of, [each]), "dlrm@0") for each in (slices, bare))
    assert every == without
    assert (every["launches"], every["windows"] < len(bare)) == (4, True)


def test_without_a_trace_nothing_is_seen_and_the_bounds_say_how_little():
    dice = np.random.default_rng(3)
    found = row(estimate_carryover(ONE, [ordered(ONE, lambda *_: math.exp(dice.normal(0, 0.005)))]), "dlrm@0")
    assert found["verdict"] == "none seen"
    assert -2 < found["change_low"] < 0 < found["change_high"] < 2
    assert found["detectable_pct"] > (found["change_high"] - found["change_low"]) / 2
    assert found["launches"] == 4
    first = sum("dlrm@0" in cycles(launch)[0][0].active for launch in ONE.launches)  # of a launch, with nothing before
    assert found["windows"] == 4 * 4 * 4 - first


def test_rejected_slices_count_as_before_but_not_as_after():
    slices = ordered(ONE, lambda *_: 1.0)
    all_of_them = row(estimate_carryover(ONE, [slices]), "dlrm@0")["windows"]
    slices.loc[(slices["launch"] == 1) & (slices["slice"] == 7), "counted"] = False
    ran = slices[(slices["launch"] == 1) & (slices["slice"] == 7)]["member"].eq("dlrm@0").any()
    assert row(estimate_carryover(ONE, [slices]), "dlrm@0")["windows"] == all_of_them - ran


@pytest.mark.parametrize("apart", ["stretch", "round"])
def test_nothing_is_carried_from_one_stretch_to_the_next(apart):
    """Masks change between them, and everybody runs once unmeasured."""
    slices = ordered(ONE, lambda *_: 1.0)
    slices.loc[slices["cycle"] > 2, apart] = 2
    begins = [cycles(launch)[at][0] for launch in ONE.launches for at in (0, 2)]
    lead = row(estimate_carryover(ONE, [slices]), "dlrm@0")
    assert lead["windows"] == 4 * 4 * 4 - sum("dlrm@0" in scene.active for scene in begins)


def test_parts_of_whole_launches_are_the_whole():
    dice = np.random.default_rng(7)
    slices = ordered(ONE, lambda *_: math.exp(dice.normal(0, 0.01)))
    parts = [slices[slices["launch"] <= 1], slices[slices["launch"] > 1], slices[:0]]
    pd.testing.assert_frame_equal(estimate_carryover(ONE, parts), estimate_carryover(ONE, [slices]))


def test_everyone_has_a_row_leads_first_also_without_slices():
    two = plan([cohort("dlrm-1", mix("dlrm@0", "stream@1"))], 2)
    for parts in ([], [frame([], SLICES)], [slices_of(written(two, lambda *_: 1.0))]):
        table = estimate_carryover(ONE, parts)
        assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(CARRYOVER)
        assert table["member"].tolist() == ["dlrm@0", "stream@1"]
        assert set(table["verdict"]) == {"too few windows"}
        assert table["change_pct"].isna().all()


def test_holm_counts_the_members_of_a_role():
    many = plan([cohort(f"c{n}", mix(f"lead{n}@0", "stream@1")) for n in range(4)], launches=4)
    dice = np.random.default_rng(5)
    table = estimate_carryover(many, ordered_each(many, lambda *_: math.exp(dice.normal(0, 0.01))))
    leads = table[table["role"] == "lead"]
    assert leads["p_holm"].min() == pytest.approx(min(1, 4 * leads["p_value"].min()))
    others = table[table["role"] == "antagonist"]
    assert others["p_holm"].tolist() == others["p_value"].tolist()


def ordered_each(of, rate):
    ids = dict.fromkeys(launch.cohort.id for launch in of.launches)
    own = [of.model_copy(update={"launches": tuple(b for b in of.launches if b.cohort.id == name)}) for name in ids]
    return [ordered(one, rate) for one in own]


@cache
def measured(machine, launches):
    """Shares of simulated studies in which a trace is seen, by what was planted."""
    found = {}
    for name, planted in (("false alarms", 0.0), ("found", PLANTED)):
        truth = Truth(**{**vars(MACHINES[machine]), "carryover": planted})
        campaigns = simulated(truth, STUDIES, launches, ROUNDS, seed=SEED + launches)
        table = estimate_carryover(campaigns.plan, [slices_of(campaigns.windows)])
        leads = table[
            (table["role"] == "lead") & table["p_value"].notna()
        ]  # a launch without information shows nothing
        change = np.log1p(leads[["change_low", "change_high"]] / 100)
        found[name] = float((leads["p_value"] < 0.05).mean())
        covered = (change["change_low"] <= -planted) & (-planted <= change["change_high"])
        found["covered"] = float(covered.mean())
        found["detectable"] = float(leads["detectable_pct"].median()) / 100
    return found


@pytest.mark.parametrize(("machine", "launches"), CONDITIONS)
def test_the_level_is_kept_and_the_interval_covers(machine, launches):
    found = measured(machine, launches)
    assert found["false alarms"] <= 0.085  # 5 %, and three binomial errors
    assert 0.915 <= found["covered"] <= 0.985
    assert_told("carryover", "change_low", found["covered"])


def test_a_trace_of_two_per_cent_is_found():
    assert measured("quiet windows", 5)["found"] > 0.85
    assert measured("quiet windows", 10)["found"] > 0.99


def table():
    """The figures as the rows of a Markdown table."""
    columns = ["false alarms", "found", "covered", "detectable"]
    rows = [f"| machine | launches | {' | '.join(columns)} |", "|" + " --- |" * (len(columns) + 2)]
    for machine, launches in CONDITIONS:
        shares = (f"{100 * measured(machine, launches)[name]:.1f}" for name in columns)
        rows.append(f"| {machine} | {launches} | {' | '.join(shares)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
