"""The words of a timeline, each of which a Perfetto trace has once, and their numbers there."""

from typing import Any

import numpy as np
import pandas as pd
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import InternedData

from castmates.timeline.export.layout import ON_CPU, WAKES, Numbers
from castmates.timeline.model import Timeline

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
