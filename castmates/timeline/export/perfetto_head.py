"""The first packets of a Perfetto trace: its clock, machine, tracks and words, and what is known of it."""

import json
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BuiltinClock,
    DebugAnnotation,
    InternedData,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

from castmates.timeline.export.layout import LAUNCH, ON_CPU, WAKES, Layout, Node, Numbers
from castmates.timeline.model import Timeline, clock_of, pairs_of, start

ANNOTATIONS = {"detail": 1, "value": 2, "cpu": 3}  # what Perfetto calls debug annotations: their numbers
UNKNOWN_FILE = 1  # the one mapping that all frames lie in: which file a function is from is not recorded


class Words:
    """Names, kinds, details and stacks of all rows, numbered from 1."""

    def __init__(self, timeline: Timeline) -> None:
        rows = timeline.intervals, timeline.instants
        self._labels = _labels(timeline.tracks)
        self._found = {
            "names": _numbered([*self._labels.values()], *(each["name"] for each in rows)),
            "kinds": _numbered([ON_CPU, WAKES], *(each["kind"] for each in rows)),
            "details": _numbered([], *(each["detail"] for each in rows)),
            "stacks": _numbered([], timeline.stacks["stack"]),
        }

    def count(self, what: str) -> int:
        """How many words there are."""
        return len(self._found[what])

    def numbers(self, what: str, cells: pd.Series) -> Numbers:
        """The number of each cell's word."""
        found = self._found[what]
        table = np.array([found.get(word, 0) for word in cells.cat.categories] or [0], np.int64)
        numbers: Numbers = table[cells.cat.codes.to_numpy()]
        return numbers

    def kind(self, name: str) -> int:
        """The number of a kind."""
        return self._found["kinds"][name]

    def threads(self, tracks: Numbers) -> Numbers:
        """The number of the name under which each thread is shown on a CPU."""
        table = np.zeros(max(self._labels, default=0) + 1, np.int64)
        for track, label in self._labels.items():
            table[track] = self._found["names"][label]
        numbers: Numbers = table[tracks]
        return numbers

    def interned(self, data: InternedData) -> None:
        """Write all words into a packet's data."""
        for words, kept in (
            (self._found["names"], data.event_names),
            (self._found["kinds"], data.event_categories),
            (ANNOTATIONS, data.debug_annotation_names),
        ):
            for word, number in words.items():
                kept.add(iid=number, name=word)
        for word, number in self._found["details"].items():
            data.debug_annotation_string_values.add(iid=number, str=word.encode())
        self._stacks(data)

    def _stacks(self, data: InternedData) -> None:
        stacks = {number: stack.split(";") for stack, number in self._found["stacks"].items()}
        frames = {frame: number for number, frame in enumerate(dict.fromkeys(f for s in stacks.values() for f in s), 1)}
        if frames:
            data.mappings.add(iid=UNKNOWN_FILE)
        for frame, number in frames.items():
            data.function_names.add(iid=number, str=frame.encode())
            data.frames.add(iid=number, function_name_id=number, mapping_id=UNKNOWN_FILE)
        for number, stack in stacks.items():
            data.callstacks.add(iid=number, frame_ids=[frames[frame] for frame in stack])


def _labels(tracks: pd.DataFrame) -> dict[int, str]:
    """What a CPU's lane calls each thread: its member and its name."""
    threads = tracks[tracks["kind"] == "thread"]
    found: dict[int, str] = {}
    for one in threads.to_dict("records"):
        name = one["name"] or f"thread {one['tid']}"
        found[int(one["track"])] = f"{one['member']}: {name}" if one["member"] else name
    return found


def _numbered(more: list[str], *columns: pd.Series) -> dict[str, int]:
    words: dict[Any, None] = dict.fromkeys(more)
    for column in columns:
        words |= dict.fromkeys(column.cat.categories)
    return {str(word): number for number, word in enumerate(words, 1)}


SEQUENCE = 1  # all packets are of one writer, in Perfetto's words a sequence
ABOUT = "About this trace"
MONOTONIC, REALTIME = BuiltinClock.BUILTIN_CLOCK_MONOTONIC, BuiltinClock.BUILTIN_CLOCK_REALTIME


def first_packets(timeline: Timeline, tree: Layout, words: Words) -> bytes:
    """Everything that stands before the rows."""
    trace, about = Trace(), timeline.about
    first = trace.packet.add(first_packet_on_sequence=True)
    first.sequence_flags = (
        TracePacket.SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED | TracePacket.SequenceFlags.SEQ_NEEDS_INCREMENTAL_STATE
    )
    words.interned(first.interned_data)
    _clocks(trace, about, start(timeline))
    _machine(trace, about)
    for node in tree.nodes:
        _describe(trace.packet.add().track_descriptor, node)
    home = next((node.number for node in tree.nodes if node.kind == "group" and node.name.startswith(LAUNCH)), 0)
    _about(trace, about, start(timeline), Node(len(tree.nodes) + 1, home, "lane", ABOUT))
    for packet in trace.packet:
        packet.trusted_packet_sequence_id = SEQUENCE
    whole: bytes = trace.SerializeToString()
    return whole


def _clocks(trace: Trace, about: Mapping[str, Any], begin: int) -> None:
    """Readings of the timeline's clock beside the real-time clock let the UI show the time of day.

    Perfetto's rows are of one clock, CLOCK_MONOTONIC. Where times are of the real-time clock, or of one that is not
    known, they have its place: a reading of the first has both clocks equal.
    """
    for own, real in pairs_of(about, begin):
        snapshot = trace.packet.add().clock_snapshot
        snapshot.primary_trace_clock = MONOTONIC
        snapshot.clocks.add(clock_id=MONOTONIC, timestamp=own)
        if real is not None:
            snapshot.clocks.add(clock_id=REALTIME, timestamp=real)


def _machine(trace: Trace, about: Mapping[str, Any]) -> None:
    """The machine that was traced, where the record knows it."""
    if about.get("kernel"):
        name = trace.packet.add().system_info.utsname
        name.sysname, name.release = "Linux", str(about["kernel"])


def _describe(descriptor: TrackDescriptor, node: Node) -> None:
    descriptor.uuid, descriptor.name, descriptor.sibling_order_rank = node.number, node.name, node.rank
    descriptor.child_ordering = TrackDescriptor.ChildTracksOrdering.EXPLICIT
    # Or lines of one name, such as two threads without numbers, would be one, and their slices would no longer nest.
    descriptor.sibling_merge_behavior = TrackDescriptor.SiblingMergeBehavior.SIBLING_MERGE_BEHAVIOR_NONE
    if node.parent:
        descriptor.parent_uuid = node.parent
    match node.kind:
        case "process":
            descriptor.process.pid, descriptor.process.process_name = node.pid, node.name
        case "thread":
            descriptor.thread.pid, descriptor.thread.tid, descriptor.thread.thread_name = node.pid, node.tid, node.name
        case "counter":
            descriptor.counter.unit_name = node.unit


def _about(trace: Trace, about: Mapping[str, Any], begin: int, node: Node) -> None:
    """A line with one moment, whose notes are the record of the trace: sources, lost events, what tracing costs."""
    _describe(trace.packet.add().track_descriptor, node)
    packet = trace.packet.add(timestamp=begin, timestamp_clock_id=MONOTONIC)
    event = packet.track_event
    event.type, event.track_uuid, event.name = TrackEvent.TYPE_INSTANT, node.number, ABOUT
    event.categories.append("about")
    by = f"Castmates on Python {platform.python_version()}"
    for key, value in {"written by": by, "clock": clock_of(about), **about}.items():
        _note(event.debug_annotations.add(name=str(key)), value)


def _note(note: DebugAnnotation, value: object) -> None:
    """A value of the record, as deep as it is."""
    match value:
        case bool():
            note.bool_value = value
        case int():
            note.int_value = value
        case float():
            note.double_value = value
        case Mapping():
            for key, each in value.items():
                _note(note.dict_entries.add(name=str(key)), each)
        case list() | tuple():
            for each in value:
                _note(note.array_values.add(), each)
        case _:
            note.string_value = value if isinstance(value, str) else json.dumps(value, default=str)
