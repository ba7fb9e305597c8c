"""Masks that cut through the ways that I/O fills too: marked, and never chosen as isolating unless registers allow."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.analysis.partitions.attribution_parts import candidates
from castmates.analysis.partitions.held import (
    AS_ASKED,
    BEYOND,
    NOT_READ,
    OTHERWISE,
    SHARED,
    UNCERTAIN,
    as_held,
    equal,
    held_by,
    sharers,
    states,
)
from castmates.analysis.partitions.recommendation import recommendations
from castmates.analysis.partitions.sensitivity import knees, sensitivity_table
from castmates.report.figures import sensitivity
from castmates.report.page.page import page, shown
from castmates.report.results import Results
from castmates.report.text import machine
from castmates.report.text.recommendation import sentence
from castmates.results.columns.partitions import PARETO
from castmates.results.columns.study import CARRYOVER, CONTROLS, LAUNCHES, frame
from castmates.study.partitions.sweeps import cut_by, cut_ways
from castmates.study.spec import REST, UNMANAGED, Partition, Share
from castmates.terminal.preview import isolation
from tests.unit import partition_maker as maker
from tests.unit.caches import cache
from tests.unit.modelled.makers import STUDY, project_of
from tests.unit.snapshots import assert_as_before
from tests.unit.test_figure_partitions import _launch, texts

SHIPPED = yaml.safe_load(Path(__file__).resolve().parents[2].joinpath("config/studies/cat-sweep.yaml").read_text())
IO = {"ways": 11, "io_ways": "0x600"}
LEAD, STREAM = maker.LEAD, maker.STREAM


def shipped(tmp_path, monkeypatch, model):
    """The plan of the shipped sweep of masks, on a modelled machine."""
    monkeypatch.chdir(tmp_path)
    project = project_of(tmp_path, STUDY + yaml.safe_dump({"cache": SHIPPED["cache"], "model": model}))
    return project, project.plan()


@pytest.mark.parametrize(
    ("mask", "shareable", "cut"),
    [(0x3FF, 0x600, True), (0x400, 0x600, True), (0x600, 0x600, False), (0x7FF, 0x600, False), (0x1FF, 0x600, False),
     (0x3FF, 0, False), (0, 0x600, False), (0x800, 0x800, False),
     # goresctrl's recording of two L3 has shareable_bits c0001: way 0 comes by itself.
     (0x1, 0xC0001, False), (0x7F, 0xC0001, False), (0xFFF80, 0xC0001, False), (0x40001, 0xC0001, True)],
)  # fmt: skip
def test_a_mask_cuts_where_it_has_some_but_not_all_of_the_shared_ways(mask, shareable, cut):
    assert bool(cut_ways(mask, shareable)) is cut


def test_where_io_fills_all_ways_or_nothing_is_known_no_mask_cuts():
    four = maker.split(4)
    assert not cut_by(four, cache(12, shareable=0xFFF))
    assert not cut_by(four, None)
    assert cut_by(four, cache(12, shareable=0x0F8))
    code = Partition(name="code", shares=(Share(member=LEAD, ways=0x1, code=0x400),))
    assert cut_by(code, cache(11, shareable=0x600))


def test_the_shipped_sweep_on_eleven_ways_never_isolates_by_a_mask_that_may_be_joined(tmp_path, monkeypatch):
    project, plan = shipped(tmp_path, monkeypatch, IO)
    assert set(candidates(plan, None)["partition"]) == {f"split-{ways}" for ways in range(1, 10)}
    (note,) = [note for note in map(str, plan.notes) if "cut" in note]
    assert note.startswith("cache: split-10, lead-10 and cap-1 cut through the ways 0x600 that I/O fills too: ")
    said = isolation.line(plan, None)
    assert said.endswith(
        "Left out is split-10: masks there have some but not all of the ways 0x600 that I/O fills too, and some "
        "processors give these together only."
    )
    shown = [row for cohort in plan.cohorts for row in _rows(cohort, plan, project)]
    assert {schemata for _, schemata, ways in shown if ways.endswith(" or more")} == {
        "L3:0=3ff MB:0=100", "L3:0=400 MB:0=100",
    }  # fmt: skip
    # Who names it takes the risk, and is warned.
    assert set(candidates(plan, "split-10")["partition"]) == {"split-10"}
    assert "Masks of split-10 have some but not all of the ways 0x600" in isolation.line(plan, "split-10")
    assert "Left out" not in isolation.line(plan, "split-4")


def _rows(cohort, plan, project):
    layout = project.layout()
    for name in dict.fromkeys(scene.partition for scene in cohort.scenes if scene.partition != UNMANAGED):
        scenes = [scene for scene in cohort.scenes if scene.partition == name]
        yield from isolation.rows(cohort, scenes, plan.cache, layout)


def test_a_machine_without_such_ways_has_no_mark(tmp_path, monkeypatch):
    _, plan = shipped(tmp_path, monkeypatch, {"ways": 11})
    assert "split-10" in set(candidates(plan, None)["partition"])
    assert not [note for note in map(str, plan.notes) if "cut" in note]
    assert "Left out" not in isolation.line(plan, None)


def made(*partitions, shareable=0x600):
    """A mix under partitions, on a cache of eleven ways."""
    one = maker.atoms(ways=(), caps=(), sensitivity=())[0]
    plan = maker.made([one, *(maker.under(one, partition) for partition in partitions)])
    return plan.model_copy(update={"cache": cache(11, shareable=shareable)})


def split(ways):
    own = (1 << ways) - 1
    shares = (Share(member=LEAD, ways=own), *(Share(member=who, ways=0x7FF & ~own) for who in (STREAM, REST)))
    return Partition(name=f"split-{ways}", shares=shares, curve="split")


def slow(rate):
    return Partition(name=f"mb{rate}", shares=(Share(member=STREAM, bandwidth=rate),))


def record(cohort, status="measured", **partitions):
    """A launch's record; of each partition rows of (member, line, asked, held)."""
    rows = {
        name.replace("_", "-"): [
            {"member": member, "line": line, "domain": 0, "asked": asked, "held": held}
            for member, line, asked, held in found
        ]
        for name, found in partitions.items()
    }
    processor = {"processor": {"registers": {"how": "read", "lacking": ""}, "partitions": rows}} if partitions else {}
    return {"status": status, "spec": {"cohort": {"id": cohort}}} | processor


def test_ways_that_others_on_the_machine_have_isolate_nobody():
    plan = made(split(4), split(6), shareable=0)
    cohort = plan.cohorts[0].id
    mix = plan.mixes[0].name
    found = record(cohort, split_4=[], split_6=[])
    found["processor"]["shared"] = {"split-6": ["goresctrl.Guaranteed"]}
    held = held_by([record(cohort, split_4=[], split_6=[]), found])
    known = states(plan, held)
    assert known == {(mix, "split-4"): AS_ASKED, (mix, "split-6"): SHARED}
    assert sharers(plan, held)[mix, "split-6"] == ("goresctrl.Guaranteed",)
    assert set(candidates(plan, None, known)["partition"]) == {"split-4"}
    assert candidates(plan, "split-6", known).empty
    (said,) = isolation.shared(plan, {"goresctrl.Guaranteed": 0x30, "batch": 0})
    assert said.startswith("Ways of split-4 and split-6 are shared with goresctrl.Guaranteed")


def test_masks_that_members_fill_past_isolate_nobody_whatever_the_registers_hold():
    plan = made(split(4), split(6), shareable=0)
    cohort, mix = plan.cohorts[0].id, plan.mixes[0].name
    found = record(cohort, split_4=[], split_6=[])
    found["processor"]["beyond"] = {"split-6": {STREAM: [8.3, 5]}}
    known = states(plan, held_by([record(cohort, split_4=[], split_6=[]), found]))
    assert known == {(mix, "split-4"): AS_ASKED, (mix, "split-6"): BEYOND}
    assert set(candidates(plan, None, known)["partition"]) == {"split-4"}
    assert candidates(plan, "split-6", known).empty


JOINED = [(LEAD, "L3", "3ff", "7ff"), (STREAM, "L3", "400", "600"), (REST, "L3", "400", "600")]


def test_registers_clear_a_mask_that_cuts_and_convict_one_that_is_joined():
    plan = made(split(4), split(10))
    cohort = plan.cohorts[0].id
    mix = plan.mixes[0].name
    unread = held_by([record(cohort)])
    assert states(plan, unread) == {(mix, "split-4"): NOT_READ, (mix, "split-10"): UNCERTAIN}
    clear = held_by([record(cohort, split_4=[], split_10=[])] * 2)
    assert set(states(plan, clear).values()) == {AS_ASKED}
    assert set(candidates(plan, None, states(plan, clear))["partition"]) == {"split-4", "split-10"}
    joined = held_by([record(cohort, split_4=[], split_10=JOINED)])
    assert states(plan, joined) == {(mix, "split-4"): AS_ASKED, (mix, "split-10"): OTHERWISE}
    real = as_held(plan, joined)
    assert set(candidates(real, None, states(plan, joined))["partition"]) == {"split-4"}
    assert candidates(real, "split-10", states(plan, joined)).empty  # not even where the study names it
    effects = estimate_effects(real, maker.windows(plan), 0.02, held=states(plan, joined))
    ways = effects.drop_duplicates("partition").set_index("partition")
    assert ways["held"].to_dict() == {UNMANAGED: "", "split-4": AS_ASKED, "split-10": OTHERWISE}
    assert ways["lead_ways"]["split-10"] == 11


def test_a_launch_that_could_not_read_leaves_the_mask_uncertain():
    plan = made(split(10))
    cohort = plan.cohorts[0].id
    some = held_by([record(cohort, split_10=[]), record(cohort)])
    assert set(states(plan, some).values()) == {UNCERTAIN}
    failed = held_by([record(cohort, split_10=[]), record(cohort, status="failed")])
    assert set(states(plan, failed).values()) == {AS_ASKED}
    assert set(states(plan, held_by([record("another", split_10=[])])).values()) == {UNCERTAIN}


def test_attribution_names_the_reason_where_only_such_masks_separate():
    plan = made(split(10))
    table = estimate_attribution(plan, maker.windows(plan), 0.02)
    (note,) = set(table["note"])
    assert "only masks that cut through the ways of I/O separate them" in note
    named = estimate_attribution(plan, maker.windows(plan), 0.02, "split-10")
    assert set(named["partition"]) == {"split-10"}
    assert set(named["note"]) == {
        "under split-10 lead and antagonists may share ways, because the processor may join those of I/O"
    }
    cleared = {(plan.mixes[0].name, "split-10"): AS_ASKED}
    assert set(estimate_attribution(plan, maker.windows(plan), 0.02, held=cleared)["partition"]) == {"split-10"}


def test_throttles_that_the_processor_makes_equal_are_one():
    plan = made(slow(70), slow(80), slow(90), slow(60))
    cohort = plan.cohorts[0].id
    found = held_by(
        [record(cohort, mb70=[(STREAM, "MB", "70", "90")], mb80=[(STREAM, "MB", "80", "90")], mb90=[], mb60=[])]
    )
    assert equal(plan, found) == [("mb70", "mb80", "mb90")]
    assert equal(plan, held_by([])) == []


def on_two_caches(cohort, partition, rows, caches=(0, 1)):
    """A record of members that use these caches; rows are (member, cache, asked, held)."""
    found = [{"member": who, "line": "L3", "domain": at, "asked": asked, "held": now} for who, at, asked, now in rows]
    one = record(cohort, **{partition.replace("-", "_"): []})
    one["processor"]["partitions"][partition] = found
    one["processor"]["caches"] = {who: list(caches) for who in (LEAD, STREAM, REST)}
    return one


@pytest.mark.parametrize(
    ("rows", "isolates", "lead_ways"),
    [
        # Tied on one cache alone: it is its other cache that has the fewest ways, and they overlap on the first.
        ([(LEAD, 0, "3ff", "7ff")], False, 10),
        # One takes the last ways of the first cache, the other those of the second: they never meet.
        ([(LEAD, 0, "3ff", "1ff"), (STREAM, 0, "400", "600"), (STREAM, 1, "400", "400")], True, 9),
        # Held narrower on one cache, and as asked on the other, where the antagonist has come to reach into it.
        ([(LEAD, 1, "3ff", "0ff"), (STREAM, 0, "400", "600")], False, 8),
        ([(LEAD, 0, "3ff", "0ff"), (STREAM, 0, "400", "700")], True, 8),
    ],
)
def test_masks_of_several_caches_are_held_apart(rows, isolates, lead_ways):
    """Joined, masks seemed to overlap that never meet; and what only one cache held stood for all of them."""
    plan = made(split(10))
    cohort = plan.cohorts[0].id
    known = held_by([on_two_caches(cohort, "split-10", rows)])
    real = as_held(plan, known)
    assert bool(len(candidates(real, "split-10", states(plan, known)))) == isolates
    effects = estimate_effects(real, maker.windows(plan), 0.02, held=states(plan, known))
    assert effects.set_index("partition")["lead_ways"]["split-10"].tolist().count(lead_ways) > 0


def test_partitions_that_differ_on_one_cache_are_not_the_same():
    plan = made(split(9), split(10))
    cohort = plan.cohorts[0].id
    same = [(LEAD, 0, "1ff", "3ff"), (STREAM, 0, "600", "400"), (REST, 0, "600", "400")]
    other = [(who, 1, asked, now) for who, _, asked, now in same]
    both = on_two_caches(cohort, "split-9", same + other)
    one = on_two_caches(cohort, "split-9", same)
    for found in (both, one):
        found["processor"]["partitions"]["split-10"] = []
    assert equal(plan, held_by([both])) == [("split-9", "split-10")]
    assert equal(plan, held_by([one])) == []


def page_of(plan, *records):
    """The results of a study as its page is made of them."""
    table = maker.windows(plan, noise=0.01)
    known = held_by(records)
    return Results(
        name="sweep",
        effects=estimate_effects(as_held(plan, known), table, 0.02, held=states(plan, known)),
        controls=frame([], CONTROLS),
        carryover=frame([], CARRYOVER),
        launches=frame([_launch(launch, "measured") for launch in plan.launches], LAUNCHES),
        windows=table,
        plan=plan,
        attribution=estimate_attribution(as_held(plan, known), table, 0.02, held=states(plan, known)),
        recorded=records,
    )


def marks(results):
    """The names of partitions with their mark, in the page's table of effects."""
    text = page(results, dict.fromkeys(shown(results), "<svg></svg>"))
    return set(re.findall(r"<td>(split-\d+(?: [‡§])?|mb\d+)</td>", text))


def test_the_page_marks_masks_and_reports_what_registers_held():
    unread = record("c1") | {"processor": {"registers": {"how": "", "lacking": "no module msr"}, "partitions": {}}}
    throttled = {"mb70": [(STREAM, "MB", "70", "90")], "mb80": [(STREAM, "MB", "80", "90")]}
    read = record("c1", split_4=[], split_10=JOINED, **throttled)
    pages = {
        "unread": page_of(made(split(4), split(10)), unread),
        "read": page_of(made(split(4), split(10), slow(70), slow(80)), read),
        "without partitions": page_of(made(), record("c1")),
    }
    marked = {name: [machine.sentences(results), *sorted(marks(results))] for name, results in pages.items()}
    assert_as_before("io-ways", marked)


@pytest.mark.parametrize(("held", "said"), [([], True), ([(STREAM, "L3", "400", "600")], False)])
def test_the_page_names_what_was_filled_only_where_it_decides(held, said):
    """Where registers held more ways than were asked, these are what was filled."""
    plan = made(split(4), split(6), shareable=0)
    found = record(plan.cohorts[0].id, split_4=[], split_6=held)
    found["processor"]["beyond"] = {"split-6": {STREAM: [2.0, 1]}}
    text = machine.sentences(page_of(plan, found))
    assert (f"{STREAM} 2 of 1 under split-6. Such a partition isolates nobody" in text) == said


@pytest.mark.parametrize(
    ("state", "words"), [(UNCERTAIN, "may share ways"), (OTHERWISE, "are those that"), (NOT_READ, "")]
)
def test_a_recommended_mask_has_its_doubt_beside_it(state, words):
    row = {"study": "s", "mix": "a+b", "lead": "a", "antagonists": "b", "partition": "split-10", "curve": "split",
           "lead_ways": 10, "lead_bytes": 1.0, "stage": "search", "source": "s", "loss_pct": 1.0, "loss_low": 0.5,
           "loss_high": 1.5, "kept_pct": 90.0, "kept_low": 89.0, "kept_high": 91.0, "stp": 1.9, "stp_low": 1.8,
           "stp_high": 2.0, "frontier": True, "launches": 5, "refused": 0, "why_refused": "", "design": "",
           "platform": "measured", "held": state, "freedom": 4}  # fmt: skip
    (advice,) = recommendations(frame([row], PARETO), 3.0).to_dict("records")
    assert advice["held"] == state
    said = sentence(advice, "castmates sweep s.yaml --confirm")
    assert words in said
    assert ("processor" in said) is bool(words)


def test_the_figure_of_ways_remarks_on_it():
    plan = made(split(4), split(10))
    found = page_of(plan)
    for shareable, remark in ((0x600, True), (0, False)):
        one = plan.model_copy(update={"cache": cache(11, shareable=shareable)})
        effects = estimate_effects(one, found.windows, 0.02)
        curves = sensitivity_table(one, effects)
        drawn = replace(found, plan=one, effects=effects, sensitivity=curves, knees=knees(curves, 11))
        written = " ".join(" ".join(texts(sensitivity.draw(drawn)[0])).split())
        assert ("the processor may add the others" in written) is remark
