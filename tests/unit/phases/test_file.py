"""The phases file: what is written is read, whatever else happens to the file."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.runner.processes.member_log import PhaseLog
from castmates.workloads import phase_file
from castmates.workloads.phase_file import (
    COUNTER_SLOT,
    COUNTER_TABLE,
    PhasesError,
    Reader,
    record_bytes,
    wanted_counters,
)
from castmates.workloads.phase_writer import Writer
from tests.unit.phases.written_ranges import phases_of
from tests.unit.snapshots import assert_as_before

NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=12).filter(
    lambda name: name.isprintable() and name != phase_file.OTHER_THREADS
)
TIMES = st.integers(0, 2**62)
RECORDS = st.lists(st.tuples(NAMES, TIMES, TIMES, st.none() | st.integers(0, 2**63 - 1)), max_size=40)


def read(reader: Reader, since: int = 0) -> list[tuple]:
    return [(one.name, one.begin_ns, one.end_ns, one.step) for one in phases_of(reader, since)]


@given(RECORDS)
def test_what_is_written_is_read(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("phases") / "file"
    phase_file.create(path, capacity=64)
    writer, reader = Writer(path), Reader(path)
    records = [(name, min(times), max(times), step) for name, *times, step in records]
    for name, begin, end, step in records:
        writer.record(name, begin, end, step)
    assert read(reader) == records
    assert reader.names == list(dict.fromkeys(name for name, *_ in records))
    assert reader.dropped == 0
    reader.close()


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_reader_that_is_late_gets_the_latest_and_knows_how_many_it_missed(tmp_path_factory, first, more):
    path = tmp_path_factory.mktemp("phases") / "file"
    phase_file.create(path, capacity=16)
    writer, reader = Writer(path), Reader(path)
    for number in range(first):
        writer.record("a", number, number)
    since = reader.read().head
    for number in range(first, first + more):
        writer.record("a", number, number)
    chunk = reader.read(since)
    found = [one.begin_ns for one in phases_of(reader, since)]
    assert chunk.lost == max(0, more - 15)  # the slot that may be written at this moment is not trusted
    assert found == list(range(first + chunk.lost, first + more))
    assert chunk.head == first + more


def test_a_record_that_is_not_published_yet_is_not_read(tmp_path):
    path = tmp_path / "file"
    phase_file.create(path)
    writer, reader = Writer(path), Reader(path)
    writer.record("a", 1, 2)
    with path.open("r+b") as file:  # half of a second one, as a writer leaves it that is stopped in the middle
        file.seek(phase_file.RECORDS + record_bytes(0))
        file.write(struct.pack("q", 77))
    assert read(reader) == [("a", 1, 2, None)]


def test_another_process_goes_on_in_the_file_of_one_that_has_ended(tmp_path):
    path = tmp_path / "file"
    phase_file.create(path)
    first = Writer(path)
    first.begin("outer")
    first.begin("inner")
    first.end()
    first.end()
    second, reader = Writer(path), Reader(path)
    second.begin("outer")
    second.begin("inner")
    second.end()
    second.end()
    assert reader.names == ["outer", "outer/inner"]
    assert [name for name, *_ in read(reader)] == ["outer/inner", "outer"] * 2


def test_while_a_process_lives_no_other_writes(tmp_path):
    path = tmp_path / "file"
    phase_file.create(path)
    with path.open("r+b") as file:
        file.seek(16)
        file.write(struct.pack("I", 1))  # init lives
    late = Writer(path)
    assert not late.listened_to
    late.record("a", 1, 2)
    assert Reader(path).head == 0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not a Castmates phases file"),
        (b"begin_ns,input_ns\n" * 9, "is not a Castmates phases file"),
        (struct.pack("8sIIIIQIIQ", b"CASTPHAS", 9, 64, 0, 0, 0, 0, 0, 0), "has version 9"),
        (struct.pack("8sIIIIQIIQ", b"CASTPHAS", 1, 64, 0, 0, 0, 0, 0, 0), "is damaged"),
        (struct.pack("8sIIIIQIIQ", b"CASTPHAS", 1, 63, 0, 0, 0, 0, 0, 0).ljust(67136 + 63 * 128), "is damaged"),
    ],
)
def test_what_is_no_phases_file_is_refused_in_a_sentence(tmp_path, content, sentence):
    (tmp_path / "file").write_bytes(content)
    for end in (Reader, Writer):
        with pytest.raises(PhasesError, match=sentence):
            end(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content


def test_what_cannot_be_made_is_refused_in_a_sentence(tmp_path):
    def said(*words, **keys):
        with pytest.raises(PhasesError) as refused:
            phase_file.create(*words, **keys)
        return str(refused.value).replace(str(tmp_path), "HERE")

    of = {"nine events": [f"event-{number}" for number in range(9)], "a long name": ["e" * 56],
          "one twice": ["page-faults", "cs", "page-faults"]}  # fmt: skip
    told = {name: said(tmp_path / "a", events) for name, events in of.items()}
    told |= {"three records": said(tmp_path / "b", capacity=3), "no folder": said(tmp_path / "no" / "d")}
    assert_as_before("phases-refused", told)


def test_counters_are_named_as_perf_does():
    assert wanted_counters(None) == wanted_counters(" , ") == []
    assert wanted_counters("page-faults, cpu/event=0xd1,umask=0x20/ ,r01c2") == [
        "page-faults",
        "cpu/event=0xd1,umask=0x20/",
        "r01c2",
    ]
    assert wanted_counters("page-faults,page-faults, minor-faults,page-faults") == ["page-faults", "minor-faults"]


def test_a_job_that_overwrites_the_names_of_counters_does_not_spoil_its_records(tmp_path):
    log = PhaseLog.create(tmp_path / "file", ["page-faults", "minor-faults"])
    Writer(tmp_path / "file").record("a", 1, 2)
    with (tmp_path / "file").open("r+b") as file:
        file.seek(COUNTER_TABLE + COUNTER_SLOT)
        file.write(b"page-faults\0")
    log.read()
    ((phases, _),) = log.parts()
    assert [(one.name, len(one.counts)) for one in phases] == [("a", 2)]
    assert list(log.counters) == ["page-faults", "minor-faults"]


def test_flags_behind_the_status_say_what_numbers_lack(tmp_path):
    phase_file.create(tmp_path / "file", ["a", "b", "c"])
    with (tmp_path / "file").open("r+b") as file:
        for place, flags in enumerate((0, 1, 3)):
            file.seek(64 + 64 * place + 56)
            file.write(struct.pack("II", 1, flags))
    reader = Reader(tmp_path / "file")
    assert reader.counters == dict.fromkeys("abc", "counted")
    assert reader.lacks == {"b": "user mode only", "c": "user mode only; threads may be missing"}
