"""What is tried against a loss: in the plan, with the reason where it cannot be, in the table and in the figure."""

import math
from dataclasses import replace

import pytest

from castmates.analysis.partitions.mitigations import APART, NO_DATA, TOO_FEW, estimate_mitigations
from castmates.report.figures import mitigations as figure
from castmates.report.figures.texts import texts_for
from castmates.report.text.mitigations import amount_of
from castmates.study.cache import Bandwidth
from castmates.study.mixes import Host, Programs, resolve
from castmates.study.modelled import MachineModel, cache_of, layout_of
from castmates.study.rdt_trial import Tried
from castmates.study.spec import Mitigation, Partition, Plan, Share
from tests.unit import windows_maker
from tests.unit.legible import problems
from tests.unit.makers import prepared, study, workloads
from tests.unit.partition_maker import LEAD, STREAM, atoms, split, under
from tests.unit.snapshots import assert_as_before
from tests.unit.test_figure_partitions import results as of_effects

SERVER = MachineModel(sockets=2, domains=4, cores=4, threads=2)
SINGLE = MachineModel(cores=4)
AWAY = "stream@9"


def planned(machine=SERVER, cache=True, cdp=False, no_quota="", **keys):
    rule = {"lead": "x", "antagonists": ["a"], "distance": "smt"} | keys
    if not rule["distance"]:
        del rule["distance"]
    programs = workloads("x", "a")
    there = cache_of(machine).model_copy(update={"cdp": cdp}) if cache else None
    host = Host(layout_of(machine), there, no_quota=no_quota)
    return resolve(study([], [], mitigations=[rule]), Programs(programs, prepared(programs), "p"), host, "study.yaml")


def of_kind(found, kind):
    return [each for each in found.mitigations if each.kind == kind]


def test_everything_that_the_machine_can_do_is_planned_on_the_mix_as_it_is():
    found = planned(cdp=True)
    assert {each.mix for each in found.mitigations} == {"x+a:smt"}
    assert not any(each.reason for each in found.mitigations)
    (ways,), (throttle,), (code,), (quota,) = (of_kind(found, kind) for kind in ("ways", "bandwidth", "code", "quota"))
    assert [name for _, name in ways.arms] == [f"split-{ways}" for ways in range(1, 12)]
    assert throttle.arms == (("x+a:smt", "antagonists-mb50"),)
    assert code.arms == (("x+a:smt", "split-6-code-3"),)
    assert quota.arms == (("x+a:smt", "quota-50"),)
    for kind in ("core", "socket", "other-socket"):
        assert of_kind(found, kind)[0].arms == ((f"x+a:{kind}", "unmanaged"),)
    planned_mixes = {
        (mix.name, part) for mix in found.mixes for part in [p.name for p in mix.partitions] or ["unmanaged"]
    }
    assert {arm for each in found.mitigations for arm in each.arms} < planned_mixes
    assert len({mix.lead for mix in found.mixes}) == 1, "one launch has all of it"


NOT_HERE = [{}, {"cache": False}, {"no_quota": "no controller"}, {"distance": None}, {"distance": "other-socket"},
            {"machine": SINGLE, "distance": None}]  # fmt: skip


def test_what_cannot_be_tried_has_its_reason_and_nothing_else_is_lost():
    def told(keys):
        found = planned(**keys)
        assert any(each.arms for each in found.mitigations)
        return [f"{each.kind}: {each.reason or [arm for _, arm in each.arms]}" for each in found.mitigations]

    assert_as_before("mitigations", {f"{number} {sorted(keys)}": told(keys) for number, keys in enumerate(NOT_HERE)})


def test_amounts_that_are_listed_are_mitigations_each():
    found = planned(quota=["25%", "75%"], bandwidth=["20%", "50%"], kinds=["quota", "bandwidth"])
    assert [arm for each in found.mitigations for _, arm in each.arms] == [
        "quota-25", "quota-75", "antagonists-mb20", "antagonists-mb50",
    ]  # fmt: skip


def tried(launches=10, apart=False) -> Plan:
    """A mix with its antagonist on a sibling, under partitions, and with its antagonist on another socket."""
    partitions = split(4), split(8)
    base = windows_maker.mix(LEAD, STREAM)
    far = windows_maker.mix(LEAD, AWAY).model_copy(update={"name": f"{base.name}:other-socket"})
    quota = Partition(name="quota-50", shares=(Share(member=STREAM, quota=50, period=10),))
    of_base = [base, *(under(base, part) for part in partitions), under(base, quota)]
    groups = [of_base, [far]] if apart else [[*of_base, far]]
    cohorts = [windows_maker.cohort(f"c{number}", *group) for number, group in enumerate(groups)]
    rows = [
        ("ways", [(base.name, part.name) for part in partitions], ""),
        ("other-socket", [(far.name, "unmanaged")], ""),
        ("quota", [(base.name, "quota-50")], ""),
        ("code", [], "no cdp"),
    ]
    against = tuple(Mitigation(mix=base.name, kind=kind, arms=tuple(arms), reason=why) for kind, arms, why in rows)
    return windows_maker.plan(cohorts, launches).model_copy(update={"mitigations": against, "cache": cache_of(SERVER)})


LOSSES = {"split-4": (0.2, 0.5), "split-8": (0.1, 0.7), "quota-50": (0.15, 0.9), "unmanaged": (0.4, 0.3)}
FAR = (0.02, 0.01)


def windows(plan, lucky=lambda _: 0.0):
    """`lucky` is what a launch adds to the lead's loss under split-8."""

    def rate(launch, number, scene, member):
        part = scene.partition("@")[2] or "unmanaged"
        lead, other = FAR if ":other-socket" in scene else LOSSES.get(part, (0.0, 0.0))
        luck = lucky(launch) if part == "split-8" and member == LEAD else 0.0
        lost = 0.0 if not scene.startswith("corun") else (lead if member == LEAD else other)
        return 100 * math.exp(-lost - luck + 0.003 * launch.number + 0.001 * number)

    return windows_maker.written(plan, rate)


def row_of(table, kind):
    (row,) = table[table["mitigation"] == kind].to_dict("records")
    return row


def test_the_table_has_the_gain_of_the_lead_beside_the_cost_of_the_others():
    table = estimate_mitigations(tried(), windows(tried()), margin=0.02)
    assert list(table["mitigation"]) == ["unmanaged", "ways", "other-socket", "quota", "code"]
    for kind, part in (("unmanaged", "unmanaged"), ("ways", "split-8"), ("quota", "quota-50")):
        row, (lead, other) = row_of(table, kind), LOSSES[part]
        assert row["loss_pct"] == pytest.approx(100 * (1 - math.exp(-lead)))
        assert row["others_loss_pct"] == pytest.approx(100 * (1 - math.exp(-other)))
        if kind != "unmanaged":
            assert row["gain_pct"] == pytest.approx(100 * math.expm1(0.4 - lead))
            assert row["cost_pct"] == pytest.approx(100 * (1 - math.exp(-(other - 0.3))))
            assert row["verdict"] == "gain"
    far = row_of(table, "other-socket")
    assert (far["loss_pct"], far["cost_pct"]) == pytest.approx((1.98, -33.64), abs=0.01)
    assert math.isnan(row_of(table, "unmanaged")["gain_pct"])
    assert (row_of(table, "code")["reason"], row_of(table, "code")["launches"]) == ("no cdp", 0)


def test_the_best_mask_is_chosen_on_some_launches_and_estimated_on_the_others():
    plan = tried()
    usual = row_of(estimate_mitigations(plan, windows(plan), 0.02), "ways")
    assert (usual["how"], usual["candidates"], usual["launches"], usual["launches_choosing"]) == ("chosen", 2, 6, 4)
    # Whoever is lucky on the launches that choose must not be believed to be so good on the others.
    chose = {launch for launch in range(1, 11) if _estimates_less(plan, launch)}
    assert len(chose) == 4
    lucky = windows(plan, lambda launch: -0.3 if launch.number in chose else 0.2)
    row = row_of(estimate_mitigations(plan, lucky, 0.02), "ways")
    assert row["partition"] == "split-8"
    assert row["gain_pct"] == pytest.approx(100 * math.expm1(0.4 - 0.1 - 0.2))


def _estimates_less(plan, launch):
    """Whether a launch without a valid window under split-8 leaves the number of those that estimate as it is."""
    table = windows(plan)
    moved = table["rate"].where(
        ~((table["launch"] == launch) & (table["partition"] == "split-8")), table["rate"] * 1.01
    )
    known, other = (
        row_of(estimate_mitigations(plan, each, 0.02), "ways")["gain_pct"] for each in (table, table.assign(rate=moved))
    )
    return known == pytest.approx(other, rel=1e-9)


def test_numbers_that_cannot_be_had_have_a_reason():
    few = tried(launches=4)
    assert row_of(estimate_mitigations(few, windows(few), 0.02), "ways")["reason"] == TOO_FEW
    apart = tried(apart=True)
    assert row_of(estimate_mitigations(apart, windows(apart), 0.02), "other-socket")["reason"] == APART
    nothing = tried()
    empty = windows(nothing).iloc[:0]
    assert set(estimate_mitigations(nothing, empty, 0.02)["reason"]) == {NO_DATA, TOO_FEW, "no cdp"}


def test_a_study_without_mitigations_has_no_rows():
    plan = tried().model_copy(update={"mitigations": ()})
    assert estimate_mitigations(plan, windows(plan), 0.02).empty


def results(launches=10, **keys):
    plan = tried(launches=launches, **keys)
    table = estimate_mitigations(plan, windows(plan), 0.02)
    return replace(of_effects(atoms(), launches=launches), mitigations=table, plan=plan)


@pytest.mark.parametrize(
    ("unit", "said"), [("%", "to 40 %"), ("1/8 GB/s", "to 5 GB/s"), ("MiB/s", "to 40 MiB/s"), ("", "MB 40")]
)
def test_a_throttle_is_told_in_the_machines_unit(unit, said):
    bandwidth = Bandwidth(unit=unit, least=8, step=8, most=2048) if unit else None
    cache = cache_of(SERVER).model_copy(update={"bandwidth": bandwidth})
    slowed = Partition(name="antagonists-mb40", shares=(Share(member="x@1", bandwidth=40),))
    assert amount_of({"mitigation": "bandwidth"}, slowed, cache) == said


@pytest.mark.parametrize(
    ("unit", "rates", "said"),
    [
        ("%", {1: {100: 12e9, 40: 6e9}, 8: {100: 24e9, 40: 22e9}}, "to 40 % (measured: 50 to 92 %)"),
        ("%", {8: {100: 24e9, 40: 22e9}}, "to 40 % (measured: 92 %)"),
        ("%", {8: {100: 24e9, 20: 22e9}}, "to 40 %"),  # a step that was not tried
        ("MiB/s", {8: {100: 24e9, 40: 22e9}}, "to 40 %"),  # the record of another mount
    ],
)
def test_beside_the_step_stands_what_it_was_measured_to_leave(unit, rates, said):
    slowed = Partition(name="antagonists-mb40", shares=(Share(member="x@1", bandwidth=40),))
    cache = cache_of(SERVER).model_copy(update={"bandwidth": Bandwidth(unit="%", least=10, step=10, most=100)})
    tried = Tried("today", {}, unit=unit, rates=rates)
    assert amount_of({"mitigation": "bandwidth"}, slowed, cache, tried) == said


def test_the_figure_has_the_least_loss_first_and_the_change_in_words():
    drawn, _ = figure.draw(results())
    left, right = drawn.axes
    names = [text.get_text().partition("\n")[0] for text in left.texts if text.get_position()[0] < -72]
    assert names == [
        "nothing is done", "antagonists on another socket", "separate cache ways", "antagonists' CPU time limited",
        "ways for its code alone",
    ]  # fmt: skip
    changes = {one.get_text().partition("\n")[2] for axes in (left, right) for one in axes.texts}
    assert "46.2 to 46.2 % faster" in changes  # of the program: exp(0.4 - 0.02)
    assert "45.1 to 45.1 % slower" in changes  # of its antagonist under the quota: 1 - exp(0.3 - 0.9)


def test_the_figure_shows_both_sides_and_why_something_is_missing():
    drawn, source = figure.draw(results())
    assert problems(drawn) == []
    said = [text.get_text().replace("\n", " ") for text in drawn.findobj(lambda artist: hasattr(artist, "get_text"))]
    assert {"dlrm loses (%)", "its antagonist loses (%)", "nothing is done", "no cdp"} <= set(said)
    assert any(text.startswith("separate cache ways 8 of 12 ways, best of 2") for text in said)
    assert any(text.startswith("33.0 %") for text in said)
    assert len(source) == 5
    words = texts_for("mitigations", results()).alternative
    assert (
        "dlrm beside stream: nothing is done, 33.0 % and 25.9 %; antagonists on another socket, 2.0 % and 1.0 %"
        in words
    )
