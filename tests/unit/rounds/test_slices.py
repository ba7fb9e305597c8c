"""One slice: where it ends, what of it counts as progress, and what is read at its edges."""

import random
from types import SimpleNamespace

import pytest

from castmates.runner.modelled.hardware import modelled_hardware
from castmates.runner.modelled.launch import ModelledStage, Played, processes
from castmates.runner.modelled.world import World
from castmates.runner.rounds.pace import Pace, Steps
from castmates.runner.rounds.slices import LONGEST_WAIT, Progress, _closed, measure_slice, measure_watched
from castmates.runner.rounds.window import Total
from castmates.study.spec import Scene
from tests.unit.modelled.makers import QUIET, STUDY, project_of
from tests.unit.rounds.makers import BESIDE, LEAD, MS, beats, slice_of

SLOW = "workloads: {slow: {unit: step, model: {compute: 0.4}}}\n"
NS = 1_000_000_000


def test_progress_is_what_lies_between_the_first_and_the_last_heartbeat():
    progress = Progress([(2 * NS, 10), (3 * NS, 30), (6 * NS, 90)])
    assert (progress.units, progress.seconds, progress.rate) == (80.0, 4.0, 20.0)


@pytest.mark.parametrize("records", [[], [(5, 7)], [(5, 7), (5, 9)]])
def test_fewer_than_two_moments_make_no_rate(records):
    assert Progress(records).rate != Progress(records).rate


def test_heartbeats_on_the_edges_are_inside():
    each = slice_of(0, step=10, length=100, settle=20)
    assert [t // MS for t, _ in each.progress(LEAD).records] == list(range(20, 101, 10))
    assert each.progress(LEAD).before_ns == 10 * MS


def test_what_was_not_yet_steady_is_no_progress_and_the_evidence_stays_whole():
    each = slice_of(0, step=10, length=100, settle=20, lost={LEAD: 2})
    each.steady_s = lambda _: 0.045
    found = each.progress(LEAD)
    assert (found.records[0][0], found.before_ns, found.lost) == (50 * MS, 40 * MS, 2)
    assert each.seconds == pytest.approx(0.08)
    each.steady_s = lambda _: 0.5
    assert list(each.progress(LEAD).records) == []


@pytest.fixture
def studied(tmp_path):
    return project_of(tmp_path, STUDY.replace("[flood]", "[flood, slow]") + QUIET + SLOW).plan().launches[0]


@pytest.fixture
def stage(studied):
    machine = studied.design.model
    world = World(machine, processes(studied.cohort, {}), studied.seed)
    cast = [Played(process, pid) for pid, process in enumerate(world.processes.values(), start=1000)]
    hardware = modelled_hardware(world, {process.name: process.pid for process in cast}, studied.design.monitor)
    made = ModelledStage(world, cast, hardware, lambda: None, {})
    hardware.attach(made.held(), [member.name for member in studied.cohort.members])
    return made


def scene(launch, name) -> Scene:
    return next(one for one in launch.cohort.scenes if one.name.startswith(name))


def pace(launch, length=0.1, settle=0.02, watch=0.0, slow=()):
    steps = Steps({one.name: 0.01 for one in launch.cohort.scenes}, {}, 0.0)
    return Pace(length, settle, watch, frozenset(slow), steps, cycles=13)


def test_who_makes_few_steps_that_vary_has_the_same_rate_beside_others_as_alone():
    """Cut at the lead's step, three steps a slice would give a rate that is some per cent too high."""
    dice, mean, lead = random.Random(3), 30.0, 1.0
    cut, ended = [], []
    for _ in range(30_000):
        t, records, end = 0.0, [], 20 + 3 * mean
        while t <= end or len(records) < 2:
            t += dice.gammavariate(1 / 0.3**2, mean * 0.3**2)
            records.append((int(t * MS), len(records)))
        close = int((end + lead) * MS)
        each = slice_of(0, settle=20, since_switch={BESIDE: records})
        each.end_ns, each.close_ns = int(end * MS), max(close, records[-1][0])
        ended.append(each.progress(BESIDE))
        each.end_ns, each.close_ns = None, close
        cut.append(each.progress(BESIDE))
    assert 1e-3 * mean * Total(ended, 0).rate == pytest.approx(1, abs=0.005)
    assert 1e-3 * mean * Total(cut, 0).rate > 1.03


def test_nobody_waits_for_ever_for_the_step_that_ends_a_slice(studied, stage):
    paced = pace(studied, length=0.05)
    each = measure_slice(stage, scene(studied, "antagonist-alone:slow"), paced)
    assert each.close_ns - each.switch_ns == pytest.approx(LONGEST_WAIT * paced.length_ns, rel=0.05)
    assert list(each.progress(each.scene.active[0]).records) == []


def test_a_watched_slice_is_open_for_what_is_read_and_reads_it(studied, stage):
    members = {member.name: member for member in studied.cohort.members}
    each = measure_watched(
        stage, scene(studied, "corun:ranking+flood"), pace(studied, watch=0.5), members, studied.design, 1
    )
    assert each.watched
    assert 0.5 <= each.seconds < 0.6
    assert {sample.metric for sample in each.samples} >= {"llc_occupancy", "mbm_total"}
    assert each.unfrozen == []
    assert each.allowed == {name: set(stage.cast[name].start.cpus) for name in each.since_switch}


@pytest.mark.parametrize(("longest", "shortest", "most"), [(20.0, 4.0, 6.0), (1.0, 1.0, 1.1)])
def test_a_watched_slice_is_kept_open_for_slow_members_up_to_a_limit(studied, stage, longest, shortest, most):
    """Ten steps of 0.4 s and more, and the one with which the first of them begins."""
    members = {member.name: member for member in studied.cohort.members}
    design = studied.design.model_copy(update={"longest_window": longest, "steps": 10})
    together = scene(studied, "corun:ranking+slow")
    slow = together.active[1]
    each = measure_watched(stage, together, pace(studied, slow=[slow]), members, design, 1)
    assert shortest <= each.seconds <= most
    assert (len(each.progress(slow).records) >= 11) == (longest > 1)
    each = measure_watched(stage, together, pace(studied), members, design, 1)
    assert each.seconds < 0.2, "who is not slow is waited for by nobody"


def test_a_silent_slow_member_is_waited_for_once_and_who_is_at_its_end_is_not(studied, stage, monkeypatch):
    """Each watched slice would else take the longest window, in every scene of every round."""
    members = {member.name: member for member in studied.cohort.members}
    design = studied.design.model_copy(update={"longest_window": 3.0, "steps": 10})
    together = scene(studied, "corun:ranking+slow")
    slow = together.active[1]
    monkeypatch.setattr(stage.cast[slow], "read_beats", lambda: None)
    each = measure_watched(stage, together, pace(studied, slow=[slow]), members, design, 1)
    assert not each.progress(slow).records
    assert 3.0 <= each.seconds < 3.2
    again = measure_watched(stage, together, pace(studied, slow=[slow]), members, design, 1, silent={slow})
    assert again.seconds < 0.2
    monkeypatch.setattr(type(stage.cast[slow]), "at_its_end", property(lambda self: self is stage.cast[slow]))
    ended = measure_watched(stage, together, pace(studied, slow=[slow]), members, design, 1)
    assert ended.seconds < 0.2


def process(seen=7, head=7, lost=0, at_its_end=False, restarted=False):
    return SimpleNamespace(
        records=beats(0, 50, 10), lost=lost, seen=seen, reader=SimpleNamespace(head=head), at_its_end=at_its_end,
        restarts=None, was_restarted=lambda begin_ns, end_ns: restarted and begin_ns < end_ns,
    )  # fmt: skip


def closed(**cast):
    """What is found when the lead's slice beside another one is closed, while a third one should stand still."""
    usual = {LEAD: process(), BESIDE: process(), "frozen@2": process()}
    hardware = SimpleNamespace(counts=lambda: ["dear"], counts_of_slice=lambda: ["cheap"])
    cast = usual | {name.replace("_", "@"): one for name, one in cast.items()}
    stage = SimpleNamespace(read_beats=lambda: None, cast=cast, hardware=hardware)
    return _closed(stage, slice_of(0), [LEAD, BESIDE])


def test_a_clean_slice_has_nothing_to_be_held_against_it():
    each = closed()
    assert set(each.since_switch) == {LEAD, BESIDE}
    assert (each.crept, each.lost, list(each.ended), each.counts) == ({}, {}, [], ["cheap"])


def test_who_should_stand_still_is_seen_by_its_heartbeats():
    assert closed(frozen_2=process(head=9)).crept == {"frozen@2": 2}
    assert closed(lead_0=process(head=9)).crept == {}, "they run, as they should"


def test_lost_heartbeats_and_who_is_at_its_end_are_noted():
    each = closed(beside_1=process(lost=3, at_its_end=True), frozen_2=process(lost=9, at_its_end=True))
    assert (each.lost, list(each.ended)) == ({BESIDE: 3}, [BESIDE])
