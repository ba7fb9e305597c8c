"""`castmates init`, `measure`, `show` and `open`: what they write and print, without measuring anything."""

import io
import json
import re
import sys

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app, main
from castmates.cli.screen import ERRORS
from castmates.errors import CastmatesError
from castmates.pipeline import own_study
from castmates.pipeline.own_study import FirstRun, name_of, study_of, text_of
from castmates.project import load, read_catalogue
from castmates.shipped import catalogue, environments
from castmates.study.model import Study
from castmates.study.reading import read_keys
from tests.unit.results_maker import make

KNOWN = read_catalogue(catalogue().resolve())
COMMAND = ["./my program", "-9", "a 'b' \"c\"", "--x={y}"]


def ask(*words):
    return CliRunner(env={"COLUMNS": "100", "DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}).invoke(app, words)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "envs").symlink_to(environments().resolve())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_writes_a_study_that_can_be_planned_and_overwrites_nothing(here):
    done = ask("init")
    assert done.exit_code == 0
    assert done.output.splitlines()[-1].split() == ["Next", "castmates", "plan"]
    assert load().study.name == "mine"
    (here / "study.yaml").write_text("name: changed\n")
    with pytest.raises(CastmatesError, match=r"study.yaml is there already, and stays as it is"):
        raise ask("init").exception
    assert (here / "study.yaml").read_text() == "name: changed\n"
    assert "cd other && castmates plan" in ask("init", "other").output
    assert (here / "other/study.yaml").is_file()


def test_a_study_in_config_is_the_default_one_and_init_names_its_own(here):
    (here / "config").mkdir()
    (here / "config/config.yaml").write_text("name: theirs\nleads: [chase]\nantagonists: [stream]\n")
    assert "castmates plan study.yaml" in ask("init").output
    assert load().study.name == "theirs"


@pytest.mark.parametrize("seconds", [0.0001, 0.004, 0.3, 7.0, 90.0, 181.5, 299.0])
def test_a_study_of_a_command_is_valid_and_its_windows_hold_some_runs(seconds):
    text = text_of("mine", COMMAND, ["stream", "chase"], FirstRun(seconds, 50_000_000), KNOWN)
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
        text_of("mine", COMMAND, ["stream"], FirstRun(301.0, 50_000_000), KNOWN)


def test_a_program_of_the_catalogue_s_name_is_told_apart():
    study = read_keys(Study, text_of("xz", ["xz", "-9"], ["stream"], FirstRun(0.1, 1), KNOWN), "xz.yaml")
    assert study.leads == ["xz-own"]
    assert "xz-own" not in KNOWN


@pytest.mark.parametrize("name", ["true", "yes", "null", "007", "1.5", "0x1f", "2026-01-01"])
def test_a_program_whose_name_yaml_reads_as_something_else_is_measured_like_any_other(name, here, monkeypatch):
    monkeypatch.setattr(own_study, "try_command", lambda _: FirstRun(0.01, 1_000_000))
    file = study_of([name, "--flag=no", "12", "a\nb", "é: #"], ["stream"], "", KNOWN)
    study = read_keys(Study, file.read_text(encoding="utf-8"), str(file))
    assert (study.name, study.leads, study.title) == (name, [name], f"What {name} loses beside stream")
    assert study.workloads[name].words == [name, "--flag=no", "12", "a\nb", "é: #"]


def test_a_study_that_cannot_be_read_is_not_left_behind(here, monkeypatch):
    monkeypatch.setattr(own_study, "try_command", lambda _: FirstRun(0.01, 1_000_000))
    monkeypatch.setattr(own_study, "ROUNDS", 0)  # as if a budget could come out impossible
    with pytest.raises(CastmatesError, match=r"studies/tool\.yaml, line \d+: 'budget\.rounds'"):
        study_of(["tool"], ["stream"], "", KNOWN)
    assert not (here / "studies/tool.yaml").exists()


def test_a_program_never_measures_into_the_results_of_another_study(here, monkeypatch):
    monkeypatch.setattr(own_study, "try_command", lambda _: FirstRun(0.01, 1_000_000))
    (here / "config/studies").mkdir(parents=True)
    (here / "config/studies/first.yaml").write_text("name: demo\nleads: [chase]\nantagonists: [stream]\n")
    (here / "results/tool").mkdir(parents=True)  # its study file lies elsewhere, or was deleted
    assert study_of(["./demo"], ["stream"], "", KNOWN).name == "demo-2.yaml"
    assert study_of(["./tool"], ["stream"], "", KNOWN).name == "tool-2.yaml"
    (here / "results/tool-2").mkdir()  # its own: the same command goes on with them
    assert study_of(["./tool"], ["stream"], "", KNOWN).name == "tool-2.yaml"


@pytest.mark.parametrize(
    ("word", "name"), [("/usr/bin/GZip", "gzip"), ("./my prog.py", "my-prog.py"), ("..", "program"), ("_x", "x")]
)
def test_a_study_is_named_by_its_program(word, name):
    assert name_of([word]) == name
    assert read_keys(Study, f"name: {name}\n", "x.yaml").name == name


def test_the_same_command_goes_on_with_its_study_and_another_one_gets_a_study_of_its_own(here, monkeypatch):
    monkeypatch.setattr(own_study, "try_command", lambda _: FirstRun(0.01, 1_000_000))
    first = study_of(["gzip", "-9"], ["stream"], "", KNOWN)
    first.write_text(first.read_text().replace("launches: 6", "launches: 7"))  # by hand
    assert study_of(["gzip", "-9"], ["stream"], "", KNOWN) == first
    assert "launches: 7" in first.read_text()
    assert study_of(["gzip", "-1"], ["stream"], "", KNOWN).name == "gzip-2.yaml"
    assert study_of(["gzip", "-9"], ["stream", "chase"], "", KNOWN).name == "gzip-3.yaml"
    assert study_of(["gzip", "-9"], ["stream"], "named", KNOWN).name == "named.yaml"
    assert load("studies/gzip-2.yaml").study.name == "gzip-2"


def test_the_result_is_printed_and_given_to_scripts(tmp_path):
    folder = make(tmp_path / "study", ["a", "b"], ["x", "y"], launches=5)
    done = ask("show", str(folder))
    assert done.exit_code == 0, done.exception
    data = json.loads(ask("show", str(folder), "--format", "json").stdout)
    assert " ".join(done.stdout.split()).startswith(data["headline"])
    assert {(pair["program"], pair["antagonists"]) for pair in data["pairs"]} == {
        (program, beside) for program in "ab" for beside in "xy"
    }


@pytest.mark.parametrize(("encoding", "cut"), [("ascii", "..."), ("latin-1", "..."), ("utf-8", "…")])
def test_the_result_is_printed_in_any_encoding_and_no_sign_is_lost(tmp_path, monkeypatch, encoding, cut):
    long = "a-program-whose-name-is-" + "very-" * 10 + "long"
    folder = make(tmp_path / "study", [long], ["x", "y"], launches=5)

    def ask_in_encoding(*words):
        monkeypatch.setattr(sys, "argv", ["castmates", "show", str(folder), *words])
        with io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") as out:
            monkeypatch.setattr(sys, "stdout", out)
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code
            out.flush()
            return out.buffer.getvalue().decode(encoding)

    assert re.search(rf"a-program-whose-name[a-z-]*{re.escape(cut)}[a-z-]*very-long ", ask_in_encoding())
    assert json.loads(ask_in_encoding("--format", "json"))["pairs"][0]["program"] == long
    with io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=ERRORS) as out:
        out.write("−3.6 × 2 ± 1 – 界")
        out.flush()
        expected = {"ascii": "-3.6 x 2 +- 1 - ?", "latin-1": "-3.6 × 2 ± 1 - ?", "utf-8": "−3.6 × 2 ± 1 – 界"}
        assert out.buffer.getvalue().decode(encoding) == expected[encoding]


def test_the_report_is_opened_where_there_is_a_desktop_and_named_elsewhere(tmp_path, monkeypatch):
    folder, opened = make(tmp_path / "study", ["a"], ["x"], launches=5), []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with pytest.raises(CastmatesError, match="there is no report yet; run `castmates sweep"):
        raise ask("open", str(folder)).exception
    (folder / "report").mkdir()
    (folder / "report/index.html").write_text("the page")
    address = (folder / "report/index.html").resolve().as_uri()
    assert ask("open", str(folder)).output == f"{address}\n"
    assert not opened
    monkeypatch.setenv("DISPLAY", ":0")
    CliRunner().invoke(app, ["open", str(folder)])
    assert opened == [address]
