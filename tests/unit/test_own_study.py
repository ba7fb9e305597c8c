"""`castmates init`, `show` and `open`: what they write and print, and what studies of a command have in common."""

import io
import json
import re
import sys

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app, main
from castmates.cli.screen import ERRORS
from castmates.errors import CastmatesError
from castmates.pipeline.own_study import name_of
from castmates.project import load
from castmates.shipped import environments
from castmates.study.model import Study
from castmates.study.reading import read_keys
from tests.unit.results_maker import make


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


@pytest.mark.parametrize(
    ("word", "name"), [("/usr/bin/GZip", "gzip"), ("./my prog.py", "my-prog.py"), ("..", "program"), ("_x", "x")]
)
def test_a_study_is_named_by_its_program(word, name):
    assert name_of([word]) == name
    assert read_keys(Study, f"name: {name}\n", "x.yaml").name == name


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
