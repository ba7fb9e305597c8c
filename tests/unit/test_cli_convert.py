"""castmates trace convert: what it writes, what it says of what it read, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.timeline import converting, tables
from castmates.timeline.model import SECOND, Making, cut
from tests.unit.snapshots import assert_as_before
from tests.unit.timeline_maker import made

DATA = Path(__file__).parent.parent / "data" / "imports"


def convert(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["trace", "convert", *map(str, arguments)], catch_exceptions=True)


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes((DATA / "strace.txt").read_bytes())
    return file


def test_it_reports_what_was_read_and_left_out(tmp_path):
    (tmp_path / "a").write_bytes((DATA / "ftrace.txt").read_bytes())
    found = convert(tmp_path / "a", "--format", "tables")
    assert found.exit_code == 0
    assert "the text of ftrace" in found.output
    assert "left out:" in found.output
    assert "sched_wakeup after sched_waking" in found.output
    assert "arguments of system calls are not in the timeline" in found.output
    kept, read = tables.read(tmp_path / "a.trace"), converting.source_of(DATA / "ftrace.txt").read()
    assert len(kept.intervals) == len(read.intervals) > 400
    assert len(kept.instants) == len(read.instants)


def test_calls_without_a_duration_are_named_with_what_helps(tmp_path, trace):
    (tmp_path / "b").write_text("7 1795788749.854846 brk(NULL) = 0x559869bea000\n")
    assert "record with -T" in convert(tmp_path / "b").output
    assert "record with -T" not in convert(trace).output


def test_a_part_of_our_own_trace(tmp_path):
    whole = made(events=600)
    tables.write(whole, tmp_path / "t")
    for to, name in (("chrome", "a.json"), ("tables", "part")):
        done = convert(tmp_path / "t", "--format", to, "--span", "0.5:1", "--output", tmp_path / name)
        assert done.exit_code == 0
    part = tables.read(tmp_path / "part")
    inside = (whole.intervals["t1_ns"] > 5 * 10**8) & (whole.intervals["t0_ns"] < 10**9)
    assert len(part.intervals) == inside.sum() > 10
    assert part.intervals["t0_ns"].min() == 5 * 10**8
    assert part.intervals["t1_ns"].max() == 10**9
    assert part.about["filters"]["span"] == [0.5, 1.0]
    assert [*part.about["missing"]][-1].startswith("this is a part of the trace, from 0.5 s to 1 s")
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert max(event.get("ts", 0) for event in events) <= 10**6


@pytest.mark.parametrize("to", ["perfetto", "chrome", "ctf", "tables"])
def test_it_replaces_what_it_wrote_and_nothing_else(trace, tmp_path, to):
    output = tmp_path / "out"
    assert convert(trace, "--format", to, "--output", output).exit_code == 0
    assert convert(trace, "--format", to, "--output", output).exit_code == 0
    for foreign in (trace, DATA):
        before = sorted(foreign.iterdir()) if foreign.is_dir() else foreign.read_bytes()
        found = convert(DATA / "strace-of-day.txt", "--format", to, "--output", foreign)
        assert isinstance(found.exception, CastmatesError)
        assert "give another --output" in str(found.exception)
        assert before == (sorted(foreign.iterdir()) if foreign.is_dir() else foreign.read_bytes())


def test_what_is_wrong_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    strace = DATA / "strace.txt"
    cases = {
        "nothing": ["nothing"],
        "another format": [strace, "--format", "pdf"],
        "a span backwards": [strace, "--span", "3:1"],
        "no span": [strace, "--span", "now"],
        "no folder": [strace, "--output", "/nowhere/at/all"],
        "a folder of nothing": [".", "--format", "tables"],
        "no study": ["study.yaml", "a+b"],
    }
    said = {name: str(convert(*arguments).exception).replace(str(DATA), "") for name, arguments in cases.items()}
    assert_as_before("convert-mistakes", said)


def test_a_part_has_what_is_in_it_and_nothing_that_ended_at_its_edge():
    making = Making()
    making.about = {"filters": {"seconds": 5.0, "members": []}}
    track = making.track("run", "x")
    for begin, end, name in ((0, 2, "before"), (1, 3, "across"), (2, 2, "moment"), (2, 5, "in"), (4, 6, "after")):
        making.intervals(t0_ns=begin * SECOND, t1_ns=end * SECOND, track=track, kind=name, name=name)
    part = cut(making.made(), 2.0, 4.0)
    spans = part.intervals[["name", "t0_ns", "t1_ns"]].itertuples(index=False, name=None)
    assert {(name, begin // SECOND, end // SECOND) for name, begin, end in spans} == {
        ("across", 2, 3), ("moment", 2, 2), ("in", 2, 4)
    }  # fmt: skip
    assert part.about["filters"] == {"seconds": 5.0, "members": [], "span": [2.0, 4.0]}


def test_a_trace_of_ours_is_known_however_large_its_first_packet_is(tmp_path):
    """Its words alone are 10 MB of letters without any order."""
    making, dice = Making(), np.random.default_rng(1)
    words = [bytes(row).decode("latin-1") for row in dice.integers(161, 255, (50, 100_000), np.uint8)]
    making.instants(t_ns=range(50), track=making.track("run", "x"), kind="annotation", name="a", detail=words)
    file = tmp_path / "large.pftrace"
    converting.convert(making.made(), "perfetto", file)
    assert file.stat().st_size > 4 << 20
    source = converting.source_of(DATA / "strace.txt")
    converting.may_write(file, "perfetto", source)
    foreign = file.read_bytes()[5:]
    file.write_bytes(foreign)
    with pytest.raises(CastmatesError, match="did not write it"):
        converting.may_write(file, "perfetto", source)
    file.write_bytes(b"")
    with pytest.raises(CastmatesError, match="did not write it"):
        converting.may_write(file, "perfetto", source)


def test_a_span_in_which_nothing_happens_writes_nothing(trace):
    found = convert(trace, "--span", "100:101")
    assert "nothing happens in that time" in str(found.exception)
    assert list(trace.parent.iterdir()) == [trace]


def test_the_folder_of_a_trace_is_its_own_kind_of_source(tmp_path):
    tables.write(made(events=100), tmp_path / "t")
    source = converting.source_of(tmp_path / "t")
    assert (source.importer, converting.output_of(source, "perfetto").name) == (None, "t.pftrace")
