"""What a rejected slice costs: its cycle in all scenes; what a watched slice proves: all of its stretch."""

from types import SimpleNamespace

import pytest

from castmates.protocols import Sample
from castmates.report.launch_record import LedgerFacts
from castmates.report.text.health import stretches_sentence
from castmates.runner.rounds.ledger import Ledger, summary
from castmates.runner.rounds.ledger_load import Surroundings
from castmates.study.budget_keys import Limits
from tests.unit.rounds.makers import BESIDE, LEAD, MS, beats, cpu_time, scene_of, slice_of, window_of
from tests.unit.windows_maker import DESIGN, member

ALONE, CORUN = scene_of("alone", (LEAD,), "alone"), scene_of()
AGAIN = scene_of("alone-again", (LEAD,), "alone-again")
SCENES = (ALONE, AGAIN, CORUN)
CYCLES = 8
LIMITS = Limits(steal=0.03, foreign=0.05, cycles=0.5)


def ledger(**limits):
    places = {LEAD: (0,), BESIDE: (1,)}
    cast = {name: SimpleNamespace(start=SimpleNamespace(cpus=cpus)) for name, cpus in places.items()}
    stage = SimpleNamespace(cast=cast, evictors={}, hardware=SimpleNamespace(surroundings=Surroundings((), ())))
    members = {LEAD: member(LEAD, "lead"), BESIDE: member(BESIDE)}
    design = DESIGN.model_copy(update={"limits": LIMITS.model_copy(update=limits)})
    return Ledger(stage, members, design, frozenset())


def stretch(cycles=CYCLES):
    """A clean stretch: windows by scene, whose slices take turns."""
    slices = {scene.name: [] for scene in SCENES}
    for cycle in range(1, cycles + 1):
        for place, scene in enumerate(SCENES):
            slices[scene.name].append(slice_of(1000 * cycle + 100 * place, scene, cycle=cycle))
    return {name: window_of(own) for name, own in slices.items()}


def judged(windows, **limits):
    ledger(**limits).judge_stretch(list(windows.values()))
    return windows


def steal(each, seconds=0.02, cpu=0):
    each.samples.append(Sample(each.close_ns, "cputime", f"cpu{cpu}", "steal_s", seconds))


def test_a_clean_stretch_counts_whole():
    windows = judged(stretch())
    assert all(each.counted for window in windows.values() for each in window.slices)
    assert not any(window.reasons for window in windows.values())


@pytest.mark.parametrize("scene", SCENES)
def test_a_rejected_slice_takes_its_cycle_with_it_in_all_scenes(scene):
    windows = stretch()
    steal(windows[scene.name].slices[2])
    judged(windows)
    for name, window in windows.items():
        assert [each.cycle for each in window.slices if not each.counted] == [3]
        assert [bool(each.reasons) for each in window.slices] == [name == scene.name and at == 2 for at in range(8)]
        assert [each.dropped for each in window.slices] == [name != scene.name and at == 2 for at in range(8)]
        assert window.reasons == []


def test_a_scene_and_its_baseline_keep_the_same_moments():
    """Co-runs are hit in most cycles, scenes alone never: what is left of both are the very same cycles."""
    windows = stretch()
    for at in (0, 3, 4):
        steal(windows["corun:m"].slices[at])
    judged(windows)
    left = {name: [each.cycle for each in window.slices if each.counted] for name, window in windows.items()}
    assert left == {name: [2, 3, 6, 7, 8] for name in windows}


@pytest.mark.parametrize(
    ("broken", "share", "counts"), [(4, 0.5, True), (5, 0.5, False), (1, 1.0, False), (7, 0.1, True)]
)
def test_a_window_counts_while_enough_cycles_are_left(broken, share, counts):
    windows = stretch()
    for at in range(broken):
        steal(windows["alone"].slices[at])
    judged(windows, cycles=share)
    left = f"{CYCLES - broken} of {CYCLES} are left (limit {share:.0%}; "
    expected = {"alone": f"{left}steal)", "alone-again": f"{left}others' slices)", "corun:m": f"{left}others' slices)"}
    for name, window in windows.items():
        assert list(map(str, window.reasons)) == ([] if counts else [f"too few cycles: {expected[name]}"])


def doubled(cycles=CYCLES):
    """A stretch whose scene `alone` comes twice in every cycle but the last."""
    windows = stretch(cycles)
    again = [slice_of(1000 * cycle + 500, ALONE, cycle=cycle) for cycle in range(1, cycles)]
    alone = windows["alone"]
    alone.slices = sorted([*alone.slices, *again], key=lambda each: each.open_ns)
    return windows


def test_a_alone_that_comes_twice_in_a_cycle_counts_its_cycles_as_all_others_do():
    """One of two cycles is left of every scene, though one of three slices is of `alone`."""
    windows = doubled(cycles=2)
    steal(windows["corun:m"].slices[0])
    judged(windows)
    assert [each.counted for each in windows["alone"].slices] == [False, False, True]
    assert not any(window.reasons for window in windows.values())


def test_a_single_cycle_keeps_what_is_left_of_a_alone_that_comes_twice():
    windows = stretch(cycles=1)
    windows["alone"].slices.append(slice_of(1500, ALONE, cycle=1))
    steal(windows["alone"].slices[0])
    judged(windows)
    assert [each.counted for each in windows["alone"].slices] == [False, True]
    assert not any(window.reasons for window in windows.values())


@pytest.mark.parametrize("cycles", [1, 2])
def test_a_slow_member_must_work_in_windows_of_any_number_of_slices(cycles):
    windows = stretch(cycles)
    window = windows["corun:m"]
    window.watched.watched, window.slow = False, frozenset({BESIDE})
    window.watched = slice_of(20_000, CORUN, length=800, cycle=cycles + 1, watched=True)
    window.watched.since_switch[BESIDE] = []
    judged(windows)
    assert [*map(str, window.reasons_of(LEAD))] == ["no progress: beside@1 made none in 0.78 s"]


def test_windows_of_one_slice_drop_nobody_and_have_its_reasons():
    windows = stretch(cycles=1)
    steal(windows["corun:m"].slices[0])
    judged(windows)
    (reason,) = windows["corun:m"].reasons
    assert str(reason) == "steal: the hypervisor took 25.0% of CPU 0 (limit 3.0%)"
    assert [windows[name].reasons for name in ("alone", "alone-again")] == [[], []]
    assert not any(each.dropped for window in windows.values() for each in window.slices)


@pytest.mark.parametrize(
    ("metric", "reason"),
    [("settings_changed", "governor changed: x"), ("cpus_offline", "offline: x"), ("pswpin", "swapping: 5000 pages")],
)
def test_what_a_watched_slice_proves_spoils_every_window_of_the_stretch(metric, reason):
    windows = stretch()
    watched = windows["alone"].watched
    watched.samples.append(Sample(watched.close_ns, "any", "host", metric, 5000.0, "x"))
    judged(windows)
    assert all([*map(str, window.reasons)] == [reason] for window in windows.values())
    assert all(each.counted for window in windows.values() for each in window.slices), "no slice is to blame"


def test_findings_that_spoil_a_whole_stretch_are_recorded_apart():
    """One slice showed it; the number of windows that it spoiled is the number of scenes, and no more evidence."""
    clean, spoilt = stretch(), stretch()
    for number, windows in enumerate((clean, spoilt), start=1):
        for window in windows.values():
            window.round = number
    spoilt["corun:m"].watched.allowed = {LEAD: {0, 1}}
    record = summary([*judged(clean).values(), *judged(spoilt).values()])
    assert (record["stretches"], record["stretches_rejected"]) == (2, 1)
    assert record["stretches_because"] == {"off its CPUs": 1}
    assert sum(record["rejected"].values()) == len(SCENES)
    facts = LedgerFacts.model_validate(record)
    assert stretches_sentence([facts, facts]) == (
        "2 of 4 stretches of rounds lost all their windows to a finding in a single slice: off its CPUs (2)."
    )
    assert stretches_sentence([LedgerFacts()]) == ""


def test_who_is_found_off_its_cpus_was_there_for_who_knows_how_long():
    windows = stretch()
    windows["corun:m"].watched.allowed = {LEAD: {0, 1}}
    judged(windows)
    (reason,) = {str(reason) for window in windows.values() for reason in window.reasons}
    assert reason == "off its CPUs: a thread of lead@0 may run on 1"


def test_a_longer_watched_slice_costs_no_cycle():
    windows = stretch()
    window = windows["corun:m"]
    window.watched = slice_of(20_000, CORUN, length=800, cycle=CYCLES + 1, watched=True)
    window.slow = frozenset({BESIDE})
    steal(window.watched, 0.5)
    judged(windows)
    assert window.watched.reasons
    assert all(each.counted for one in windows.values() for each in one.slices)
    assert (window.reasons_of(LEAD), bool(window.reasons_of(BESIDE))) == ([], True)


def test_what_every_slice_may_have_is_too_much_for_all_of_them_together():
    """A tick is no proof in 80 ms; one in each of eight slices is, in all of the window."""
    windows = stretch()
    for each in windows["corun:m"].slices:
        steal(each, 0.01)
    judged(windows)
    assert all(each.counted for each in windows["corun:m"].slices)
    (reason,) = windows["corun:m"].reasons
    assert str(reason) == "steal: the hypervisor took 12.5% of CPU 0 (limit 3.0%)"
    assert windows["alone"].reasons == []


def test_slow_members_are_held_to_their_steps_in_the_watched_slice_alone():
    windows = stretch()
    window = windows["corun:m"]
    for each in window.slices:
        each.since_switch[BESIDE] = []
        each.samples += cpu_time(0, 0.05, BESIDE)
    assert "no progress" in judged(windows)["corun:m"].slices[0].reasons[0].kind
    assert str(window.reasons[0]).startswith("too few cycles: 0 of 8 are left")
    window.slow, window.watched.watched = frozenset({BESIDE}), False
    window.watched = slice_of(20_000, CORUN, length=800, watched=True)
    window.watched.since_switch[BESIDE] = beats(20_100, 20_800, 100)
    judged(windows)
    assert window.reasons == []
    assert all(each.counted for each in window.slices)
    window.watched.since_switch[BESIDE] = []
    judged(windows)
    assert [*map(str, window.reasons_of(BESIDE))] == ["no progress: beside@1 made none in 0.78 s"]
    assert window.reasons_of(LEAD) == window.reasons_of(BESIDE)  # nobody knows whether it had a neighbour


def test_judging_again_is_judging_anew():
    windows = stretch()
    each = windows["alone"].slices[1]
    each.crept = {BESIDE: 3}
    judged(windows)
    assert [*map(str, each.reasons)] == ["not frozen: beside@1 made 3 steps"]
    each.crept = {}
    judged(windows)
    assert all(one.counted for window in windows.values() for one in window.slices)
    assert each.seconds == pytest.approx(80 * MS / 1e9)
