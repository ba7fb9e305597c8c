"""Timelines keep what they are given, in order, on disk too; what is no timeline is a sentence."""

import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.results.columns.trace import TRACE_RECORD, TRACE_TABLES
from castmates.timeline.model import Making, Registry
from castmates.timeline.tables import read, write
from tests.unit.timeline_maker import made


def test_a_timeline_comes_back_as_it_was_written(tmp_path):
    timeline = made()
    write(timeline, tmp_path)
    back = read(tmp_path)
    assert back.about == timeline.about
    for name in TRACE_TABLES:
        written, found = timeline.table(name), back.table(name)
        assert len(written), name
        for column in written:
            assert written[column].astype(object).equals(found[column].astype(object)), (name, column)
    assert len(read(tmp_path, "tracks").intervals) == 0


def test_parts_are_put_in_order_whatever_their_words(tmp_path):
    making = Making()
    track = making.track("thread", "a", tid=1)
    making.intervals(t0_ns=[5, 0], t1_ns=[6, 9], track=track, kind="operation", name=["inner", "outer"], depth=[1, 0])
    making.intervals(t0_ns=0, t1_ns=4, track=track, kind="state", name="running", cpu=3)
    table = making.made().intervals
    assert table.name.tolist() == ["outer", "running", "inner"]
    assert table.cpu.tolist() == [pd.NA, 3, pd.NA]
    write(making.made(), tmp_path)
    assert read(tmp_path).intervals.name.tolist() == ["outer", "running", "inner"]
    with pytest.raises(TypeError, match="no column colour"):
        making.instants(t_ns=0, track=track, kind="mark", name="m", colour="red")


@pytest.mark.parametrize("spoilt", [TRACE_RECORD, "intervals.parquet"])
def test_what_is_cut_is_a_sentence_with_its_file(tmp_path, spoilt):
    write(made(), tmp_path)
    file = tmp_path / spoilt
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(CastmatesError, match=spoilt):
        read(tmp_path)


def test_sources_share_tracks_and_fill_in_what_others_left_open():
    making = Making()
    registry = Registry(making)
    thread = registry.thread(7)
    assert registry.thread(7, pid=5, name="worker", member="lead@0") == thread
    assert registry.thread(7, name="other") == thread
    tracks = making.made().tracks.set_index("track")
    process = tracks.loc[tracks.loc[thread, "parent"]]
    assert (tracks.loc[thread, "name"], tracks.loc[thread, "member"], process.kind) == ("worker", "lead@0", "process")
    assert tracks.loc[process.parent, "name"] == "lead@0"
