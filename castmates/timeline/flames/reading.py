"""Reads the stacks that perf sampled into a timeline; perf itself finds the names of their functions."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates.timeline.flames.demangling import can_demangle, demangled
from castmates.timeline.flames.lines import COMPILED, CUT, FIELDS, KERNEL, Lost, Sample, samples, stack
from castmates.timeline.flames.printed import SLOWEST, about, taken
from castmates.timeline.model import Making
from castmates.timeline.registry import Registry


def add_stacks(
    making: Making,
    registry: Registry,
    file: Path,
    members: Mapping[int, str],
    slowest: float = SLOWEST,
    span: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Add the stacks of a perf.data to the tracks of their threads; return what the record of the trace has of it.

    Of a `span` only the samples within it are added.
    """
    gathered = _Gathered(registry, members)

    def take(lines: Iterable[str]) -> None:
        for each in samples(lines):
            if span is None or isinstance(each, Lost) or span[0] <= each.t_ns <= span[1]:
                gathered.add(each)

    why = taken(file, FIELDS, slowest, take, *(["--no-demangle"] if can_demangle() else []))
    gathered.into(making)
    return about("stacks", file, gathered.events, gathered.lost, why) | {"cut": gathered.cut}


class _Gathered:
    """Samples in columns; equal stacks are kept once."""

    def __init__(self, registry: Registry, members: Mapping[int, str]) -> None:
        self._registry, self._members = registry, members
        self._stacks: dict[str, int] = {}
        self._tracks: dict[int, int] = {}
        self._rows: list[tuple[int, int, int, float, int]] = []
        self._named: list[str] = []  # the event of each
        self._lost, self.cut = {True: 0, False: 0}, 0
        self.events: dict[str, int] = {}

    @property
    def lost(self) -> int:
        """The larger of the two counts: a lost sample is in both."""
        return max(self._lost.values())

    def add(self, each: Sample | Lost) -> None:
        if isinstance(each, Lost):
            self._lost[each.of_samples] += each.count
            return
        text = stack(each.frames)
        self.cut += text.startswith(CUT)
        self.events[each.event] = self.events.get(each.event, 0) + 1
        code = self._stacks.setdefault(text, len(self._stacks))
        self._rows.append((each.t_ns, self._track(each), each.cpu, each.weight, code))
        self._named.append(each.event)

    def _track(self, each: Sample) -> int:
        track = self._tracks.get(each.tid)
        if track is None:
            member = self._members.get(each.pid, "")
            track = self._tracks[each.tid] = self._registry.thread(each.tid, each.pid, each.comm, member)
        return track

    def into(self, making: Making) -> None:
        """Add everything that was gathered."""
        if not self._rows:
            return
        times, tracks, cpus, weights, codes = zip(*self._rows, strict=True)
        found, codes_of = _readable(list(self._stacks))
        making.stacks(
            t_ns=np.array(times, np.int64),
            track=np.array(tracks, np.int64),
            cpu=np.array(cpus, np.int64),
            event=self._named,
            weight=np.array(weights),
            stack=pd.Categorical.from_codes(codes_of[np.array(codes)], categories=pd.Index(found, dtype="str")),
            source="perf",
        )


def _readable(stacks: list[str]) -> tuple[list[str], np.ndarray]:
    """The stacks with readable names, each once, and which of them each stack has become."""
    frames = [[_bare(name) for name in each.split(";")] for each in stacks]
    names = demangled(name for each in frames for name, _ in each)
    texts = [";".join(names.get(name, name) + ending for name, ending in each) for each in frames]
    codes, found = pd.factorize(np.array(texts, object))
    return list(found), codes


def _bare(name: str) -> tuple[str, str]:
    """A frame's name, and the mark of its kind at its end."""
    ending = next((each for each in (KERNEL, COMPILED) if name.endswith(each)), "")
    return name.removesuffix(ending), ending
