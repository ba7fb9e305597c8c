"""The study that `castmates measure` writes of a command, without running anything."""

import pytest

from castmates.errors import CastmatesError
from castmates.pipeline import command_study, command_trial, own_study
from castmates.pipeline.command_study import room_for, seen_of, study_of, text_of
from castmates.pipeline.command_trial import Command, Trial
from castmates.project import load, read_catalogue
from castmates.shipped import catalogue, environments
from castmates.study.model import Study
from castmates.study.reading import read_keys
from castmates.workloads.identity import no_such_program
from tests.unit.makers import layout

KNOWN = read_catalogue(catalogue().resolve())
COMMAND = ["./my program", "-9", "a 'b' \"c\"", "--x={y}"]
QUICK = Trial(0.01, 1_000_000, 1.0, 1.0)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "envs").symlink_to(environments().resolve())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command_study, "try_command", lambda *_: QUICK)
    monkeypatch.setattr(command_trial.shutil, "which", lambda *_, **__: "/bin/it")
    return tmp_path


def seen(seconds=0.01, busy=1.0, wanted=None, room=1, memory=50_000_000, **more):
    trial = Trial(seconds, memory, busy, busy if wanted is None else wanted)
    return seen_of(Command(COMMAND, **more), trial, room, room + 1, ["stream"])


def studied(words, beside, name=""):
    return study_of(Command(words), beside, name, KNOWN, lambda _: None)


@pytest.mark.parametrize(
    ("wanted", "room", "asked", "cpus"),
    [(1.0, 7, 0, 1), (1.1, 7, 0, 1), (1.3, 7, 0, 2), (3.9, 7, 0, 4), (3.9, 2, 0, 2), (0.2, 7, 0, 1), (3.9, 7, 1, 1),
     (1.0, 7, 3, 3)],
)  # fmt: skip
def test_a_program_is_given_as_many_cpus_as_it_uses_and_is_told_where_it_gets_fewer(wanted, room, asked, cpus):
    found = seen(busy=min(wanted, 2.0), wanted=wanted, room=room, cpus=asked)
    assert found.cpus == cpus
    assert ("its threads take turns" in found.words) == (not asked and wanted > room + 0.15)
    study = read_keys(Study, text_of("mine", found, ["stream"], KNOWN), "mine.yaml")
    assert study.workloads["mine"].cores == cpus


@pytest.mark.parametrize(
    ("busy", "wanted", "cpus", "seconds"),
    [(1.0, 1.0, 1, 6.0), (0.5, 1.0, 1, 3.0), (2.0, 2.0, 2, 6.0), (2.0, 2.0, 1, 12.0), (2.0, 4.0, 4, 3.0),
     (0.0, 0.0, 1, 6.0)],
)  # fmt: skip
def test_windows_suit_what_a_run_takes_on_the_cpus_that_it_is_given(busy, wanted, cpus, seconds):
    assert Trial(6.0, 1, busy, wanted).on(cpus) == pytest.approx(seconds)


@pytest.mark.parametrize(("cpus", "beside", "room"), [(2, ["stream"], 1), (8, ["stream", "chase"], 7)])
def test_what_antagonists_need_is_no_room_for_the_program(cpus, beside, room):
    assert room_for(beside, KNOWN, layout(range(cpus))) == room


def test_steps_and_variables_are_keys_of_the_study_and_other_ones_are_another_study():
    command = Command(COMMAND, {"A_B": "x: #y"}, r"step (\d+)", "begin$", 0)
    study = read_keys(
        Study,
        text_of("mine", seen_of(command, Trial(2.0, 1, 1.0, 1.0, 90.0), 1, 2, ["stream"]), ["stream"], KNOWN),
        "f",
    )
    own = study.workloads["mine"]
    assert (own.progress, own.step_line, own.ready_line) == ("output", r"step (\d+)", "begin$")
    assert (own.variables, own.ready_within) == ({"A_B": "x: #y"}, 360.0)
    assert command_study.measures(study, command, ["stream"])
    for other in (Command(COMMAND, {"A_B": "x: #y"}, r"step (\d+)"), Command(COMMAND, {}, r"step (\d+)", "begin$"),
                  Command(COMMAND), Command(COMMAND, {"A_B": "x: #y"}, r"step (\d+)", "begin$", 2)):  # fmt: skip
        assert not command_study.measures(study, other, ["stream"])


@pytest.mark.parametrize(("counted", "progress"), [("instructions", "instructions"), ("./a:b c", {"calls": "./a:b c"})])
def test_what_is_counted_is_a_key_of_the_study(counted, progress):
    command = Command(COMMAND, counted=counted)
    found = seen_of(command, QUICK, 1, 2, ["stream"])
    study = read_keys(Study, text_of("mine", found, ["stream"], KNOWN), "f")
    assert study.model_dump(mode="json")["workloads"]["mine"]["progress"] == progress
    assert command_study.measures(study, command, ["stream"])
    assert not command_study.measures(study, Command(COMMAND), ["stream"])
    assert counted in found.words


def test_more_cpus_than_there_are_and_a_program_that_is_there_no_longer_are_refused(here, monkeypatch):
    with pytest.raises(CastmatesError, match=r"--cpus is 4096, but of the \d+ CPUs? that may be used here at most"):
        study_of(Command(["it"], cpus=4096), ["stream"], "", KNOWN, print)
    assert not (here / "studies").exists()
    studied(["it"], ["stream"])
    monkeypatch.setattr(command_trial.shutil, "which", lambda *_, **__: None)
    with pytest.raises(CastmatesError, match="there is no program 'it'"):
        studied(["it"], ["stream"])


def test_a_program_that_is_not_there_comes_with_one_of_a_near_name(tmp_path):
    (tmp_path / "gzip").touch()
    assert no_such_program("gzipp", f"/nowhere:{tmp_path}") == "there is no program 'gzipp', did you mean 'gzip'?"
    assert no_such_program("zstd", str(tmp_path)) == "there is no program 'zstd'"
    assert no_such_program("./gzip", str(tmp_path)).endswith("there is no such file")


@pytest.mark.parametrize("seconds", [0.0001, 0.004, 0.3, 7.0, 90.0, 181.5, 299.0])
def test_a_study_of_a_command_is_valid_and_its_windows_hold_some_runs(seconds):
    text = text_of("mine", seen(seconds), ["stream", "chase"], KNOWN)
    study = read_keys(Study, text, "mine.yaml")
    assert study.workloads["mine"].words == COMMAND
    assert study.workloads["mine"].memory_bytes == 75_000_000
    assert (study.leads, study.antagonists) == (["mine"], ["stream", "chase"])
    assert (4 if seconds < 150 else 2) <= study.budget.steps <= 10
    assert study.budget.window >= 0.5
    assert study.budget.window >= 0.99 * study.budget.steps * seconds
    assert study.budget.longest_window >= study.budget.window


def test_what_takes_so_long_that_no_window_holds_it_is_refused():
    with pytest.raises(CastmatesError, match=r"takes 301 s: a window .* would hold fewer than 2"):
        text_of("mine", seen(301.0), ["stream"], KNOWN)


def test_a_program_of_the_catalogue_s_name_is_told_apart():
    study = read_keys(Study, text_of("xz", seen(), ["stream"], KNOWN), "xz.yaml")
    assert study.leads == ["xz-own"]
    assert "xz-own" not in KNOWN


@pytest.mark.parametrize("name", ["true", "yes", "null", "007", "1.5", "0x1f", "2026-01-01"])
def test_a_program_whose_name_yaml_reads_as_something_else_is_measured_like_any_other(name, here):
    file = studied([name, "--flag=no", "12", "a\nb", "é: #"], ["stream"])
    study = read_keys(Study, file.read_text(encoding="utf-8"), str(file))
    assert (study.name, study.leads, study.title) == (name, [name], f"What {name} loses beside stream")
    assert study.workloads[name].words == [name, "--flag=no", "12", "a\nb", "é: #"]


def test_a_study_that_cannot_be_read_is_not_left_behind(here, monkeypatch):
    monkeypatch.setattr(own_study, "ROUNDS", 0)  # as if a budget could come out impossible
    with pytest.raises(CastmatesError, match=r"studies/tool\.yaml, line \d+: 'budget\.rounds'"):
        studied(["tool"], ["stream"])
    assert not (here / "studies/tool.yaml").exists()


def test_a_program_never_measures_into_the_results_of_another_study(here):
    (here / "config/studies").mkdir(parents=True)
    (here / "config/studies/first.yaml").write_text("name: demo\nleads: [chase]\nantagonists: [stream]\n")
    (here / "results/tool").mkdir(parents=True)  # its study file lies elsewhere, or was deleted
    assert studied(["./demo"], ["stream"]).name == "demo-2.yaml"
    assert studied(["./tool"], ["stream"]).name == "tool-2.yaml"
    (here / "results/tool-2").mkdir()  # its own: the same command goes on with them
    assert studied(["./tool"], ["stream"]).name == "tool-2.yaml"


def test_the_same_command_goes_on_with_its_study_and_another_one_gets_a_study_of_its_own(here):
    first = studied(["gzip", "-9"], ["stream"])
    first.write_text(first.read_text().replace("launches: 6", "launches: 7"))  # by hand
    assert studied(["gzip", "-9"], ["stream"]) == first
    assert "launches: 7" in first.read_text()
    assert studied(["gzip", "-1"], ["stream"]).name == "gzip-2.yaml"
    assert studied(["gzip", "-9"], ["stream", "chase"]).name == "gzip-3.yaml"
    assert studied(["gzip", "-9"], ["stream"], "named").name == "named.yaml"
    assert load("studies/gzip-2.yaml").study.name == "gzip-2"
