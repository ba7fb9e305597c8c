"""A timeline as Perfetto's format and as Chrome's JSON: read back by Perfetto's own classes, row by row."""

import base64
import json
import zlib
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from castmates.errors import CastmatesError
from castmates.results.columns.trace import PERFETTO_FILE
from castmates.timeline.converting import FORMATS, write_all
from castmates.timeline.export import perfetto
from castmates.timeline.export.layout import layout
from castmates.timeline.export.perfetto import Shape, width
from castmates.timeline.model import Making
from tests.unit.timeline_maker import made
from tests.unit.timelines_awkward import awkward

TYPES = {TrackEvent.TYPE_SLICE_BEGIN: 1, TrackEvent.TYPE_SLICE_END: -1, TrackEvent.TYPE_INSTANT: 0}


def packets(file):
    """All packets of a trace, unpacked."""
    whole = Trace()
    for packet in Trace.FromString(file.read_bytes()).packet:
        whole.MergeFromString(zlib.decompress(packet.compressed_packets))
    return whole.packet


def read(file):
    """The slices of a trace: (line, begin, end, depth, name, kind, notes), as a stable sort by time leaves them."""
    every = packets(file)
    words = every[0].interned_data
    names, kinds, notes = (
        {each.iid: each.name for each in some}
        for some in (words.event_names, words.event_categories, words.debug_annotation_names)
    )
    details = {each.iid: each.str.decode() for each in words.debug_annotation_string_values}
    lines = {one.track_descriptor.uuid: one.track_descriptor for one in every if one.HasField("track_descriptor")}
    found, open_, counters = [], defaultdict(list), []
    rows = [one for one in every if one.HasField("track_event") and one.track_event.categories != ["about"]]
    for packet in sorted(rows, key=lambda one: one.timestamp):
        event, at = packet.track_event, packet.timestamp
        line = event.track_uuid
        if event.type == TrackEvent.TYPE_COUNTER:
            counters.append((lines[line].name, lines[line].counter.unit_name, at, event.double_counter_value))
            continue
        stack = open_[line]
        if TYPES[event.type] == -1:
            begun = stack.pop()
            found.append((*begun[:2], at, *begun[2:]))
            continue
        value = {notes[one.name_iid]: _value(one, details) for one in event.debug_annotations}
        row = (line, at, len(stack), names[event.name_iid], kinds[event.category_iids[0]], value)
        if TYPES[event.type]:
            stack.append(row)
        else:
            found.append((*row[:2], at, *row[2:]))
    assert not any(open_.values())
    return lines, found, counters


def _value(note, details):
    kind = note.WhichOneof("value")
    return details[note.string_value_iid] if kind == "string_value_iid" else getattr(note, kind)


def expected(timeline):
    """The rows of the tables in the same form, without their lines."""
    for row in timeline.intervals.to_dict("records"):
        depth = row["depth"] if row["t0_ns"] < row["t1_ns"] else 0
        yield row["t0_ns"], row["t1_ns"], depth, row["name"], row["kind"], _notes(row)
    for row in timeline.instants.to_dict("records"):
        yield row["t_ns"], row["t_ns"], 0, row["name"], row["kind"], _notes(row)


def _notes(row):
    notes = {"detail": row["detail"], "value": row["value"], "cpu": row["cpu"]}
    return tuple(
        (name, value) for name, value in notes.items() if value not in ("",) and value == value and value is not None
    )


@pytest.mark.parametrize("timeline", [made(600), awkward()], ids=["made", "awkward"])
def test_every_row_is_in_the_trace_once(tmp_path, timeline):
    FORMATS["perfetto"].write(timeline, tmp_path / "a")
    lines, slices, counters = read(tmp_path / "a")
    ours = Counter(expected(timeline))
    theirs = Counter(
        (begin, end, depth if begin < end else 0, name, kind, tuple(notes.items()))
        for _, begin, end, depth, name, kind, notes in slices
        if kind not in ("ran", "wakes")
    )
    assert theirs == ours
    samples = timeline.samples[["name", "unit", "t_ns", "value"]]
    assert sorted(counters) == sorted(samples.itertuples(index=False, name=None))
    assert all(one.parent_uuid in lines for one in lines.values() if one.parent_uuid)


def test_a_thread_is_on_its_process_and_a_cpu_shows_who_ran(tmp_path):
    timeline = awkward()
    FORMATS["perfetto"].write(timeline, tmp_path / "a")
    lines, slices, _ = read(tmp_path / "a")
    on = {(lines[line].name, name) for line, *_, name, kind, _ in slices if kind == "ran"}
    assert ("cpu3", "lead@0: pool") in on
    assert ("cpu3 (2)", "stream@1: stream") in on  # they overlap, as where an event was lost
    state = next(line for line, *_, kind, _ in slices if kind == "state")
    thread = lines[lines[state].parent_uuid]
    assert (thread.thread.pid, thread.thread.tid) == (500, 501)
    process = lines[thread.parent_uuid]
    assert (process.process.pid, process.process.process_name) == (500, "lead@0 · dlrm-train · python")


def test_an_arrow_leads_from_who_wakes_to_who_is_woken(tmp_path):
    FORMATS["perfetto"].write(awkward(), tmp_path / "a")
    every = packets(tmp_path / "a")
    lines = {one.track_descriptor.uuid: one.track_descriptor.name for one in every if one.HasField("track_descriptor")}
    events = [one.track_event for one in every if one.HasField("track_event")]
    begins = {lines[one.track_uuid]: list(one.flow_ids) for one in events if one.flow_ids}
    ends = {lines[one.track_uuid]: list(one.terminating_flow_ids) for one in events if one.terminating_flow_ids}
    assert (begins, ends) == ({"stream: wakes": [1]}, {"pool: events": [1]})  # who is not recorded has no arrow


def test_cpus_that_show_who_ran_are_not_shown_twice(tmp_path):
    timeline = awkward()
    cpu = timeline.tracks.index[timeline.tracks["kind"] == "cpu"][0]
    kinds = timeline.intervals["kind"].cat.add_categories("on_cpu").where(timeline.intervals["track"] != cpu, "on_cpu")
    FORMATS["perfetto"].write(replace(timeline, intervals=timeline.intervals.assign(kind=kinds)), tmp_path / "a")
    lines, slices, _ = read(tmp_path / "a")
    found = [
        (lines[line].name, lines[lines[line].parent_uuid].name) for line, *_, kind, _ in slices if kind == "on_cpu"
    ]
    assert found == [("cpu3", "Who ran on each CPU")]
    assert not any(kind == "ran" for *_, kind, _ in slices)


def test_the_record_is_a_moment_of_the_launch(tmp_path):
    FORMATS["perfetto"].write(awkward(), tmp_path / "a")
    about = next(one.track_event for one in packets(tmp_path / "a") if one.track_event.name == "About this trace")
    notes = {one.name: one for one in about.debug_annotations}
    sources = notes["sources"].array_values[0]
    assert {one.name: one.string_value or one.int_value for one in sources.dict_entries} == {"name": "perf", "lost": 7}
    snapshots = [one.clock_snapshot for one in packets(tmp_path / "a") if one.HasField("clock_snapshot")]
    assert [(one.clock_id, one.timestamp) for one in snapshots[0].clocks] == [(3, 9_000_000_000_000_000), (1, 17)]


@pytest.mark.parametrize(
    ("about", "clock", "real"),
    [
        ({}, "CLOCK_MONOTONIC", None),
        ({"imported": {"clock": "CLOCK_REALTIME"}}, "CLOCK_REALTIME", 7),
        ({"imported": {"clock": "the tracer's"}}, "unknown", None),
        ({"imported": {"clock": "CLOCK_MONOTONIC"}, "clocks": [{"steady_ns": 0, "real_ns": 5}]}, "CLOCK_MONOTONIC", 5),
    ],
)
def test_every_format_names_the_clock_that_times_are_of(tmp_path, about, clock, real):
    making = Making()
    making.about = about
    making.instants(t_ns=7, track=making.track("run", "x"), kind="annotation", name="a")
    for name, format_ in FORMATS.items():
        format_.write(making.made(), tmp_path / name)
    assert json.loads((tmp_path / "chrome").read_text())["otherData"]["clock"] == clock
    metadata = (tmp_path / "ctf" / "ust" / "metadata").read_text()
    assert f'name = "{clock.removeprefix("CLOCK_").lower()}";' in metadata
    every = packets(tmp_path / "perfetto")
    [snapshot] = [one.clock_snapshot for one in every if one.HasField("clock_snapshot")]
    assert [one.timestamp for one in snapshot.clocks if one.clock_id == 1] == ([] if real is None else [real])
    about_trace = next(one.track_event for one in every if one.track_event.name == "About this trace")
    assert {one.name: one.string_value for one in about_trace.debug_annotations}["clock"] == clock


def test_stacks_are_samples_of_their_thread(tmp_path):
    FORMATS["perfetto"].write(awkward(), tmp_path / "a")
    every = packets(tmp_path / "a")
    words = every[0].interned_data
    functions = {one.iid: one.str.decode() for one in words.function_names}
    frames = {one.iid: functions[one.function_name_id] for one in words.frames}
    stacks = {one.iid: ";".join(frames[each] for each in one.frame_ids) for one in words.callstacks}
    found = [(one.timestamp, one.perf_sample.tid, stacks[one.perf_sample.callstack_iid])
             for one in every if one.HasField("perf_sample")]  # fmt: skip
    assert found == [(9_000_000_000_000_150, 501, "main;run;größer")]


def test_parts_of_a_trace_are_what_the_whole_is(tmp_path, monkeypatch):
    timeline = made(900)
    FORMATS["perfetto"].write(timeline, tmp_path / "whole")
    monkeypatch.setattr(perfetto, "ROWS", 17)
    FORMATS["perfetto"].write(timeline, tmp_path / "parts")

    def plain(file):
        return Counter(one.SerializeToString() for one in packets(file))

    assert len(Trace.FromString((tmp_path / "parts").read_bytes()).packet) > 20
    assert plain(tmp_path / "parts") == plain(tmp_path / "whole")


def test_a_shape_repeats_a_packet_with_other_fields():
    def fill(packet, values):
        packet.timestamp = values["time"]
        packet.track_event.double_counter_value = values["value"]

    times, values = np.array([0, 1, 127, 128, 2**56 - 1]), np.array([0.0, -1.5, np.inf, 5e-324, 1e300])
    shape = Shape(fill, {"time": width(2**56 - 1), "value": "real"})
    trace = Trace.FromString(shape.packets(5, {"time": times, "value": values}))
    assert [one.timestamp for one in trace.packet] == times.tolist()
    assert [one.track_event.double_counter_value for one in trace.packet] == values.tolist()


def test_chrome_json_has_every_row_on_lanes_that_nest(tmp_path):
    timeline = awkward()
    FORMATS["chrome"].write(timeline, tmp_path / "a.json")
    whole = json.loads((tmp_path / "a.json").read_text())
    origin = whole["otherData"]["origin_ns"]
    events = whole["traceEvents"]

    def ns(text):
        return round(text * 1000)

    found = Counter(
        (origin + ns(one["ts"]), ns(one.get("dur", 0)), one["name"], one["cat"], tuple(sorted(one.get("args", {}))))
        for one in events
        if one["ph"] in "Xi" and one["cat"] != "ran"
    )
    assert found == Counter(
        (begin, end - begin, name, kind, tuple(sorted(dict(notes))))
        for begin, end, _, name, kind, notes in expected(timeline)
    )
    spans = defaultdict(list)
    for one in events:
        if one["ph"] == "X":
            spans[one["pid"], one["tid"]].append((ns(one["ts"]), -ns(one["ts"] + one["dur"])))
    for lane in spans.values():
        around = []
        for begin, end in sorted(lane):
            while around and around[-1] <= begin:
                around.pop()
            assert not around or -end <= around[-1]
            around.append(-end)
    assert len([one for one in events if one["ph"] == "C"]) == len(timeline.samples)
    named = {(one["pid"], one["tid"]) for one in events if one["name"] == "thread_name"}
    assert {(one["pid"], one["tid"]) for one in events if one["ph"] in "Xi"} <= named


def test_a_timeline_of_nothing_is_written(tmp_path):
    nothing = Making().made()
    for name, each in FORMATS.items():
        each.write(nothing, tmp_path / name)
    assert layout(nothing).nodes == []
    assert json.loads((tmp_path / "chrome").read_text())["traceEvents"] == []


def test_the_page_carries_the_trace_and_its_words_are_harmless(tmp_path):
    timeline = made(200)
    timeline.about["study"] = "</script><b>"
    write_all(timeline, tmp_path)
    page = (tmp_path / "open.html").read_text()
    assert "</script><b>" not in page
    assert "lead+stream" in page
    held = page.partition('id="bytes">')[2].partition("<")[0]
    assert base64.b64decode(held) == (tmp_path / PERFETTO_FILE).read_bytes()


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CastmatesError, match="make room or give write access"):
        FORMATS["perfetto"].write(made(50), tmp_path / "file" / "a")
