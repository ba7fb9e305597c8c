"""Launches spread over sessions: what each measures, when, and how the same command goes on."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from castmates.cli.main import main
from castmates.cli.sweep import DRY
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.pipeline.sessions import LEAST, Clock, Wish, spread
from castmates.pipeline.snakemake import hold_sweep_lock
from castmates.results.folder import StudyFolder
from castmates.study.plan_text import plan_text
from castmates.study.rounds import without_decisions
from tests.house import ROOT
from tests.unit.snapshots import assert_as_before, refusal
from tests.unit.sweep_in_process import FILE, Sweep

BUDGET = {"launches": 5, "rounds": 1, "window": 0.1, "settle": 0.02}
STUDY = {"antagonists": ["stream", "compute"], "budget": BUDGET}
FOLDER = StudyFolder.of("small")
GAP = timedelta(hours=2)
WISH, DUE = Wish(3, 2 * GAP), Wish(3, 2 * GAP, due=True)


class Night:
    """A machine in a folder: its clock, and what each session measured, of modelled launches that are played."""

    def __init__(self, study=STUDY):
        Sweep(study)
        self.study, self.now = study, datetime.now(UTC).replace(microsecond=0)
        self.begin, self.said, self.sessions, self.fails = self.now, [], [], False
        self.clock = Clock(lambda: self.now, self.sleep)

    def sleep(self, seconds):
        self.now += timedelta(seconds=seconds)

    def measure(self, targets, is_last):
        sweep = Sweep(self.study)
        replace_text(FOLDER.plan_file, plan_text(without_decisions(sweep.plan)))
        paths = [f"{Path(file).parts[-3]}/{Path(file).parts[-2]}" for file in targets]
        assert is_last == (not targets)
        missing = [path for path in paths or sweep.planned.paths if path not in sweep.planned.measured]
        self.sessions.append((self.now - self.begin, sorted(int(path.rpartition("/")[2]) for path in missing)))
        for path in missing:
            sweep.play(path)
            if self.fails:
                raise CastmatesError("the sweep ended")

    def spread(self, wish=WISH, launches=None):
        spread(FILE, wish, launches, self.measure, self.said.append, self.clock)

    def put_back(self, by):
        """As if the first session had begun so much earlier."""
        kept = json.loads(FOLDER.sessions_file.read_text())
        kept["begin"] = (datetime.fromisoformat(kept["begin"]) - by).isoformat()
        FOLDER.sessions_file.write_text(json.dumps(kept))

    def written(self):
        return {file: file.stat().st_mtime_ns for file in FOLDER.record_files()}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "envs").symlink_to(ROOT / "envs")
    monkeypatch.chdir(tmp_path)


def test_each_session_measures_its_share_of_every_cohort_when_it_is_due():
    night = Night()
    night.spread()
    assert night.sessions == [(0 * GAP, [1, 2]), (1 * GAP, [3, 4]), (2 * GAP, [5])]
    before = night.written()
    night.spread()
    assert night.written() == before
    assert len(night.sessions) == 3
    assert night.said[-1] == "all 3 sessions of small are over."
    assert FOLDER.sessions_file not in FOLDER.analysed_files()  # the answer that was kept stays that of these results


def test_what_is_due_is_measured_and_else_nothing():
    night = Night()
    night.spread(DUE)
    assert night.now == night.begin
    assert [numbers for _, numbers in night.sessions] == [[1, 2]]
    night.spread(DUE)
    assert len(night.sessions) == 1
    night.now += GAP + timedelta(minutes=5)  # cron comes a little late
    night.spread(DUE)
    night.now = night.begin + 2 * GAP
    night.spread(DUE)
    assert [numbers for _, numbers in night.sessions] == [[1, 2], [3, 4], [5]]
    assert night.said[-1] == "all 3 sessions of small are over."


def test_a_session_that_was_interrupted_goes_on_at_once():
    night = Night()
    night.fails = True
    with pytest.raises(CastmatesError):
        night.spread()
    night.fails, night.now = False, night.now + timedelta(minutes=1)
    night.spread()
    # The others begin as long after the first one as they would have.
    begins = [0 * GAP, timedelta(minutes=1), 1 * GAP, 2 * GAP]
    assert night.sessions == [*zip(begins, [[1, 2], [2], [3, 4], [5]], strict=True)]


def test_two_sessions_that_are_due_at_once_do_not_become_one():
    night = Night()
    night.spread(DUE)
    night.put_back(9 * GAP)
    night.spread(DUE)
    assert len(night.sessions) == 1
    night.now += LEAST + timedelta(minutes=1)  # after launches that began a moment ago
    night.spread(DUE)
    assert [numbers for _, numbers in night.sessions][:2] == [[1, 2], [3, 4]]


def test_launches_that_were_measured_before_are_sessions_that_are_over():
    night = Night()
    sweep = Sweep(STUDY | {"budget": BUDGET | {"launches": 2}}).run()
    before = night.written()
    assert sweep.played
    night.now += timedelta(days=1)
    night.begin = night.now
    Sweep(STUDY)
    night.spread()
    assert night.sessions == [(0 * GAP, [3, 4]), (1 * GAP, [5])]
    assert before.items() <= night.written().items()


def test_a_later_sweep_adds_launches_and_replaces_none():
    night = Night()
    night.spread()
    before = night.written()
    later = Sweep(STUDY, 7).run()
    assert sorted(path.rpartition("/")[2] for path in later.played) == ["6", "7"]
    assert before.items() <= night.written().items()


def test_what_a_plain_sweep_has_measured_meanwhile_is_not_waited_for():
    night = Night()
    night.spread(DUE)
    Sweep(STUDY).run()
    night.spread(DUE)
    assert night.sessions[1:] == [(0 * GAP, [])]
    assert night.said[-1] == "all 3 sessions of small are over."


def test_a_dry_run_shows_the_next_session_and_changes_nothing():
    night, shown = Night(), []

    def dry(**more):
        wish = replace(WISH, dry=True, **more)
        spread(FILE, wish, None, lambda files, _: shown.append(files), night.said.append, night.clock)
        return sorted(int(Path(file).parts[-2]) for file in shown.pop())

    assert dry() == dry(due=True) == [1, 2]
    assert not FOLDER.sessions_file.exists()
    night.spread(DUE)
    before = FOLDER.sessions_file.read_text()
    assert dry() == [1, 2, 3, 4]  # of which two are there already
    assert "session 2 of 3 begins at " in night.said[-2]
    with pytest.raises(IndexError):  # nothing is due
        dry(due=True)
    assert (night.now, FOLDER.sessions_file.read_text()) == (night.begin, before)


@pytest.mark.parametrize(
    ("word", "dry"),
    [("-n", True), ("-np", True), ("-nq", True), ("-pn", True), ("-nj4", True), ("--dry-run", True), ("--dryrun", True),
     ("-j4", False), ("-Rcontrols", False), ("-sSnakefile", False), ("--nolock", False), ("-k", False)],
)  # fmt: skip
def test_snakemakes_own_words_for_a_dry_run_are_known(word, dry):
    assert bool(DRY.fullmatch(word)) is dry


def test_nothing_is_begun_beside_a_sweep_that_runs():
    night = Night()
    hold_sweep_lock(FOLDER)
    night.spread(DUE)
    assert night.sessions == []
    assert "is running" in night.said[-1]
    assert not FOLDER.sessions_file.exists()


def test_what_is_no_schedule_is_refused_in_a_sentence(capsys, monkeypatch):
    def command(*words):
        monkeypatch.setattr("sys.argv", ["castmates", "sweep", str(FILE), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return f"{ended.value.code}".removeprefix("castmates: ").partition("\n")[0]

    night = Night()
    said = {
        "no time": command("--sessions", "3"),
        "no duration": command("--sessions", "3", "--over", "long"),
        "too close": command("--sessions", "3", "--over", "61m"),
        "only one is needed": command("--over", "3h"),
        "due alone": command("--due"),
        "retry": command("--sessions", "3", "--over", "6h", "--retry"),
        "confirm": command("--sessions", "3", "--over", "6h", "--confirm"),
        "more sessions than launches": command("--sessions", "6", "--over", "6h"),
    }
    night.spread(DUE)
    said["another schedule"] = refusal(night.spread, Wish(3, 3 * GAP))
    for name, keys in (("precision", {"precision": "2%", "most_launches": 12}), ("adaptive", {"adaptive": True})):
        FOLDER.sessions_file.unlink(missing_ok=True)
        said[name] = refusal(Night(STUDY | {"budget": BUDGET | keys}).spread)
    assert_as_before("sessions", said)
