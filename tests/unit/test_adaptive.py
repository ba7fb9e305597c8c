"""What a look of an adaptive study decides, and what its launches and its plan make of that."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from castmates.analysis.design.adaptive import NOTHING, Look, MixAtLook, MixEstimate, decide, halves
from castmates.analysis.effects.system_over_mixes import system_over_mixes
from castmates.analysis.partitions.sensitivity import Measured, interpolate
from castmates.errors import CastmatesError
from castmates.pipeline.looks import Terms, take_adaptive_look
from castmates.results.looks import KINDS, WORDS
from castmates.study.curves import (
    BANDWIDTH,
    as_launched,
    curves,
    measured_later,
    questions,
    reason,
    sentences,
    skipped_at,
)
from castmates.study.model import Study
from castmates.study.node_classes import parts_of
from castmates.study.plan_text import plan_text
from castmates.study.reading import read_keys
from castmates.study.rounds import without_decisions
from castmates.study.spec import MixSet
from tests.unit.modelled.makers import project_of
from tests.unit.windows_maker import written

STUDY = """
name: example
platform: modelled
leads: [ranking]
antagonists: [flood]
controls: null
recommend: {lead_loss: 10%}
model: {ways: 12}
cache: {sweeps: [{split: all}, {bandwidth: {antagonists: [20%, 50%]}}]}
"""
BUDGET = (
    "budget: {adaptive: true, launches: 4, batch: 2, most_launches: 12, mixes_per_launch: %d, longest_launch: 36000}\n"
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return project_of(tmp_path, STUDY + BUDGET % 64)


def named(plan):
    return {(mix.partitions[0].name if mix.partitions else "unmanaged"): mix.identity for mix in plan.mixes}


def at(plan, losses, half=0.3, launches=4, left=8, before=None, limit=10.0):
    """Decide at a look where these losses are known, in per cent.

    No edge is the same object as another one's: two questions whose edges are NaN are equal up to Python 3.12 alone,
    and only if it is the same NaN.
    """
    ids = named(plan)
    silent = MixEstimate(0, math.nan, math.inf)
    known = {
        ids[name]: silent if loss is None else MixEstimate(launches, -math.log1p(-loss / 100), half / 100)
        for name, loss in losses.items()
    }
    asks = {
        name: replace(each, edge=float(str(each.edge))) for name, each in questions(plan.mixes, limit, 0.02).items()
    }
    look = Look(asks, curves(plan.mixes), math.log1p(0.02), left)
    asked = before or [MixAtLook(mix.identity) for mix in plan.mixes if mix.identity not in plan.later]
    names = {identity: name for name, identity in ids.items()}
    return {names[each.identity]: each for each in decide(look, known, asked)}


FIRST = {"split-1": 36.2, "split-3": 30.9, "split-6": 22.1, "split-9": 12.2, "split-11": 4.9,
         "unmanaged": 45, "antagonists-mb20": 3, "antagonists-mb50": 30}  # fmt: skip


def test_ends_and_some_between_are_measured_first(project):
    plan = project.plan()
    ids = named(plan)
    assert {name for name, identity in ids.items() if identity not in plan.later} == set(FIRST)
    assert [curve.family for curve in curves(plan.mixes)] == ["split", BANDWIDTH]
    assert plan.later == measured_later(plan.mixes)


def test_each_class_of_nodes_leaves_out_what_its_cache_has(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    classes = "machines: {small: {model: {ways: 8}}, large: {model: {ways: 12}}}\n"
    plan = project_of(tmp_path, STUDY.replace("model: {ways: 12}\n", classes) + BUDGET % 64).plan()
    parts = parts_of(plan)
    assert [part.later == measured_later(part.mixes) for part in parts] == [True, True]
    assert [len(part.later) for part in parts] == [3, 6]
    assert sorted(plan.later) == sorted(identity for part in parts for identity in part.later)


def test_what_lies_between_two_answers_is_added_and_what_is_clear_stops(project):
    found = at(project.plan(), FIRST)
    assert set(found) - set(FIRST) == {"split-10"}
    assert found["split-10"].goes_on
    assert "split-9 and split-11" in found["split-10"].why
    assert not any(found[name].goes_on for name in ("split-1", "split-3", "split-6", "split-9", "unmanaged"))
    # Beside the limit, and with an answer: two launches more keep its interval honest, however they come out.
    near = at(project.plan(), FIRST | {"split-9": 10.5})
    assert (near["split-9"].answer, near["split-9"].goes_on) == ("more", True)
    late = at(project.plan(), FIRST | {"split-9": 9.9}, launches=6, before=list(near.values()))
    assert (late["split-9"].answer, late["split-9"].goes_on) == ("more", False)
    # At the limit: it goes on until the launches are used up.
    open_ = at(project.plan(), FIRST | {"split-9": 10.1})
    assert (open_["split-9"].answer, open_["split-9"].goes_on) == ("", True)
    assert not any(each.goes_on for each in at(project.plan(), FIRST | {"split-9": 10.1}, left=0).values())


def test_a_bend_is_measured_and_a_straight_line_is_not(project):
    straight = {"split-1": 60, "split-3": 52, "split-6": 40, "split-9": 28, "split-11": 20}
    logs = {name: 100 * -math.expm1(math.log1p(-0.6) + 0.05 * (int(name[6:]) - 1)) for name in straight}
    assert "split-4" not in at(project.plan(), FIRST | logs)
    assert "split-4" in at(project.plan(), FIRST | logs | {"split-6": 30})
    # Losses that rise with the ways contradict what interpolation rests on: all of the curve is measured.
    risen = at(project.plan(), FIRST | {"split-6": 35})
    assert {f"split-{ways}" for ways in range(1, 12)} <= set(risen)


def test_a_mix_without_any_window_stops(project):
    ids = named(project.plan())
    found = at(project.plan(), FIRST | {"split-3": None})
    assert (found["split-3"].answer, found["split-3"].goes_on) == (NOTHING, False)
    # One that no launch was to measure goes on: its look was taken again, with another limit or more launches.
    found = at(project.plan(), {name: loss for name, loss in FIRST.items() if name != "split-3"})
    assert (found["split-3"].answer, found["split-3"].goes_on) == ("", True)
    last = at(project.plan(), {name: loss for name, loss in FIRST.items() if name != "split-3"}, left=0)["split-3"]
    assert reason(last, questions(project.plan().mixes, 10.0, 0.02)[ids["split-3"]]).startswith("no launch is left")


def test_without_a_limit_partitions_off_curves_compete(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweeps = "{sweeps: [{split: all}, {overlap: [0, 2, 4], lead: 6}, {bandwidth: {antagonists: [20%, 50%]}}]}"
    text = STUDY.replace("recommend: {lead_loss: 10%}\n", "").partition("cache:")[0]
    plan = project_of(tmp_path, f"{text}cache: {sweeps}\n" + BUDGET % 64).plan()
    ids, asks = named(plan), questions(plan.mixes, None, 0.02)
    kinds = {name: asks[identity].kind for name, identity in ids.items()}
    assert {kinds[f"overlap-{ways}-lead-6"] for ways in (0, 2, 4)} == {"order"}
    assert (kinds["split-4"], kinds["unmanaged"], kinds["antagonists-mb20"]) == ("knee", "margin", "margin")
    losses = FIRST | {"overlap-0-lead-6": 20, "overlap-2-lead-6": 20.2, "overlap-4-lead-6": 25}
    found = at(plan, losses, limit=None)
    assert [found[f"overlap-{ways}-lead-6"].answer for ways in (0, 2, 4)] == ["alike", "alike", "worse"]
    found = at(plan, losses | {"overlap-0-lead-6": 17}, limit=None)
    assert [found[f"overlap-{ways}-lead-6"].answer for ways in (0, 2, 4)] == ["best", "worse", "worse"]
    found = at(plan, losses | {"overlap-0-lead-6": 17, "overlap-4-lead-6": None}, limit=None)
    assert [found[f"overlap-{ways}-lead-6"].answer for ways in (0, 2, 4)] == ["best", "worse", NOTHING]
    found = at(plan, losses | {"overlap-0-lead-6": 19.5}, half=0.9, limit=None)
    assert [found[f"overlap-{ways}-lead-6"].answer for ways in (0, 2, 4)] == ["", "", "worse"]


def test_few_launches_that_agree_by_luck_do_not_stop_a_mix():
    launches, spread = np.array([4.0, 4, 4]), np.array([1e-6, 0.01, 0.01])
    half = halves(launches, spread, np.zeros(3, dtype=np.int64))
    assert half[0] == half[1] > 0.005
    assert halves(launches, np.array([0.1, 0.001, 0.001]), np.zeros(3, dtype=np.int64))[0] > 0.1, "one that is unlike"


def test_launches_leave_out_what_their_look_left_out(project):
    plan = project.plan()
    launch = plan.launches[0]
    ids = named(plan)
    skipped = skipped_at(launch.cohort, None, plan.later)
    assert set(skipped) == set(plan.later)
    only = as_launched(launch.model_copy(update={"skipped": skipped_at(launch.cohort, [ids["split-10"]], ())}))
    names = {scene.name for scene in only.cohort.scenes}
    allowed = {"alone", "alone-again", "corun:ranking+flood", "corun:ranking+flood@split-10"}
    assert allowed >= names - {"antagonist-alone:flood@2", "placebo:2", "placebo:2@split-10"}
    assert {"alone", "corun:ranking+flood@split-10"} <= names
    assert "corun:ranking+flood@split-9" not in names


@pytest.mark.parametrize("size", [64, 6])
def test_the_full_grid_is_completed_later_and_nothing_is_measured_again(tmp_path, monkeypatch, size):
    monkeypatch.chdir(tmp_path)
    adaptive = project_of(tmp_path, STUDY + BUDGET % size)
    whole = project_of(tmp_path, STUDY + (BUDGET % size).replace("adaptive: true, launches: 4", "launches: 12"))
    before = adaptive.plan()
    going = named(before)
    done = [
        launch.model_copy(update={"skipped": skipped_at(launch.cohort, None, before.later)})
        for launch in before.launches if launch.path in before.looks[0]
    ]  # fmt: skip
    done += [
        launch.model_copy(update={"skipped": skipped_at(launch.cohort, [going["split-10"]], ())})
        for launch in before.launches
        if launch.path in before.looks[2] and any(mix.identity == going["split-10"] for mix in launch.cohort.mixes)
    ]  # a cohort that paused for a look leaves a gap
    again = plan_text(without_decisions(planned(adaptive, done)))
    assert again == plan_text(without_decisions(before)), "one plan, one text: measured or not"

    after = planned(whole, done)
    kept = {(launch.path, launch.fingerprint()) for launch in done}
    assert kept <= {(launch.path, launch.fingerprint()) for launch in after.launches}
    counts = dict.fromkeys(going.values(), 0)
    for launch in after.launches:
        for mix in launch.cohort.mixes:
            counts[mix.identity] += mix.identity not in launch.skipped
    assert set(counts.values()) == {12}
    # Half-way, and again: the same launches.
    measured = [launch for place, launch in enumerate(after.launches) if launch in done or place % 2]
    assert {launch.path for launch in planned(whole, measured).launches} == {launch.path for launch in after.launches}


def planned(project, measured):
    """The plan of the project once these launches are measured."""
    return project._plan(measured)


def test_bad_input_is_one_sentence(tmp_path):
    for budget, expected in {
        "{adaptive: true, precision: 1%, launches: 4}": "no 'precision' beside it",
        "{adaptive: true, launches: 3}": "at least 4, because 'adaptive' learns too little",
        "{adaptive: true, launches: 5, most_launches: 6}": "at least 7, because 'adaptive' is given",
    }.items():
        with pytest.raises(Exception, match=expected):
            read_keys(Study, f"name: x\nleads: [a]\nbudget: {budget}\n", "study.yaml")


def test_interpolated_values_are_monotone_and_inside_their_bounds():
    amount = np.array([1.0, 3, 6, 9])
    value = np.array([0.5, 0.2, 0.21, 0.02])
    known = Measured(amount, value, value - 0.02, value + 0.02, np.full(4, 6.0))
    found = interpolate(known, np.array([2.0, 4, 5, 7, 8]))
    assert (np.diff(found.value) <= 0).all()
    assert ((found.low <= found.value) & (found.value <= found.high)).all()
    assert found.low[0] == pytest.approx(0.18)
    assert found.high[0] == pytest.approx(0.52)


def test_a_look_in_words():
    cells = [
        {"mix": "a+b", "partition": name, "goes_on": goes_on, "why": why, "is_news": True}
        for name, goes_on, why in (
            ("split-1", False, "loses more than 3 % for certain"),
            ("split-2", False, "loses more than 3 % for certain"),
            ("split-4", True, "because the answer changes between split-3 and split-5"),
        )
    ]
    assert sentences({"look": 1, "cells": cells})[1:] == [
        "a+b, split-1 and split-2 stop: each loses more than 3 % for certain",
        "a+b, split-4 begins, because the answer changes between split-3 and split-5",
    ]


def test_no_mean_over_mixes_is_of_those_that_a_look_chose(project):
    plan = project.plan()
    plan = plan.model_copy(update={"sets": (MixSet(name="pairs", mixes=("ranking+flood",)),)})
    found = system_over_mixes(plan, written(plan, lambda *_: 100.0, 1))
    assert set(found["partition"]) == set(FIRST)


def test_partitions_that_other_keys_name_are_measured_at_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = "attribution: {isolated: split-5}\nmitigations: [{lead: ranking, antagonists: [flood], ways: [4]}]\n"
    plan = project_of(tmp_path, STUDY + keys + BUDGET % 64).plan()
    assert set(plan.later) == set(measured_later(plan.mixes)) - {named(plan)["split-4"], named(plan)["split-5"]}


@pytest.mark.parametrize("change", ["clear", "launches", "identity"])
def test_a_look_that_was_edited_is_refused_in_one_sentence(project, change):
    plan, folder = project.plan(), project.results
    cell = dict.fromkeys((*KINDS, *WORDS), "") | {"launches": 4, "answered_after": 0, "clear": False, "goes_on": True}
    cell |= {"identity": plan.mixes[0].identity, change: "strange"}
    folder.look_file(1).parent.mkdir(parents=True)
    folder.look_file(1).write_text(json.dumps({"look": 1, "full_windows": 9, "cohorts": [], "cells": [cell]}))
    with pytest.raises(CastmatesError, match=r"looks/1.json: .*; remove it and run the same command again\."):
        take_adaptive_look(plan, folder, 2, Terms(10.0, 0.02))
