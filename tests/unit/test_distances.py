"""How near antagonists sit, and how many there are: on synthetic machines, in the plan, and in the table."""

import math
from dataclasses import replace

import numpy as np
import pytest

from castmates.analysis.effects.distances import estimate_distances
from castmates.analysis.effects.effects import estimate_effects
from castmates.report.figures import distances as figure
from castmates.report.figures.texts import texts_for
from castmates.report.text.words import AXIS, plain
from castmates.study import catalogue
from castmates.study.mixes import Host, Programs, resolve
from castmates.study.modelled import MachineModel, layout_of
from castmates.study.spec import LeftOut, Share
from tests.unit import windows_maker
from tests.unit.legible import problems
from tests.unit.machines import layout
from tests.unit.makers import prepared, study, workloads
from tests.unit.partition_maker import atoms
from tests.unit.snapshots import assert_as_before
from tests.unit.snapshots import refusal as refused
from tests.unit.test_figure_partitions import results as of_effects

XEON, SNC, EPYC = "synthetic-xeon-2s", "synthetic-xeon-2s-snc2", "synthetic-epyc-ccx"
HYBRID, ARM = "synthetic-hybrid-client", "synthetic-arm-no-l3"


def cast(machine, rule, no_quota="", **keys):
    where = layout(machine) if isinstance(machine, str) else machine
    one = study([], [], mixes=[{"lead": "x", "antagonists": ["a"]} | rule], **keys)
    programs = workloads("x", "a", "b")
    catalogue.check_names(one, programs, "study.yaml")
    return where, resolve(
        one, Programs(programs, prepared(programs), "p"), Host(where, no_quota=no_quota), "study.yaml"
    )


def seats(machine, distance, count=1, **keys):
    where, found = cast(machine, {"distance": [distance], "count": [count]}, **keys)
    (mix,) = found.mixes
    cpus = [[where.by_id[cpu] for cpu in found.members[name].cpus] for name in (mix.lead, *mix.antagonists)]
    return cpus[0], [cpu for seat in cpus[1:] for cpu in seat]


def refusal(machine, rule, **keys):
    return refused(cast, machine, rule, **keys)


SHARED = {
    (XEON, "smt"): "core llc node package",
    (XEON, "core"): "llc node package",
    (XEON, "llc"): "llc node package",  # the whole cache is as near as can be
    (XEON, "other-socket"): "",
    (SNC, "core"): "llc node package",
    (SNC, "llc"): "llc package",  # the other cluster of the same cache
    (EPYC, "smt"): "core llc node package",
    (EPYC, "core"): "llc node package",
    (EPYC, "socket"): "node package",
    (EPYC, "other-socket"): "",
    (HYBRID, "llc"): "llc node package",
    (ARM, "socket"): "node package",  # each core has a last-level cache for itself
}


@pytest.mark.parametrize(("machine", "distance"), SHARED)
def test_antagonists_share_with_the_lead_what_their_distance_says_and_nothing_nearer(machine, distance):
    (lead,), (other,) = seats(machine, distance)
    common = [name for name in ("core", "llc", "node", "package") if getattr(lead, name) == getattr(other, name)]
    assert " ".join(common) == SHARED[machine, distance]


def test_a_cluster_with_a_common_cache_is_nearer_than_the_rest_of_the_last_level():
    where = layout(HYBRID)
    efficient = "12"
    near, far = (seats(HYBRID, distance, placement={"lead": efficient})[1][0] for distance in ("core", "llc"))
    assert near.id in (13, 14, 15)
    assert far.llc == where.by_id[12].llc
    assert far.id not in (12, 13, 14, 15)


def test_more_antagonists_are_those_before_and_others_beside_the_same_lead():
    where, found = cast(EPYC, {"distance": ["smt", "core", "socket"], "count": [2, 1]})
    assert len({mix.lead for mix in found.mixes}) == 1
    by_name = {mix.name: mix.antagonists for mix in found.mixes}
    assert set(by_name) == {"x+a:smt", "x+a:core", "x+a+a:core", "x+a:socket", "x+a+a:socket"}
    assert by_name["x+a+a:core"][0] == by_name["x+a:core"][0]
    (note,) = [note for note in map(str, found.notes) if note.startswith("mixes")]
    assert note == (
        "mixes: left out: the mix x+a+a:smt needs 2 CPUs more on the lead's cores (siblings), but there is 1."
    )
    assert where.siblings
    (left_out,) = found.left_out
    assert (left_out.mix, left_out.lead, left_out.antagonists) == ("x+a+a:smt", "x", ("a", "a"))
    assert left_out.reason == "needs 2 CPUs more on the lead's cores (siblings), but there is 1"


IMPOSSIBLE = ((ARM, "smt"), (XEON, "socket"), (HYBRID, "other-socket"), (ARM, "core"))


def test_what_contradicts_a_distance_or_is_not_there_is_refused():
    said = {f"{distance} on {machine}": refusal(machine, {"distance": [distance]}) for machine, distance in IMPOSSIBLE}
    for rule in ({"llc": "separate"}, {"smt": "share"}, {"antagonists": "4-7"}):
        said[f"a core apart, and {rule}"] = refusal(XEON, {"distance": ["core"]}, placement=rule)
    nine = {"antagonists": ["a"] * 9, "distance": ["core"]}
    said["nine on one core"] = refusal("synthetic-single-core", nine)
    assert_as_before("distances", said)


def test_the_same_place_under_two_names_is_noted_and_one_measurement():
    _, found = cast(XEON, {"distance": ["core", "llc"]})
    assert len({mix.identity for mix in found.mixes}) == 1
    assert "mixes: x+a:llc is measured as x+a:core: here these are the same place." in map(str, found.notes)


def test_distances_change_no_mix_that_was_measured_before():
    def usual(machine, **keys):
        one = study(["x"], ["a"], **keys)
        programs = workloads("x", "a")
        there = Programs(programs, prepared(programs), "p")
        return next(mix for mix in resolve(one, there, Host(layout(machine)), "s").mixes if mix.name == "x+a")

    far = {"lead": "x", "antagonists": ["a"], "distance": ["smt", "core", "socket", "other-socket"]}
    assert usual(EPYC) == usual(EPYC, mixes=[far])
    many = {"lead": "x", "antagonists": ["a"], "distance": ["core", "other-socket"], "count": [1, 2, 4]}
    assert usual(XEON) == usual(XEON, mixes=[many])
    assert Share(member="a@1", ways=3).canonical() == '{"member":"a@1","ways":3}'


def test_overcommitted_cpus_are_the_leads_own_and_quotas_are_partitions():
    where = layout_of(MachineModel(cores=4))
    _, found = cast(where, {"count": [1, 2], "share": {"cpus": "lead", "quota": ["25%", "50%"], "period": 20}})
    bare = [mix for mix in found.mixes if not mix.partitions]
    assert [mix.name for mix in bare] == ["x+a:cpu", "x+a+a:cpu"]
    everyone = [found.members[name] for name in (bare[1].lead, *bare[1].antagonists)]
    assert len({member.cpus for member in everyone}) == 1
    assert [member.name.partition("@")[2] for member in everyone[1:]] == ["1", "1#2"]  # two processes, two names
    under = [part for mix in found.mixes for part in mix.partitions if mix.antagonists == bare[0].antagonists]
    assert [part.name for part in under] == ["quota-25-every-20ms", "quota-50-every-20ms"]
    assert [(share.member, share.quota, share.period) for share in under[0].shares] == [
        (bare[0].antagonists[0], 25, 20)
    ]
    assert not under[0].of_cache


def test_quotas_that_the_machine_cannot_give_are_left_out_and_noted():
    _, found = cast(layout_of(MachineModel()), {"share": {"quota": ["50%"]}}, no_quota="there is no controller")
    assert not any(mix.partitions for mix in found.mixes)
    assert tuple(map(str, found.notes)) == ("mixes: quotas of CPU time are left out: there is no controller.",)


def _placed(lead, antagonists, place):
    made = windows_maker.mix(lead, *antagonists)
    return made.model_copy(update={"name": f"{made.name}:{place}"})


def test_the_table_has_the_loss_of_each_place_and_what_a_step_away_gains():
    lead = "x@0"
    mixes = [
        _placed(lead, ["a@9"], "smt"),
        _placed(lead, ["a@1"], "core"),
        _placed(lead, ["a@1", "a@2"], "core"),
        _placed(lead, ["a@5"], "socket"),
    ]
    losses = dict(zip([mix.name for mix in mixes], (0.4, 0.2, 0.3, 0.05), strict=True))
    plan = windows_maker.plan([windows_maker.cohort("c", *mixes)], launches=4)

    def rate(launch, number, scene, member):
        loss = losses.get(scene.removeprefix("corun:"), 0.0) if member == lead else 0.0
        return 100 * math.exp(-loss + 0.01 * launch.number + 0.001 * number)

    windows = windows_maker.written(plan, rate)
    table = estimate_distances(plan, windows, estimate_effects(plan, windows, margin=0.02))
    assert list(table["distance"]) == ["smt", "core", "core", "socket"]
    assert list(table["count"]) == [1, 1, 2, 1]
    assert set(table["antagonists"]) == {"a"}
    assert list(table["slowdown"]) == pytest.approx([math.exp(losses[mix.name]) for mix in mixes])
    assert list(table["nearer"]) == ["", "smt", "", "core"]
    gains = [math.nan, 100 * math.expm1(0.2), math.nan, 100 * math.expm1(0.15)]
    assert list(table["gain_pct"]) == pytest.approx(gains, nan_ok=True)
    assert list(table["gain_launches"]) == [0, 4, 0, 4]


def test_what_the_machine_has_no_place_for_is_a_row_with_its_reason_beside_others():
    mixes = [_placed("x@0", ["a@9"], "smt"), _placed("x@0", ["a@1"], "core"), _placed("x@0", ["a@1", "a@2"], "core")]
    left_out = (
        LeftOut(mix="x+a+a:smt", lead="x", antagonists=("a", "a"), reason="needs two"),
        LeftOut(mix="y+a+a:smt", lead="y", antagonists=("a", "a"), reason="of a lead that has no other arrangement"),
    )
    plan = windows_maker.plan([windows_maker.cohort("c", *mixes)], launches=3).model_copy(update={"left_out": left_out})
    windows = windows_maker.written(plan, lambda *_: 1.0)
    table = estimate_distances(plan, windows, estimate_effects(plan, windows, margin=0.02))
    assert [*zip(table["distance"], table["count"], table["reason"], strict=True)] == [
        ("smt", 1, ""), ("smt", 2, "needs two"), ("core", 1, ""), ("core", 2, "")
    ]  # fmt: skip
    row = table[table["reason"] != ""].iloc[0]
    assert math.isnan(row["loss_pct"])
    assert (row["launches"], row["verdict"], row["nearer"], row["platform"]) == (0, "no data", "", "measured")
    assert list(table["nearer"]) == ["", "", "smt", ""]  # what was not measured is nobody's nearer place


def test_a_study_of_one_arrangement_has_no_rows():
    plan = windows_maker.plan([windows_maker.cohort("c", windows_maker.mix("x@0", "a@1"))], launches=3)
    windows = windows_maker.written(plan, lambda *_: 1.0)
    assert estimate_distances(plan, windows, estimate_effects(plan, windows, margin=0.02)).empty


def results(launches=4):
    """A lead beside one, two and four antagonists at four distances."""
    lead, first = "x@0", {"smt": 9, "core": 1, "socket": 5, "other-socket": 20}
    mixes = [
        _placed(lead, [f"a@{cpu + number}" for number in range(count)], place)
        for place, cpu in first.items()
        for count in (1, 2, 4)
        if (place, count) != ("smt", 4)
    ]
    four = LeftOut(mix="x+a+a+a+a:smt", lead="x", antagonists=("a",) * 4, reason="needs 4 more, but there are 2")
    plan = windows_maker.plan([windows_maker.cohort("c", *mixes)], launches).model_copy(update={"left_out": (four,)})
    losses = {mix.name: 0.3 * len(mix.antagonists) / (1 + 3 * number) for number, mix in enumerate(mixes)}
    rng = np.random.default_rng(3)

    def rate(launch, number, scene, member):
        lost = losses.get(scene.removeprefix("corun:"), 0.0) if member == lead else 0.0
        return 100 * math.exp(-lost + rng.normal(0, 0.01))

    windows = windows_maker.written(plan, rate)
    effects = estimate_effects(plan, windows, margin=0.02)
    table = estimate_distances(plan, windows, effects)
    return replace(of_effects(atoms(), launches=launches), plan=plan, effects=effects, distances=table)


def test_the_figure_has_a_bar_for_each_number_and_a_place_for_each_distance():
    drawn, source = figure.draw(results())
    assert problems(drawn) == []
    (axes,) = drawn.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        AXIS[place] for place in ("smt", "core", "socket", "other-socket")
    ]
    known = source[source["reason"] == ""]
    assert [round(bar.get_height(), 6) for bar in axes.patches] == [round(loss, 6) for loss in known["loss_pct"]]
    words = [text.get_text() for text in (*axes.texts, *drawn.texts)]
    assert_as_before("distances-figure", {"a study": [*words, texts_for("distances", results()).alternative]})
    assert len(source) == 12


def test_names_show_the_place_in_words():
    assert plain("ranking@0+stream@1") == "ranking+stream"
    assert plain("stream+stream:smt") == "2 \N{MULTIPLICATION SIGN} stream (on its siblings)"
    assert plain("a@1#2") == "a"
    assert plain("ranking@0-2.8+stream@3-4") == "ranking+stream"
    assert plain("stream@1-2+stream@3-4#2:smt") == "2 \N{MULTIPLICATION SIGN} stream (on its siblings)"
    assert plain("placebo:1") == "placebo:1"
