"""The answer that `analyse` keeps: `castmates show` prints it at once, and never one of other results."""

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from castmates.extras import BASE, MODULES, SWEEP, TRACE
from castmates.report.answer.answer import answer
from castmates.report.answer.kept import keep_answer, kept_answer
from castmates.report.results import read_results
from tests.unit.results_maker import make
from tests.workflow.sweeps import ROOT

STUDY = "name: nights # ours\nmargin: 3%\n"
ANEW = "results/nights/report/answer.json: this is not the answer of these results"
FEW = {"pydantic", "rich", "typer"}  # the first by typer


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A study with a kept answer, named as from the folder of its project."""
    place = tmp_path_factory.mktemp("project")
    (place / "study.yaml").write_text(STUDY)
    with contextlib.chdir(place):
        made = make(Path("results/nights"))
        shutil.rmtree(made / "launches")  # they have no tables
        results = read_results(made, Path("study.yaml"))
        keep_answer(results, answer(results))
    return place


@pytest.fixture
def folder(project, tmp_path, monkeypatch):
    """Its results, in a copy of the project."""
    shutil.copytree(project, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path("results/nights")


def show(*arguments, without=()):
    blocked = f"import sys\nsys.modules.update(dict.fromkeys({sorted(without)}))\nsys.path[0] = {str(ROOT)!r}\n"
    program = f"{blocked}from castmates.cli.main import app\napp(['show', *{arguments}], standalone_mode=False)"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("arguments", [("results/nights",), ("study.yaml",), ("study.yaml", "--format", "json")])
def test_it_is_shown_without_what_tables_need(folder, arguments):
    heavy = {name for extra in (BASE, SWEEP, TRACE) for name in MODULES[extra]} - FEW
    ours = {"castmates.study.model", "castmates.study.spec", "castmates.report.results"}
    kept = show(*arguments, without=heavy | ours)
    (folder / "report/answer.json").unlink()
    assert kept.stdout == show(*arguments).stdout
    assert kept.stderr == ""


def flipped(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


SPOILT = {
    "a bit of a number": lambda folder: flipped(folder / "report/answer.json"),
    "cut off": lambda folder: (folder / "report/answer.json").write_text('{"digest": "'),
    "not text": lambda folder: (folder / "report/answer.json").write_bytes(b"\xff\x00"),
    "of another kind": lambda folder: (folder / "report/answer.json").write_text("[1, 2]"),
    "without its digest": lambda folder: (folder / "report/answer.json").write_text("{}"),
    "of other tables": lambda folder: (folder / "tables/margins.parquet").write_bytes(b"another"),
    "of a table less": lambda folder: (folder / "tables/margins.parquet").unlink(),
    "of another plan": lambda folder: (folder / "plan.json").write_text("{}"),
    "of a launch less": lambda folder: one_more(folder / "launches/dlrm-train-0000abcd/6"),
    "of other looks": lambda folder: (folder / "asked.json").write_text('{"looks": [3]}'),
    "of another margin": lambda folder: (folder.parents[1] / "study.yaml").write_text(STUDY.replace("3%", "9%")),
    "of other rules": lambda folder: rules(folder.parents[1] / "findings"),
}


def one_more(launch):
    launch.mkdir(parents=True)
    (launch / "launch.json").write_text("{}")


def rules(folder):
    folder.mkdir()
    (folder / "ours.yaml").write_text("findings: {}\n")


@pytest.mark.parametrize("how", SPOILT)
def test_one_of_other_results_is_refused(folder, how):
    SPOILT[how](folder)
    with pytest.raises(Exception, match=r"answer.json: this is not the answer of these results \(.*\); it is worked"):
        kept_answer(folder)


def test_show_says_so_and_works_it_out_anew(folder):
    right = show("results/nights").stdout
    file = folder / "report/answer.json"
    file.write_text(file.read_text().replace("dlrm", "drlm"))
    shown = show("results/nights")
    assert shown.stdout == right
    assert shown.stderr.startswith(ANEW)
    assert shown.stderr.count("\n") == 1


def test_by_another_name_it_is_another_answer(folder):
    study = Path("study.yaml")
    assert kept_answer(study.absolute()) is None, "commands in it would name another file"
    study.with_name("second.yaml").write_text(STUDY)
    assert kept_answer(folder) is None, "there are two studies of this name"
    study.with_name("second.yaml").write_text('name: "nights"')
    assert kept_answer(folder) is None, "that one has the name too, in YAML's words"
