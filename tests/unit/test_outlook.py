"""`castmates plan` before, during and after the measuring; synthetic launches, nothing in them was measured."""

import fcntl
import io
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from castmates import project
from castmates.analysis.statistics.power import detectable
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.machine.trial_records import RDT
from castmates.pipeline.looks import look_text, take_look
from castmates.pipeline.missing_programs import refuse_missing_programs
from castmates.pipeline.snakemake import closing_words
from castmates.results.looks import went_on
from castmates.results.named import default_study
from castmates.results.plans import pilot_folder, remembered_cache
from castmates.results.records import TABLES
from castmates.study import plan_text
from castmates.study.progress_keys import Calls
from castmates.terminal.preview import duration
from castmates.terminal.preview import screen as details
from castmates.terminal.preview.outline import outline
from castmates.terminal.preview.progress import progress
from castmates.terminal.preview.progress import screen as progress_screen
from castmates.terminal.preview.screen import chances_table, headline, screen
from tests.needs import lacks
from tests.unit.caches import cache
from tests.unit.rdt_trials import trial
from tests.unit.snapshots import assert_as_before, refusal
from tests.unit.windows_maker import written

ROOT = Path(__file__).resolve().parents[2]
STUDY = """
name: s
leads: [x]
antagonists: [a, b]
controls: null
workloads: {x: {command: x}, a: {command: a}, b: {command: b}}
placement: {reserve: 0}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    (tmp_path / "envs").symlink_to(ROOT / "envs")
    monkeypatch.chdir(tmp_path)
    if len(project.layout_of(project.read_topology()).cpus) < 2:
        lacks("two-cpus", "needs two CPUs")
    return tmp_path


def load(**budget):
    Path("study.yaml").write_text(f"{STUDY}catalogue: empty\nbudget: {json.dumps(budget)}\n")
    return project.load("study.yaml")


def test_a_program_that_is_not_there_is_named_before_anything_runs(folder):
    programs = {"x": "gzipp -9 /etc/passwd", "a": "sh -c true"}
    text = STUDY
    for name, command in programs.items():
        text = text.replace(f"{{command: {name}}}", f"{{command: {command}}}")
    Path("study.yaml").write_text(text.replace("{command: b}", "{command: stream, environment: native}"))
    loaded = project.load("study.yaml")
    plan = loaded.plan()
    (missing,) = outline(loaded, plan).missing
    assert missing.startswith("x: there is no program 'gzipp'")
    line = 1 + (Path("study.yaml").read_text().split("gzipp")[0].count("\n"))
    with pytest.raises(
        CastmatesError, match=rf"^study\.yaml, line {line}: 'workloads\.x\.command': there is no program"
    ):
        refuse_missing_programs(loaded, plan)
    installed = loaded.workloads["x"].model_copy(update={"package": "gzip"})  # `castmates plan` shows how to install it
    elsewhere = loaded.workloads["x"].model_copy(update={"variables": {"PATH": str(folder)}})
    (folder / "gzipp").touch(0o755)
    uncounted = loaded.workloads["x"].model_copy(update={"command": "sh", "progress": Calls(calls="sh:no_such")})
    for each in (installed, elsewhere, uncounted):  # what cannot be counted is no missing program
        refuse_missing_programs(replace(loaded, workloads=loaded.workloads | {"x": each}), plan)


def measure(loaded, paths, swing=0.01):
    """Write launches whose losses swing from launch to launch."""
    plan = loaded.plan()

    def rate(launch, number, scene, member):
        return math.exp(swing * (-1) ** launch.number) if scene.startswith("corun") else 1.0

    windows = written(plan, rate)
    for launch in plan.launches:
        if launch.path in paths:
            record = {
                "status": "measured",
                "rounds": 3,
                "seconds": {"launch": 1.0},
                "spec": launch.model_dump(mode="json"),
            }
            file = loaded.results.record_file(launch)
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(record))
            for table in TABLES:
                (file.parent / table).touch()
            own = windows[(windows["cohort"] == launch.cohort.id) & (windows["launch"] == launch.number)]
            own.to_parquet(file.parent / "windows.parquet", index=False)


def found(loaded):
    return outline(loaded, loaded.plan())


def printed(*parts, width=400) -> str:
    text = io.StringIO()
    for part in parts:
        Console(file=text, width=width, highlight=False).print(part)
    return text.getvalue()


def said(loaded) -> str:
    """Everything that `castmates plan --all` prints."""
    planned, known = loaded.plan(), found(loaded)
    plan = duration.expected(loaded, planned)
    parts = [*details.scenes(loaded, planned, known), *details.counters(loaded, plan), *details.masks(loaded, plan)]
    return " ".join(printed(screen(known), *parts, chances_table(known.chances)).split())


def loss(variance: float, launches: int) -> float:
    return 100 * (1 - math.exp(-detectable(variance, launches)))


def test_nothing_is_known_before_the_first_launches(folder):
    known = found(load())
    (chance,) = known.chances.known
    assert known.chances.assumed
    assert chance.launches == (5, 12, 20)
    assert chance.alone_pct == pytest.approx([loss(0.05**2, count) for count in (5, 12, 20)])
    assert all(among > alone for among, alone in zip(chance.among_all_pct, chance.alone_pct, strict=True))
    assert known.to_measure == known.total.launches == (5, 5)
    assert known.total.measured == 0
    assert known.total.windows == (105, 140), "three rounds, and a spare one, of seven scenes in each of five launches"
    assert known.seconds[0] < known.seconds[1]
    (row,) = known.rows
    assert (row.program, row.beside) == ("x", ("a", "b"))
    assert row.cpus[0] != row.cpus[1]
    text = said(load())
    assert "Unknown before the first launches. If launches differ by 5 %" in text
    assert "the first 2 launches decide how many rounds the others have; until then as many are expected" in text


def test_too_few_launches_are_called_that(folder):
    text = said(load(launches=2))
    assert "2 are too few to find any loss, 12 find a loss of 4.3 %, 20 find 3.2 %" in text
    assert "only one among the 2 mixes: none found, " in text
    assert "a loss of nothing" not in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_first_screen_fits_the_terminal_and_nothing_is_cut_off(folder, width):
    known = found(load())
    text = printed(screen(known), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert "\x1b" not in text
    words = text.split()
    assert words[: len(headline(known).split()) + 1] == ["s", *headline(known).split()]
    assert words.count("\N{BLACK CIRCLE}") == 2
    assert "castmates sweep study.yaml" in " ".join(words) or known.file == str(default_study())


def test_programs_with_too_many_antagonists_for_a_matrix_are_listed_instead(folder):
    names = [f"antagonist-{number}" for number in range(8)]
    own = ", ".join(f"{name}: {{command: {name}}}" for name in ["x", *names])
    text = f"name: s\nleads: [x]\nantagonists: [{', '.join(names)}]\ncontrols: null\nworkloads: {{{own}}}\n"
    Path("study.yaml").write_text(f"{text}placement: {{reserve: 0}}\ncatalogue: empty\n")
    known = found(project.load("study.yaml"))
    text = printed(screen(known), width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert {name.rstrip(",") for name in text.split()} >= set(names)


def test_the_schemata_of_every_scene_are_told_and_what_was_left_out(folder, monkeypatch):
    llc = project.layout_of(project.read_topology()).cpus[0].llc
    if llc is None:
        lacks("caches", "needs a known last-level cache")
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setattr(project, "read_cache", lambda: cache(domains=(llc,), bandwidth=None, shareable=0))
    sweeps = "cache: {sweeps: [{split: [4, 40]}, {lead_ways: 2}]}"
    Path("study.yaml").write_text(f"{STUDY}catalogue: empty\n{sweeps}\n")
    loaded = project.load("study.yaml")
    text = said(loaded)
    (cohort,) = {launch.cohort.id: launch.cohort for launch in loaded.plan().launches}.values()
    lead = cohort.lead.name
    assert "cache.sweeps.1.split: 40 left out: from 1 to 11 ways can be given here." in text
    assert f"@split-4 corun:x+a placebo:1 corun:x+b lead {lead} L3:{llc}=00f 4 ways, 6 MiB" in text
    assert f"everybody else L3:{llc}=ff0 8 ways, 12 MiB" in text
    assert f"@lead-2 alone lead {lead} L3:{llc}=003 2 ways, 3 MiB" in text
    assert f"everybody has everything: L3:{llc}=fff (12 ways, 18 MiB)" in text
    assert found(loaded).partitions == ("split-4", "lead-2")
    monkeypatch.setattr(project, "read_cache", lambda: None)
    assert sum("the last-level cache cannot be partitioned here" in note for note in map(str, found(loaded).notes)) == 1


@pytest.mark.parametrize("sweep", ["{split: [4, 8]}", "{lead_ways: 2}"])
def test_partitions_stay_in_the_plan_when_resctrl_is_not_mounted_any_more(folder, monkeypatch, sweep):
    llc = project.layout_of(project.read_topology()).cpus[0].llc
    if llc is None:
        lacks("caches", "needs a known last-level cache")
    here = cache(domains=(llc,), shareable=0)
    text = STUDY if "split" in sweep else STUDY.replace("antagonists: [a, b]", "antagonists: []")
    Path("study.yaml").write_text(f"{text}catalogue: empty\ncache: {{sweeps: [{sweep}]}}\n")
    loaded = project.load("study.yaml")
    monkeypatch.setattr(project, "read_cache", lambda: here)
    before = loaded.plan()
    assert any(mix.partitions for mix in before.mixes)
    assert not found(loaded).remembered
    assert "cannot be partitioned now" not in said(loaded)
    loaded.results.path.mkdir(parents=True)
    loaded.results.plan_file.write_text(plan_text.plan_text(before))
    measure(loaded, [before.launches[0].path])
    for now in (None, here.model_copy(update={"groups": 0})):
        monkeypatch.setattr(project, "read_cache", lambda now=now: now)
        assert loaded.plan() == before
        assert found(loaded).remembered
        assert "The last-level cache cannot be partitioned now" in said(loaded)
    loaded.results.plan_file.write_text("{}")
    assert remembered_cache(loaded.results.plan_file) is None


def test_who_goes_beyond_a_narrowed_class_has_the_partitions_of_now(folder, monkeypatch):
    llc = project.layout_of(project.read_topology()).cpus[0].llc
    if llc is None:
        lacks("caches", "needs a known last-level cache")
    monkeypatch.setattr(project, "read_cache", lambda: cache(domains=(llc,), shareable=0, allowed=0xF))
    Path("study.yaml").write_text(f"{STUDY}catalogue: empty\ncache: {{sweeps: [{{split: [8]}}], beyond_site: true}}\n")
    outlined = found(project.load("study.yaml"))
    assert outlined.partitions == ("split-8",)
    assert not outlined.remembered


def test_throttles_that_were_measured_to_do_the_same_are_one_partition(folder, monkeypatch):
    """Those of a Xeon 8462Y+, whose steps from 30 to 100 % do the same."""
    llc = project.layout_of(project.read_topology()).cpus[0].llc
    if llc is None:
        lacks("caches", "needs a known last-level cache")
    monkeypatch.setattr(project, "read_cache", lambda: cache(domains=(llc,), shareable=0))
    monkeypatch.setenv("CASTMATES_CACHE", str(folder / "cache"))
    Path("study.yaml").write_text(
        f"{STUDY}catalogue: empty\ncache: {{sweeps: [{{bandwidth: {{antagonists: [50%, 20%, 10%]}}}}]}}\n"
    )
    before = found(project.load("study.yaml"))
    assert before.partitions == ("antagonists-mb50", "antagonists-mb20", "antagonists-mb10")
    steps = [[step, 100] for step in range(30, 100, 10)] + [[10, 20]]
    record = {"identity": RDT.identity(), **trial(throttles="some steps are equal")}
    RDT.write(cache_folder(), record | {"equal_steps": {"unit": "%", "steps": steps}})
    after = found(project.load("study.yaml"))
    assert after.partitions == ("antagonists-mb20",)
    notes = " ".join(map(str, after.notes))
    assert "50 % left out: it was measured to slow nothing down on this machine." in notes
    assert "10 % does what 20 % does on this machine." in notes


def test_a_pilot_tells_what_can_be_found(folder):
    loaded = load(rounds=4)
    mixes = {
        mix.identity: {
            "mix": mix.name, "log": 0.0, "of_means": 1.0, "within": 0.0004, "between": 0.0003, "launches": 3,
            "rounds": 4,
        }
        for mix in loaded.plan().mixes
    }  # fmt: skip
    file = pilot_folder(loaded.study).pilot_file
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"rounds": 7, "mixes": mixes}))
    known = found(loaded).chances
    assert not known.assumed
    first, second = known.known
    assert (first.pair, second.pair) == ("x beside a", "x beside b")
    assert first.source == "3 launches of the pilot"
    assert first.spread_pct == pytest.approx(2.0)  # sqrt(0.0003 + 0.0004 / 4)
    assert first.alone_pct[0] == pytest.approx(loss(0.0004, 5))
    assert f"(3 launches of the pilot): 5 find a loss of {loss(0.0004, 5):.2g} %" in said(loaded)
    assert {launch.design.rounds for launch in load(rounds="pilot").plan().launches} == {7}


def test_its_own_launches_tell_more_than_a_pilot(folder):
    loaded = load()
    measure(loaded, {launch.path for launch in loaded.plan().launches if launch.number <= 4})
    known = found(loaded)
    first = known.chances.known[0]
    assert (first.pair, first.source, round(first.spread_pct, 1)) == ("x beside a", "4 measured launches", 1.2)
    assert (known.to_measure, known.total.measured) == ((1, 1), 4)
    assert "1 of 5 launches left" in said(loaded)


def test_a_wanted_precision_leaves_the_number_of_launches_open(folder):
    loaded = load(precision="1%", launches=4, batch=3, most_launches=13)
    assert found(loaded).to_measure == found(loaded).total.launches == (4, 13)
    assert "4 to 13 launches, nothing measured yet" in said(loaded)
    plan = loaded.plan()
    measure(loaded, {path for look in plan.looks[:2] for path in look}, swing=0.0001)
    assert found(loaded).to_measure == (3, 6)
    measure(loaded, set(plan.looks[2]), swing=0.0001)
    assert found(loaded).to_measure == (0, 0)
    assert found(load(precision="0.0001%", launches=4, batch=3, most_launches=13)).to_measure[1]


def test_what_a_look_leaves_is_read_again(folder):
    loaded = load(precision="1%", launches=4, batch=3, most_launches=13)
    plan = loaded.plan()
    measure(loaded, set(plan.looks[0]))
    reached = take_look(plan, loaded.results, 0.01, [])
    file = loaded.results.look_file(1)
    file.parent.mkdir()
    file.write_text(look_text(1, 0.01, reached))
    assert went_on(file) == [plan.launches[0].cohort.id]
    cohort = plan.launches[0].cohort.id
    missed = f"±1 % reached by 0 of 1 cohort; {cohort}: ±1.84 % after 4 launches."
    assert closing_words(loaded, plan) == f"{missed}\n"
    measure(loaded, {path for look in plan.looks[1:] for path in look})
    loaded.results.look_file(2).write_text(look_text(2, 0.01, [replace(reached[0], enough=True, goes_on=False)]))
    assert headline(found(loaded)) == "everything is measured: 13 launches. ±1 % reached by 1 of 1 cohort."
    assert not found(load(precision="2%", launches=4, batch=3, most_launches=13)).precision, "the look is an old one"
    file.write_text("{}")
    with pytest.raises(CastmatesError, match=r"looks/1\.json: this is not what a look leaves"):
        went_on(file)


def test_rounds_of_a_pilot_that_is_not_there_are_asked_for(folder):
    with pytest.raises(
        CastmatesError, match=r"'budget.rounds' is pilot, but there is no .*run `castmates plan study.yaml --pilot`"
    ):
        load(rounds="pilot").plan()
    file = pilot_folder(load().study).pilot_file
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    with pytest.raises(CastmatesError, match="this is not what a pilot leaves"):
        load(rounds="pilot").plan()


def test_a_mistake_in_the_budget_is_one_sentence(folder):
    wrong = [
        {"precision": "1%", "launches": 3}, {"precision": "much"}, {"precision": "1%", "most_launches": 10},
        {"precision": "1%", "launches": 15}, {"rounds": "some"},
    ]  # fmt: skip
    assert_as_before("budgets", {str(budget): refusal(load, **budget) for budget in wrong})


def test_the_status_counts_what_is_there_and_sees_who_holds_the_lock(folder, monkeypatch):
    loaded = load()
    before = progress(loaded)
    assert (before.launches.measured, before.missing, before.running, before.report) == (0, (5, 5), None, "")
    measure(loaded, {launch.path for launch in loaded.plan().launches if launch.number <= 3})
    spoil(loaded, 1, status="failed")
    spoil(loaded, 2, rounds=0)
    now = progress(loaded)
    assert (now.launches.measured, now.launches.failed, now.launches.unclean, now.missing) == (3, 1, 1, (2, 2))
    assert "castmates sweep" in printed(progress_screen(now))
    with loaded.results.lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = progress(loaded).running
        assert running is not None
        assert running.process == os.getpid()
        assert "castmates show --progress" in printed(progress_screen(progress(loaded)))
    assert progress(loaded).running is None
    page = loaded.results.page_file
    page.parent.mkdir(parents=True)
    page.write_text("the page")
    assert not progress(loaded).stale
    os.utime(page, (1, 1))
    assert progress(loaded).stale


def spoil(loaded, number, **changes):
    """Make the record of a launch one that gives the analysis nothing."""
    launch = next(launch for launch in loaded.plan().launches if launch.number == number)
    file = loaded.results.record_file(launch)
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
