"""castmates convert: what it writes, what it says of what it read, and what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.timeline import converting, tables
from tests.unit.timeline_maker import made

DATA = Path(__file__).parent.parent / "data" / "imports"


def convert(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["convert", *map(str, arguments)], catch_exceptions=True)


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes((DATA / "strace.txt").read_bytes())
    return file


def test_it_reports_what_was_read_and_left_out(tmp_path):
    (tmp_path / "a").write_bytes((DATA / "ftrace.txt").read_bytes())
    found = convert(tmp_path / "a", "--to", "tables")
    assert found.exit_code == 0
    assert "the text of ftrace" in found.output
    assert "left out:" in found.output
    assert "sched_wakeup after sched_waking" in found.output
    assert "arguments of system calls are not in the timeline" in found.output
    kept, read = tables.read(tmp_path / "a.trace"), converting.source_of(DATA / "ftrace.txt").read()
    assert len(kept.intervals) == len(read.intervals) > 400
    assert len(kept.instants) == len(read.instants)


def test_a_part_of_our_own_trace(tmp_path):
    whole = made(events=600)
    tables.write(whole, tmp_path / "t")
    assert convert(tmp_path / "t", "--to", "chrome", "--span", "0.5:1", "--output", tmp_path / "a.json").exit_code == 0
    assert convert(tmp_path / "t", "--to", "tables", "--span", "0.5:1", "--output", tmp_path / "part").exit_code == 0
    part = tables.read(tmp_path / "part")
    inside = (whole.intervals["t1_ns"] >= 5 * 10**8) & (whole.intervals["t0_ns"] < 10**9)
    assert len(part.intervals) == inside.sum() > 10
    assert part.intervals["t0_ns"].min() == 5 * 10**8
    assert part.intervals["t1_ns"].max() == 10**9
    assert part.about["filters"]["seconds"] == [0.5, 1.0]
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert max(event.get("ts", 0) for event in events) <= 10**6


@pytest.mark.parametrize("to", ["perfetto", "chrome", "ctf", "tables"])
def test_it_replaces_what_it_wrote_and_nothing_else(trace, tmp_path, to):
    output = tmp_path / "out"
    assert convert(trace, "--to", to, "--output", output).exit_code == 0
    assert convert(trace, "--to", to, "--output", output).exit_code == 0
    for foreign in (trace, DATA):
        before = sorted(foreign.iterdir()) if foreign.is_dir() else foreign.read_bytes()
        found = convert(DATA / "strace-of-day.txt", "--to", to, "--output", foreign)
        assert isinstance(found.exception, CastmatesError)
        assert "give another --output" in str(found.exception)
        assert before == (sorted(foreign.iterdir()) if foreign.is_dir() else foreign.read_bytes())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "there is no such file or folder"),
        ((DATA / "strace.txt", "--to", "pdf"), "expected one of perfetto, chrome, ctf, tables"),
        ((DATA / "strace.txt", "--span", "3:1"), "expected two times in seconds"),
        ((DATA / "strace.txt", "--span", "now"), "expected two times in seconds"),
        ((DATA / "strace.txt", "--output", "/nowhere/at/all"), "there is no such folder"),
        ((".", "--to", "tables"), "this folder is none of what can be read"),
        (("study.yaml", "a+b"), "neither a study file nor a results folder"),
    ],
)
def test_what_is_wrong_is_a_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = convert(*arguments)
    assert isinstance(found.exception, CastmatesError)
    assert words in str(found.exception)


def test_a_span_in_which_nothing_happens_writes_nothing(trace):
    found = convert(trace, "--span", "100:101")
    assert "nothing happens in that time" in str(found.exception)
    assert list(trace.parent.iterdir()) == [trace]


def test_the_folder_of_a_trace_is_its_own_kind_of_source(tmp_path):
    tables.write(made(events=100), tmp_path / "t")
    source = converting.source_of(tmp_path / "t")
    assert (source.importer, converting.output_of(source, "perfetto").name) == (None, "t.pftrace")
