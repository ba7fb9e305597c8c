"""What a sweep shows: its pace and its share by expected seconds, its words, and the notes that launches send."""

import json
import os
import threading
from types import SimpleNamespace

import pytest

from castmates.results.folder import StudyFolder
from castmates.runner import outcome as progress
from castmates.study.reasons import NOT_VISIBLE, Reason, ReasonKind
from castmates.terminal import words
from castmates.terminal.live import region
from castmates.terminal.preview.duration import ANALYSIS
from castmates.terminal.sweep import Analysis, Inbox, Note, Sweep, read_note, recorded
from castmates.terminal.words import lacks
from tests.unit.makers import plan, study
from tests.unit.rounds.makers import slice_of, window_of
from tests.unit.snapshots import assert_as_before

LONG, SHORT = 30.0, 10.0


@pytest.fixture
def launches():
    """Two launches of each of two programs."""
    made = plan(study(["slow", "quick"], ["a", "b"], budget={"launches": 2, "rounds": 3}))
    return sorted(made.launches, key=lambda launch: (launch.cohort.lead.workload, launch.number))


def seconds_of(launch) -> float:
    return LONG if launch.cohort.lead.workload == "slow" else SHORT


def note_of(launch, **facts) -> Note:
    return Note("test", launch.path, **({"state": "ended", "rounds": 3} | facts))


def test_the_time_of_the_report_leaves_out_launches_that_are_made_between_its_jobs():
    analysis = Analysis()
    analysis.begin(100)
    analysis.begin(102)
    analysis.end(105)
    analysis.end(110)
    assert analysis.seconds(800) == 10, "traces are recorded meanwhile"
    analysis.begin(800)
    assert (analysis.begun, analysis.seconds(805)) == (100, 15)
    analysis.end(820)
    assert analysis.seconds(900) == 30


def test_the_bar_and_the_time_left_weigh_launches_by_their_expected_seconds(launches):
    sweep = Sweep(launches, seconds_of, 1)
    assert (sweep.total, sweep.share(0)) == (4, 0)
    assert sweep.seconds_left(0) == 2 * LONG + 2 * SHORT + ANALYSIS
    quick, slow = launches[0], launches[2]
    sweep.begin(quick, 100)
    assert sweep.share(105) == pytest.approx(5 / 80)
    sweep.end(quick.path, 110)
    assert sweep.share(110) == pytest.approx(10 / 80), "a quarter of the launches, an eighth of the time"
    assert sweep.seconds_left(110) == pytest.approx(70 + ANALYSIS)
    sweep.begin(slow, 110)
    assert sweep.share(1000) < 40 / 80, "what has not ended is not done, however long it takes"
    assert (sweep.done, sweep.total) == (1, 4)


def test_what_takes_twice_as_long_leaves_twice_as_long(launches):
    sweep = Sweep(launches, seconds_of, 1)
    at = 0.0
    for launch in launches[:3]:
        sweep.begin(launch, at)
        at += 2 * seconds_of(launch)
        sweep.end(launch.path, at)
    left = sweep.seconds_left(at) - ANALYSIS
    assert 1.6 * LONG < left <= 2 * LONG, "the expectation still weighs as much as one launch"


def test_launches_side_by_side_share_the_time(launches):
    sweep = Sweep(launches, lambda _: SHORT, 2)
    assert sweep.seconds_left(0) == 2 * SHORT + ANALYSIS
    for launch in launches[:2]:
        sweep.begin(launch, 0)
    for launch in launches[:2]:
        sweep.end(launch.path, SHORT)
    assert sweep.seconds_left(SHORT) == pytest.approx(SHORT + ANALYSIS, rel=0.2)


def test_a_launch_that_failed_and_is_begun_again_is_one_launch(launches):
    sweep = Sweep(launches, seconds_of, 1)
    first, second = launches[:2]
    for launch in (first, second):
        sweep.begin(launch, 0)
        sweep.end(launch.path, SHORT, failed=True)
    assert (sweep.done, sweep.failed, sweep.total) == (2, 2, 4)
    sweep.begin(first, SHORT)
    assert (sweep.done, sweep.failed, sweep.total) == (1, 1, 4)
    sweep.end(first.path, 2 * SHORT)
    assert (sweep.done, sweep.failed, sweep.total) == (2, 1, 4)
    assert sweep.share(2 * SHORT) == pytest.approx(2 * SHORT / (2 * SHORT + 2 * LONG))


def test_what_a_launch_of_another_machine_came_to_stands_in_its_record(launches, tmp_path):
    folder, launch = StudyFolder(tmp_path / "test"), launches[0]
    sweep = Sweep(launches, seconds_of, 1)
    sweep.begin(launch, 0)
    assert sweep.lacks_result(launch.path)
    assert recorded(folder, launch) is None
    record = {"status": "ok", "reason": None, "rounds": 3, "windows": 20, "windows_rejected": 2}
    file = folder.launch(launch.path) / "launch.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(record | {"seconds": {"total": 12.0}}))
    sweep.note(recorded(folder, launch))
    assert not sweep.lacks_result(launch.path)
    progress = sweep.end(launch.path, 12)
    assert words.result_words(progress) == "18 windows kept, 2 rejected"
    file.write_text("{}")
    assert recorded(folder, launch) is None


def test_windows_are_counted_once_whatever_notes_come(launches):
    sweep = Sweep(launches, seconds_of, 1)
    first, second = launches[:2]
    sweep.note(note_of(first, kept=1))
    sweep.begin(first, 0)
    for kept in (3, 5, 6):
        sweep.note(note_of(first, state="measuring", kept=kept, rejected=1, because={"steal": 1}))
    assert sweep.is_measuring
    sweep.end(first.path, 10)
    sweep.begin(second, 10)
    assert not sweep.is_measuring, "it starts"
    sweep.note(note_of(second, kept=2, rejected=2, because={"foreign load": 2}, who={"bash": 2}))
    seen = sweep.windows
    assert (seen.kept, seen.rejected, dict(seen.because)) == (8, 3, {"steal": 1, "foreign load": 2})
    sweep.end(second.path, 20, failed=True)
    assert (sweep.windows.kept, sweep.failed, sweep.done) == (6, 1, 2), "nothing of a failed job was recorded"


def test_lines_of_the_terminal(launches):
    sweep, again = Sweep(launches, seconds_of, 1), Sweep(launches, seconds_of, 1)
    who, of = {"python3": 4, "bash": 2}, {launches[0].cohort.id: 2, launches[2].cohort.id: 2}
    told = {"preparing": list(map(str, region(again, of, "building tfmodels", 0, 100)))}
    sweep.begin(launches[0], 0)
    sweep.note(note_of(launches[0], kept=39, rejected=6, clean=3, because={"foreign load": 6}, who=who))
    progress = sweep.end(launches[0].path, 36)
    told["a launch"] = words.progress_line(progress, 2, 1, 4, 130)
    progress.note = note_of(launches[0], status="failed", reason="quick ended with status 1")
    told["one that failed"] = words.progress_line(progress, 2, 1, 4, 130)
    again.begin(launches[0], 0)
    again.note(note_of(launches[0], state="measuring", round=1, kept=14, rejected=7, because={"steal": 7}))
    told["measuring"] = list(map(str, region(again, of, "", 5, 100)[1:]))
    assert_as_before("terminal", told)


def foreign(who):
    return Reason(ReasonKind.FOREIGN_LOAD, f"others took 9% of CPU 0 (limit 2%), mostly {who}", who)


def test_reasons_of_windows_are_those_of_their_slices_and_programs_are_named():
    spoilt = slice_of(200)
    spoilt.reasons = [foreign("python3")]
    few = window_of([slice_of(0), spoilt])
    few.reasons = [Reason(ReasonKind.TOO_FEW_CYCLES, "1 of 2 are left (limit 80%; foreign load)")]
    whole = window_of([slice_of(0)])
    whole.reasons = [foreign("bash"), Reason(ReasonKind.STEAL, "much")]
    because, who = progress.grouped([few, whole, window_of([slice_of(0)])])
    assert (dict(because), dict(who)) == ({"foreign load": 2, "steal": 1}, {"python3": 1, "bash": 1})
    assert progress.summary([few, whole]) == "2 rejected (foreign load ×2, steal; python3, bash)"
    assert progress.summary([window_of([slice_of(0)])]) == ""


def test_who_is_not_visible_takes_time_too_and_the_little_that_is_seen_does_not_stand_for_it():
    beside, alone = window_of([slice_of(0)]), window_of([slice_of(0)])
    unseen = foreign(NOT_VISIBLE)
    beside.reasons = [unseen, foreign("python (pid 837)")]
    alone.reasons = [unseen]
    _, who = progress.grouped([beside, alone])
    assert who.most_common() == [("a process that is not visible here", 2), ("python (pid 837)", 1)]


@pytest.fixture
def inbox(monkeypatch):
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    one = Inbox()
    yield one
    one.close()
    assert progress.VARIABLE not in os.environ


def test_notes_arrive(inbox, launches):
    launch = launches[0]
    outcome = SimpleNamespace(
        launch=launch, windows=[window_of([slice_of(0)])], rounds=1, status="measured", reason="", total_seconds=1.5
    )
    progress.waiting(launch, "Waiting for the machine")
    progress.launching(launch)
    progress.rounds_begin(outcome)
    progress.round_ended(outcome, 1)
    progress.ended(outcome)
    notes = inbox.notes()
    assert [(note.state, note.round, note.kept) for note in notes] == [
        ("waiting", 0, 0), ("launching", 0, 0), ("measuring", 0, 0), ("measuring", 1, 1), ("ended", 0, 1),
    ]  # fmt: skip
    assert {(note.study, note.launch) for note in notes} == {(launch.study, launch.path)}


def test_a_full_inbox_holds_nobody_up(inbox, launches):
    for _ in range(2000):
        progress.launching(launches[0])
    assert 0 < len(inbox.notes()) < 2000


def test_who_waits_is_woken(inbox):
    waiting = threading.Thread(target=inbox.wait, args=[None])
    waiting.start()
    inbox.wake()
    waiting.join(60)
    assert not waiting.is_alive()


@pytest.mark.parametrize(
    "message",
    [
        b"", b"{", b"[]", b'{"study": "s"}', b'{"study": "s", "launch": "b", "state": "ended", "kept": "many"}',
        b'{"study": "s", "launch": "b", "state": "ended", "who": 3}', b'{"study": 1, "launch": "b", "state": "ended"}',
        b'{"study": "s", "launch": "b", "state": "ended", "more": 1}',
    ],
)  # fmt: skip
def test_anything_else_is_no_note(message):
    assert read_note(message) is None


def test_a_note_cannot_command_the_terminal():
    note = read_note(rb'{"study": "s", "launch": "b", "state": "ended", "who": {"\u001b[2Jx": 1}, "reason": "a\nb"}')
    assert (dict(note.who), note.reason) == ({"[2Jx": 1}, "ab")


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        ({}, ["no hardware counters", "no cache partitions"]),
        ({"perf": {"hardware": "counted"}, "resctrl": {"mounted": "/sys/fs/resctrl", "delegated": ["a"]}}, []),
        ({"perf": {"hardware": "user only"}, "resctrl": {"mounted": "/sys/fs/resctrl"}}, ["no cache partitions"]),
    ],
)
def test_what_the_machine_lacks_is_named_once(facts, missing):
    assert lacks(facts) == missing


@pytest.mark.parametrize(
    ("seconds", "clock", "about"),
    [(0.2, "0 s", "1 s"), (59, "59 s", "60 s"), (372, "6:12", "6 min"), (7322, "2:02:02", "2 h 2 min")],
)
def test_durations(seconds, clock, about):
    assert (words.clock(seconds), words.about(seconds)) == (clock, about)
