"""The heartbeat file: what is written is read, and what is overwritten is counted."""

import os
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.workloads.heartbeat import VARIABLE, HeartbeatError, Reader, State, Writer, create


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "beats"


def units_of(records):
    return [units for _, units in records]


def test_round_trip(path):
    create(path)
    writer = Writer(path)
    with Reader(path) as reader:
        assert (reader.state, reader.pid, reader.head) == (State.STARTING, os.getpid(), 0)
        writer.ready()
        assert reader.state is State.READY
        writer.beat()
        writer.beat(5)
        beats = reader.beats(0)
        assert units_of(beats.records) == [1, 6]
        assert beats.records[0][0] <= beats.records[1][0]
        assert (beats.head, beats.lost) == (2, 0)
        assert reader.beats(beats.head).records == []
        writer.finished()
        assert reader.state is State.FINISHED
        writer.failed()
        assert reader.state is State.FAILED
    reader.close()


def test_layout_is_the_documented_one(path):
    create(path, capacity=4)
    writer = Writer(path)
    writer.ready()
    for _ in range(5):
        writer.beat(10)
    raw = path.read_bytes()
    assert len(raw) == 64 + 4 * 16
    assert struct.unpack_from("=8sIIIIQ", raw) == (b"CASTBEAT", 1, 4, 1, os.getpid(), 5)
    assert raw[32:64] == bytes(32)
    assert [struct.unpack_from("=QQ", raw, 64 + 16 * slot)[1] for slot in range(4)] == [50, 20, 30, 40]


def test_wrap_around_and_late_attach(path):
    create(path, capacity=8)
    writer = Writer(path)
    for _ in range(20):
        writer.beat()
    with Reader(path) as reader:
        beats = reader.beats(0)
    # Record 12 shares its slot with record 20, which may be on its way.
    assert units_of(beats.records) == list(range(14, 21))
    assert (beats.head, beats.lost) == (20, 13)


@given(st.sampled_from([2, 4, 16]), st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=80))
def test_reads_give_all_that_was_written_but_the_lost(capacity, steps):
    """`None` is a read, a number is a beat of so many units."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "beats"
        create(path, capacity)
        writer = Writer(path)
        written, since = [], 0
        with Reader(path) as reader:
            for step in [*steps, None]:
                if step is not None:
                    writer.beat(step)
                    written.append(step + (written[-1] if written else 0))
                    continue
                beats = reader.beats(since)
                assert beats.head == len(written)
                assert units_of(beats.records) == written[since + beats.lost : beats.head]
                assert beats.lost == max(0, len(written) - since - (capacity - 1))
                since = beats.head


@given(*[st.integers(0, 20)] * 3)
def test_records_overwritten_during_the_copy_are_dropped(before, during, since):
    """The writer goes on between the reader's two looks at the head, as a real one may."""
    capacity = 8
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "beats"
        create(path, capacity)
        writer = Writer(path)
        for _ in range(before):
            writer.beat()

        class Interrupted(Reader):
            def _copy(self, first, head):
                for _ in range(during):
                    writer.beat()
                return super()._copy(first, head)

        since = min(since, before)
        with Interrupted(path) as reader:
            beats = reader.beats(since)
    assert beats.head == before
    assert units_of(beats.records) == list(range(since + beats.lost + 1, before + 1))
    oldest_whole = before + during - capacity + 1
    assert beats.lost == min(max(0, oldest_whole - since), before - since)


def test_a_second_writer_goes_on_counting(path):
    create(path, capacity=4)
    first = Writer(path)
    for _ in range(6):
        first.beat(2)
    Writer(path).beat(1)
    with Reader(path) as reader:
        assert units_of(reader.beats(5).records) == [12, 13]


def test_without_the_variable_every_call_is_a_no_op(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    writer = Writer.from_environment()
    writer.ready()
    writer.beat(7)
    writer.finished()
    writer.failed()


def test_a_foreign_file_is_refused_and_left_alone(path):
    path.write_bytes(b"#!/bin/sh\n" * 20)
    with pytest.raises(HeartbeatError, match="is not a Castmates heartbeat file"):
        Writer(path)
    with pytest.raises(HeartbeatError, match="is not a Castmates heartbeat file"):
        Reader(path)
    assert path.read_bytes() == b"#!/bin/sh\n" * 20


def damaged(offset, value):
    return lambda raw: struct.pack_into("=I", raw, offset, value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw.clear(), "is not a Castmates heartbeat file"),
        (lambda raw: raw.__delitem__(slice(20, None)), "is not a Castmates heartbeat file"),
        (damaged(8, 2), "has version 2 and this module reads version 1"),
        (damaged(12, 12), "do not fit its capacity of 12 records"),
        (damaged(12, 0), "do not fit its capacity of 0 records"),
        (lambda raw: raw.__delitem__(slice(-1, None)), "127 bytes do not fit its capacity of 4 records"),
        (damaged(16, 9), "its state is 9"),
    ],
)
def test_a_damaged_file_is_refused(path, damage, message):
    with pytest.raises(HeartbeatError, match="No such file"):
        Reader(path)
    create(path, capacity=4)
    raw = bytearray(path.read_bytes())
    damage(raw)
    path.write_bytes(raw)
    with pytest.raises(HeartbeatError, match=message):
        _ = Reader(path).state


def test_a_file_has_a_power_of_two_records_and_is_never_truncated_while_it_is_in_use(path):
    for capacity in (0, 1, 3, 100, -4):
        with pytest.raises(HeartbeatError, match="power of two"):
            create(path, capacity)
    assert not path.exists()
    create(path)
    with pytest.raises(HeartbeatError, match="exists"):
        create(path)


@pytest.mark.parametrize("since", [-1, 3])
def test_reading_on_from_nowhere_is_refused(path, since):
    create(path)
    writer = Writer(path)
    writer.beat()
    with Reader(path) as reader, pytest.raises(HeartbeatError, match=f"no record {since}"):
        reader.beats(since)
