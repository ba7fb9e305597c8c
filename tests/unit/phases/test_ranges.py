"""Every range is kept, with its thread, nesting, domain, epoch and payload."""

import struct
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings

from castmates.runner.processes.member_log import RangeLog
from castmates.runner.rounds.phases import share_out
from castmates.workloads import phase_file, phases
from castmates.workloads.phase_file import Reader
from castmates.workloads.phase_writer import Writer
from castmates.workloads.phases import end, epoch, instant, mark, phase, start
from tests.unit.phases.written_ranges import CALLS, CAPACITY, create, heard, make, phases_of, said


@pytest.fixture
def listening(tmp_path, monkeypatch):
    """A runner that keeps ranges."""
    reader = create(tmp_path / "file", capacity=64)
    monkeypatch.setenv(phase_file.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(phases._state, "writer", phases._unopened)
    return reader


def test_a_range_has_its_thread_nesting_domain_epoch_and_payload(listening):
    with epoch(3):
        load = start("load", payload={"shape": [8, 128]}, domain="input")
        with phase("forward", step=4, payload="n=1"), phase("decode", domain="input"), phase("attention"):
            instant("nan")
        thread = threading.Thread(target=end, args=(load,))
        thread.start()
        thread.join()
    mark("x")
    mark()
    found = {one.path: one for one in heard(listening)}
    about = {path: (one.type, one.domain, one.depth, one.step, one.epoch, one.payload) for path, one in found.items()}
    assert about == {
        "forward/attention/nan": ("instant", "", 2, 4, 3, ""),
        "forward/attention": ("phase", "", 1, 4, 3, ""),
        "decode": ("phase", "input", 0, None, 3, ""),
        "forward": ("phase", "", 0, 4, 3, "n=1"),
        "load": ("range", "input", 0, None, 3, '{"shape":[8,128]}'),
        "epoch": ("epoch", "", 0, None, 3, ""),
        "x": ("phase", "", 0, None, None, ""),
    }
    here = threading.get_native_id()
    assert {one.thread for one in found.values()} == {here}
    assert found["load"].end_thread != here
    nan, forward, load, around = (found[path] for path in ("forward/attention/nan", "forward", "load", "epoch"))
    assert around.begin_ns <= load.begin_ns <= forward.begin_ns <= nan.begin_ns == nan.end_ns <= forward.end_ns
    assert forward.end_ns <= load.end_ns <= around.end_ns


def test_what_ends_twice_or_never_is_counted_and_a_sentence_comes_once(listening, capfd):
    start("never")
    twice = start("twice")
    for _ in range(3):
        end(twice)
    end(None)
    for payload in ("x" * 65, {"x": "x" * 65}, float):
        with phase("work", payload=payload):
            pass
    circle: list[object] = []
    circle.append(circle)
    with phase("work", payload=circle):
        pass
    assert [(one.path, one.payload) for one in heard(listening)] == [
        ("twice", ""), ("work", ""), ("work", ""), ("work", "\"<class 'float'>\""), ("work", "")
    ]  # fmt: skip
    assert (listening.open, listening.cut, listening.dropped) == (1, 3, 0)
    lines = capfd.readouterr().err.splitlines()
    assert ["ended already" in line for line in lines] == [True, False]
    assert "has 65 bytes and at most 64 are kept" in lines[1]


@settings(max_examples=60)
@given(CALLS)
def test_phases_are_the_same_whether_ranges_are_kept_or_not(tmp_path_factory, calls):
    """The sums of a launch cannot change with what else is kept."""
    folder = tmp_path_factory.mktemp("phases")
    phase_file.create(folder / "phases", capacity=64, ranges=False)
    everything = create(folder / "everything", capacity=64)
    for name in ("phases", "everything"):
        make(Writer(folder / name), calls)
    only = Reader(folder / "phases")
    assert {(one.type, one.domain, one.payload) for one in heard(only)} <= {("phase", "", "")}
    assert [(one.name, one.step) for one in phases_of(only)] == [(one.name, one.step) for one in phases_of(everything)]
    own = [one for one in heard(everything) if one.type == "phase" and not one.domain]
    for one in own:  # and they lie in each other
        around = one.path.rpartition("/")[0]
        outer = [other for other in own if other.path == around and other.end_ns >= one.end_ns]
        assert not outer or outer[0].begin_ns <= one.begin_ns


@settings(max_examples=40)
@given(CALLS, CALLS)
def test_a_reader_that_is_late_and_a_process_that_goes_on_in_the_file(tmp_path_factory, calls, more):
    path = tmp_path_factory.mktemp("phases") / "file"
    reader = create(path)
    make(Writer(path), calls)
    before = reader.head
    make(Writer(path), more)
    whole = create(path.with_name("whole"), capacity=256)
    make(Writer(path.with_name("whole")), [*calls])
    make(Writer(path.with_name("whole")), [*more])
    lost = reader.read().lost
    assert lost == max(0, reader.head - CAPACITY + 1)
    assert said(reader)[1:] == said(whole)[1:]
    assert said(reader)[0] == said(whole)[0][lost:]
    assert heard(reader, before) == heard(reader)[max(0, before - lost) :]


def test_the_layout_is_the_one_that_is_documented(tmp_path):
    create(tmp_path / "file", capacity=2, counters=["page-faults"])
    writer = Writer(tmp_path / "file")
    writer.record("é", 5, 7, 3)
    writer.range("load", 8, 9, 4, domain="input")
    content = (tmp_path / "file").read_bytes()
    assert len(content) == 67136 + 2 * (64 + 8 + 64)
    assert struct.unpack_from("8sII", content) == (b"CASTPHAS", 1, 2)
    assert struct.unpack_from("QII", content, 24) == (2, 2, 2)
    assert content[1600 - 15 * 64 : 1600 - 15 * 64 + 6] == b"input\0"
    assert struct.unpack_from("HH3s", content, 1600) == (0, 1, "é".encode() + b"\0")
    assert struct.unpack_from("HH5s", content, 1600 + 128) == (1, 2, b"load\0")
    thread = threading.get_native_id()
    assert struct.unpack_from("4q6Iqq", content, 67136) == (5, 7, 3, -1, 0, 1, thread, thread, 0, 0, 0, -1)
    assert struct.unpack_from("4q6I", content, 67136 + 136) == (8, 9, 4, -1, 1, 2, 0, 0, 0, 0)


def test_between_windows_only_what_is_longer_than_one_is_kept(tmp_path):
    log = RangeLog.of(tmp_path / "file", [], most=10)
    writer = Writer(log.variables["CASTMATES_PHASES"])
    handle, around = writer.start("load", payload="n=1"), writer.epoch(2)
    writer.record("between", 1, 2)
    writer.instant("between")
    writer.finish(handle)
    writer.finish(around)
    log.forget()
    writer.record("inside", 3, 4)
    writer.start("never")
    log.read()
    assert [(one.type, one.path, one.payload) for one in log.ranges()] == [
        ("phase", "inside", ""), ("range", "load", "n=1"), ("epoch", "epoch", "")
    ]  # fmt: skip
    assert [[one.name for one in part] for part, _ in log.parts()] == [["inside"]]
    assert log.about() == {"names": ["between", "inside"], "lost": 0, "not_recorded": 0, "not_ended": 1}


@pytest.mark.parametrize("take", [RangeLog.forget, RangeLog.read])
def test_a_job_that_writes_nonsense_spoils_its_own_ranges_alone(tmp_path, take):
    log = RangeLog.of(tmp_path / "file", [], most=10)
    writer = Writer(log.variables["CASTMATES_PHASES"])
    writer.record("inside", 1, 2)
    log.read()
    with (tmp_path / "file").open("r+b") as file:
        file.seek(24)
        file.write(struct.pack("QII", 0, 2**31, 2**31))  # records, names, domains
    take(log)
    assert "so there is no record 1" in log.trouble
    take(log)
    assert [one.path for one in log.ranges()] == ["inside"]


def test_records_that_cannot_be_whole_are_left_out(tmp_path):
    reader = create(tmp_path / "file")
    writer = Writer(tmp_path / "file")
    for number in range(4):
        writer.record("good", number, number + 1)
    with (tmp_path / "file").open("r+b") as file:
        for slot, (at, value) in enumerate([(32, 7), (36, 9), (0, 2**62)]):  # name, type, begin
            file.seek(67136 + 128 * slot + at)
            file.write(struct.pack("Q" if at == 0 else "I", value))
    assert [one.begin_ns for one in heard(reader)] == [3]


def test_every_window_keeps_an_equal_part_of_what_does_not_fit():
    windows = [1] * 10 + [2] * 2 + [3] * 10
    kept = share_out(windows, 12)
    assert [sum(keep for keep, window in zip(kept, windows, strict=True) if window == one) for one in (1, 2, 3)] == [
        5, 2, 5
    ]  # fmt: skip
    assert all(before >= after for (before, after) in pairwise(kept[:10])), "the first ones of a window"
    assert sum(share_out(windows, 100)) == len(windows)
