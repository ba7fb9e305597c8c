"""Whole launches in virtual time: whatever scripted processes do, what counts is what their scripts did."""

import math
from collections import Counter
from itertools import groupby, pairwise

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from castmates.runner.rounds.pace import SETTLES
from castmates.runner.rounds.round import MOST_LEFT_OUT
from castmates.runner.rounds.slices import Slice
from castmates.runner.rounds.window import Window
from castmates.study.reasons import ReasonKind, kinds
from tests.unit.simulated.machine import BESIDE, LEAD, MS, SECOND, WAYS, Machine, Script, launch_of, split

SILENT = st.lists(st.tuples(st.integers(1000, 6000), st.integers(1, 800)), max_size=2)
SCRIPTS = st.builds(
    Script,
    step=st.one_of(st.integers(MS // 2, 10 * MS), st.integers(50 * MS, 300 * MS)),
    beside=st.floats(0.4, 1.2),
    cold=st.sampled_from([1.0, 1.0, 0.7, 1.5]),
    cold_for=st.integers(0, 80 * MS),
    silent=SILENT.map(lambda spans: [(begin * MS, (begin + length) * MS) for begin, length in spans]),
    jitter=st.sampled_from([0.0, 0.01, 0.05]),
    stalls=st.sampled_from([0.0, 0.0, 0.002]),
    escapes=st.sampled_from([False] * 6 + [True]),
)
DEATHS = st.one_of(st.none(), st.tuples(st.sampled_from([LEAD, BESIDE]), st.integers(1000, 8000)))
THEFTS = st.lists(st.tuples(st.integers(1000, 5000), st.integers(1, 300)), max_size=3)
MOMENTS = st.lists(st.integers(1000, 6000), max_size=2)


class Stop(BaseException):
    """Somebody wants the launch to end."""


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Launches in which anything may happen."""
    parts = draw(st.sampled_from([(), (), (split(4),), (split(2), split(8))]))
    launch = launch_of(partitions=parts, seed=draw(st.integers(1, 10**6)), rounds=draw(st.integers(1, 3)))
    scripts = {LEAD: draw(SCRIPTS), BESIDE: draw(SCRIPTS)}
    if death := draw(DEATHS):
        scripts[death[0]].dies = death[1] * MS
    thefts = [(begin * MS, (begin + length) * MS) for begin, length in draw(THEFTS)]
    machine = Machine(launch, scripts, seed=draw(st.integers(1, 10**6)), thefts=thefts)
    machine.alarms += [(moment * MS, lambda: meddle(machine)) for moment in sorted(draw(MOMENTS))]
    looks = draw(st.one_of(st.none(), st.integers(1, 300)))
    if looks is not None:
        machine.check = stopping_after(looks)
    return machine


def stopping_after(looks):
    left = [looks]

    def check():
        left[0] -= 1
        if not left[0]:
            raise Stop

    return check


def meddle(machine):
    """Somebody else writes the lead's mask."""
    if machine.allocator.groups:
        file = f"{machine.allocator.groups[LEAD]}/schemata"
        before = machine.kernel.read(file)
        machine.kernel.write(file, "L3:0=3\n")
        machine.meddled += [machine.now] * (machine.kernel.read(file) != before)


@settings(phases=[Phase.explicit, Phase.generate])  # smaller examples would take minutes to find, and tell no more
@given(machines())
def test_whatever_happens_in_a_launch(machine):
    machine.meddled = []
    try:
        outcome = machine.measure()
    except Stop:
        outcome = None
    assert machine.kernel.names("") == pristine().names(""), "a group is left"
    assert machine.kernel.read("schemata") == pristine().read("schemata"), "a mask is left"
    if outcome is None:
        return
    if outcome.status == "failed":
        assert (outcome.windows, outcome.rounds) == ([], 0)
        assert any(machine.now >= job.script.dies for job in machine.jobs.values()), outcome.reason
        return
    every_window_is_there_once(machine)
    what_was_thrown_away_counts_no_more(machine)
    for window in outcome.windows:
        for each in window.all_slices:
            progress_is_the_scripts(machine, each)
        if not window.reasons:
            what_counts_is_clean(machine, window)


def pristine():
    return Machine(launch_of()).kernel


def every_window_is_there_once(machine):
    outcome, scenes = machine.outcome, {scene.name for scene in machine.launch.cohort.scenes}
    assert max(Counter((window.round, window.scene.name) for window in outcome.windows).values()) == 1
    rounds = {number: list(own) for number, own in groupby(outcome.windows, key=lambda window: window.round)}
    assert all({window.scene.name for window in own} == scenes for own in rounds.values())
    assert outcome.rounds == sum(not any(window.reasons for window in own) for own in rounds.values())
    assert outcome.rounds <= machine.launch.design.rounds
    slices = sorted((each for window in outcome.windows for each in window.all_slices), key=lambda each: each.number)
    assert [each.number for each in slices] == list(range(1, len(slices) + 1))
    assert all(before.close_ns <= after.switch_ns for before, after in pairwise(slices))
    for each in slices:
        pace = outcome.paces[each.round]
        assert each.length_s == pace.length_s >= SETTLES * pace.settle_s
        # Of what is found later, half is left out at most: else only those with quick steps would have some left.
        assert max(map(each.steady_s, each.scene.active)) <= max(MOST_LEFT_OUT * pace.length_s, pace.settle_s)
    assert outcome.pace is outcome.paces[max(outcome.paces)]


def thrown_away(machine):
    """The last round whose slices were found to be too short, as the launch said; 0 where none was."""
    lengths = [number for number, words in enumerate(machine.said) if words.startswith("slices of")]
    return max((int(machine.said[at + 1].split()[1].rstrip(":")) for at in lengths if at), default=0)


def what_was_thrown_away_counts_no_more(machine):
    last = thrown_away(machine)
    for window in machine.outcome.windows:
        assert (ReasonKind.NOT_SETTLED in kinds(window.reasons)) == (window.round <= last)


def progress_is_the_scripts(machine: Machine, each: Slice):
    """From when a rate has settled on, to the first step past the slice's nominal end, and not one step else."""
    for name in each.scene.active:
        begin, end = each.begin_ns(name), each.end_ns or each.close_ns
        steps = [(t, units) for t, units in machine.jobs[name].log if begin <= t <= each.close_ns]
        late = [step for step in steps if step[0] >= end] if each.end_ns else []
        found = each.progress(name)
        assert list(found.records) == [step for step in steps if step[0] < end or not each.end_ns] + late[:1]
        if len(found.records) > 1:
            seconds = (found.records[-1][0] - found.records[0][0]) / SECOND
            assert found.rate == pytest.approx((len(found.records) - 1) / seconds)


def what_counts_is_clean(machine: Machine, window: Window):
    """Nobody else made a step in it, its CPU was not stolen, nobody changed its masks."""
    for each in (each for each in window.all_slices if each.counted):
        running = set(each.since_switch)
        for name, job in machine.jobs.items():
            assert name in running or not any(each.switch_ns < t <= each.close_ns for t, _ in job.log), name
        (stolen,) = [sample.value for sample in each.samples if sample.metric == "steal_s"]
        assert stolen <= max(machine.launch.design.limits.steal * each.seconds, 0.015)
    stretch = [one for one in machine.outcome.windows if stretch_of(one) == stretch_of(window)]
    first = min(each.open_ns for one in stretch for each in one.all_slices)
    last = max(one.watched.close_ns for one in stretch)
    assert not any(first < moment < last for moment in machine.meddled)


def stretch_of(window):
    return window.round, window.watched.stretch


STEADY = {LEAD: Script(step=2 * MS, beside=0.8), BESIDE: Script(step=3 * MS, beside=0.5)}


@given(
    st.integers(MS // 2, 12 * MS),
    st.integers(MS // 2, 300 * MS),
    st.floats(0.3, 1.5),
    st.floats(0.3, 1.5),
    st.sampled_from([(), (split(3),)]),
)
@example(500_000, 234_444_724, 1.0, 0.375, (split(3),))
def test_steady_rates_are_the_scripts_to_the_last_digit_and_every_round_counts(lead, beside, slower, worse, parts):
    scripts = {LEAD: Script(step=lead, beside=slower), BESIDE: Script(step=beside, beside=worse)}
    machine = Machine(launch_of(partitions=parts), scripts)
    outcome = machine.measure()
    assert outcome.rounds == 2, [window.reasons for window in outcome.windows]
    for window in outcome.windows:
        for name in window.scene.active:
            script = scripts[name]
            company = len(window.scene.active) + len(window.scene.placebos) > 1
            true = SECOND / script.step * (script.beside if company else 1.0)
            rate = window.total(name).rate
            if name != LEAD and math.isnan(rate):  # unknown: no two steps of it ended in its slices
                assert sum(each.seconds for each in window.all_slices) < 2 / true
            else:
                assert rate == pytest.approx(true, rel=1e-5)


def test_the_same_seed_is_the_same_launch():
    def once():
        noisy = {LEAD: Script(jitter=0.03, stalls=0.002), BESIDE: Script(jitter=0.1, step=5 * MS)}
        outcome = Machine(launch_of(), noisy).measure()
        return [
            (window.scene.name, window.total(name).rate) for window in outcome.windows for name in window.scene.active
        ]

    assert once() == once()


def test_windows_that_were_thrown_away_never_count_again():
    """Slices were too short for the lead in the first round; what the next one teaches of others judges all anew."""
    quick, slow = Script(MS // 4, cold=0.5, cold_for=40 * MS), Script(MS // 2, cold=0.5, cold_for=100 * MS)
    machine = Machine(launch_of(rounds=3, settle=0.005, window=0.3), {LEAD: quick, BESIDE: slow})
    outcome = machine.measure()
    assert thrown_away(machine) == 1
    assert outcome.settling.others, "nothing was learned later, so nothing was judged anew"
    what_was_thrown_away_counts_no_more(machine)
    assert outcome.rounds == 3


def test_what_is_learned_later_is_left_out_of_earlier_rounds_too():
    scripts = {LEAD: Script(), BESIDE: Script(step=MS // 2, cold=0.5, cold_for=25 * MS)}
    outcome = Machine(launch_of(rounds=3, window=0.3), scripts).measure()
    assert outcome.settling.others.keys() == {BESIDE}
    for window in (window for window in outcome.windows if BESIDE in window.scene.active):
        assert window.total(BESIDE).rate == pytest.approx(2000, rel=0.02)


def test_what_is_found_later_takes_half_of_earlier_slices_at_most():
    lead = Script(MS // 4, cold=0.5, cold_for=28 * MS)
    outcome = Machine(launch_of(rounds=2, settle=0.005, window=0.3), {LEAD: lead}).measure()
    first = next(window for window in outcome.windows if LEAD in window.scene.active).slices[0]
    assert outcome.settling.seconds > 0.5 * first.length_s
    assert first.begin_ns(LEAD) - first.switch_ns == pytest.approx(0.5 * first.length_s * SECOND, rel=0.001)
    assert outcome.paces[2].length_s >= SETTLES * outcome.settling.seconds


def test_who_was_silent_in_one_round_is_waited_for_in_the_next():
    slow = Script(step=150 * MS)
    begun = min(window.watched.switch_ns for window in Machine(launch_of(), {BESIDE: slow}).measure().windows)
    slow = Script(step=150 * MS, silent=[(begun - 100 * MS, 10**15)])
    machine = Machine(launch_of(rounds=1, spare_rounds=1), {BESIDE: slow})

    def say(words):
        machine.said.append(words)
        if words.startswith("round 1"):
            machine.jobs[BESIDE].script.silent = ()

    machine.say = say
    outcome = machine.measure()
    found = {number: list(own) for number, own in groupby(outcome.windows, key=lambda window: window.round)}
    assert ReasonKind.NO_PROGRESS in {kind for window in found[1] for kind in kinds(window.reasons)}
    assert not any(window.reasons for window in found[2])
    for window in (window for window in found[2] if BESIDE in window.scene.active):
        assert window.total(BESIDE).rate == pytest.approx(SECOND / (150 * MS), rel=1e-6)


def test_of_those_who_are_silent_one_window_a_round_is_kept_open_as_long_as_may_be():
    """The others would be rejected all the same."""
    slow = Script(step=150 * MS)
    usual = Machine(launch_of(), {BESIDE: slow}).measure()
    begun = min(window.watched.switch_ns for window in usual.windows)
    silent = Machine(launch_of(rounds=1, spare_rounds=0), {BESIDE: Script(step=150 * MS, silent=[(begun, 10**15)])})
    long = [window.watched for window in silent.measure().windows if window.watched.seconds > 0.9]
    assert len(long) == 1


@pytest.mark.parametrize("who", [LEAD, BESIDE])
def test_a_death_in_the_very_last_window_is_noticed(who):
    outcome = Machine(launch_of(), STEADY).measure()
    last = max((each for window in outcome.windows for each in window.all_slices), key=lambda each: each.number)
    scripts = STEADY | {who: Script(**{**vars(STEADY[who]), "dies": (last.open_ns + last.close_ns) // 2})}
    failed = Machine(launch_of(), scripts).measure()
    assert failed.status == "failed"
    assert failed.reason.startswith(f"{who} ended by itself with status 7")
    assert failed.windows == []


def test_a_slice_longer_than_the_ring_loses_no_heartbeat():
    """The ring lasts for two seconds where a beat comes every 30 microseconds."""
    launch = launch_of(rounds=1, spare_rounds=0, window=2.5, slice=2.5, longest_window=2.5, longest_settle=0.0)
    cohort = launch.cohort.model_copy(update={"scenes": launch.cohort.scenes[:1]})
    machine = Machine(launch.model_copy(update={"cohort": cohort}), {LEAD: Script(step=30_000)})
    (window,) = machine.measure().windows
    assert window.reasons == []
    units = [units for _, units in window.watched.progress(LEAD).records]
    assert len(units) > 1 << 16
    assert units == list(range(units[0], units[-1] + 1))


def test_masks_are_those_of_the_scene_while_it_is_measured():
    machine = Machine(launch_of(partitions=[split(4), split(8)]), STEADY)
    seen = []
    really_exchange = machine.stage.exchange

    def exchange(names):
        really_exchange(names)
        if names:
            seen.append((machine.now, machine.kernel.read(f"{machine.allocator.groups[LEAD]}/schemata")))

    machine.stage.exchange = exchange
    outcome = machine.measure()
    at = dict(seen)
    for window in outcome.windows:
        (ways,) = {share.ways for share in window.scene.shares if share.member == LEAD} or {WAYS}
        assert all(f"L3:0={ways:03x}" in at[each.switch_ns] for each in window.all_slices)


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        (
            lambda machine: machine.kernel.write(f"{machine.allocator.groups[LEAD]}/schemata", "L3:0=3\n"),
            f"masks changed: of {LEAD}, 'MB:0=100 L3:0=1' was 'MB:0=100 L3:0=3'",
        ),
        (
            lambda machine: machine.kernel.write("tasks", f"{machine.jobs[LEAD].pid}\n"),
            f"out of its group: {LEAD} has a thread outside",
        ),
    ],
    ids=["changes a mask", "moves a thread"],
)
def test_somebody_else_at_the_cache_costs_the_windows_of_that_stretch(deed, reason):
    launch = launch_of(partitions=[split(1)], rounds=1, spare_rounds=1)
    usual = Machine(launch, STEADY).measure().windows
    moment = min(window.watched.open_ns for window in usual if window.scene.partition == "split-1") - MS
    machine = Machine(launch, STEADY, alarms=[])
    machine.alarms.append((moment, lambda: deed(machine)))
    windows = machine.measure().windows
    spoilt = [window for window in windows if window.reasons]
    assert {str(found)[: len(reason)] for window in spoilt for found in window.reasons} == {reason}
    first = {window.scene.name for window in windows if (window.round, window.scene.partition) == (1, "split-1")}
    assert {
        window.scene.name for window in spoilt if window.round == 1 and window.scene.partition == "split-1"
    } == first


@settings(max_examples=20)
@given(st.integers(2 * MS, 200 * MS), st.integers(MS // 10, 20 * MS), st.floats(0.3, 1.0))
def test_time_between_two_runs_is_the_keepers_and_spoils_windows_from_its_limit_on(run, gap, beside):
    script = Script(step=run, gap=gap, beside=beside)
    machine = Machine(launch_of(kept=True, rounds=1, spare_rounds=0), {LEAD: Script(), BESIDE: script})
    outcome, limit = machine.measure(), machine.launch.design.limits.restart_gap
    for window in (window for window in outcome.windows if BESIDE in window.scene.active):
        for each in window.all_slices:
            (absent,) = [sample.value for sample in each.samples if sample.metric == "restart_gap_s"]
            assert absent == pytest.approx(absent_s(machine.jobs[BESIDE].gaps, each), abs=1e-8)
            spoilt = ReasonKind.RESTART_GAP in kinds(each.reasons)
            assert spoilt == (each.watched and absent > limit * each.seconds)


@pytest.mark.parametrize("who", [LEAD, BESIDE])
@pytest.mark.parametrize("gap", [20 * MS, 300 * MS, 3 * SECOND])
def test_time_between_two_runs_of_a_program_that_makes_steps_is_in_no_slice(gap, who):
    scripts = {LEAD: Script(step=2 * MS, beside=0.8), BESIDE: Script(step=3 * MS)}
    scripts[who].gap, scripts[who].steps = gap, 151
    machine = Machine(launch_of(rounds=4), scripts)
    outcome, job = machine.measure(), machine.jobs[who]
    slices = [each for window in outcome.windows for each in window.all_slices if who in window.scene.active]
    assert len(job.gaps) > 2, "there was something to leave out"
    assert not any(begin < each.close_ns and each.switch_ns < end for each in slices for begin, end in job.gaps if end)
    assert not any(window.reasons for window in outcome.windows)
    rates = {window.scene.kind: window.total(LEAD).rate for window in outcome.windows if LEAD in window.scene.active}
    assert rates["alone"] == pytest.approx(SECOND / (2 * MS), rel=1e-6)
    assert rates["corun"] == pytest.approx(0.8 * rates["alone"], rel=1e-6), "whatever the gap takes"
    (again,) = [process.spoilt for process in outcome.cast if process.name == who]
    assert 0 < again <= len(job.gaps)


def test_runs_that_are_shorter_than_a_slice_spoil_it_with_a_sentence():
    machine = Machine(launch_of(rounds=1), {LEAD: Script(step=2 * MS, gap=5 * MS, steps=8)})
    slices = [each for window in machine.measure().windows for each in window.all_slices]
    reasons = {str(reason) for each in slices for reason in each.reasons}
    assert any("lead@0 ended and was started again in a slice of" in reason for reason in reasons), reasons


def absent_s(gaps, each):
    """How long nothing ran inside a slice; the last gap may not be over."""
    spans = [(max(begin, each.open_ns), min(end or each.close_ns, each.close_ns)) for begin, end in gaps]
    return sum(max(0, end - begin) for begin, end in spans) / SECOND
