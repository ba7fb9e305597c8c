"""The tables of a timeline -> what was recorded of each scene: states, calls and events of each member, over time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castmates.analysis.findings.conditions import cpus_of
from castmates.analysis.timeline.families import KINDS, recorded_families
from castmates.study import cpus
from castmates.study.spec import UNMANAGED

Ints = NDArray[np.int64]
Spans = tuple[Ints, Ints]  # where each begins, and where it ends
LEAD, ANTAGONIST = "lead", "antagonist"
ALONE = ("alone", "alone-again", "placebo")  # kinds of scenes that run the lead and no other member
NAN = float("nan")
COLUMNS_OF_TRACKS = {"member": "member", "on": "kind", "thread": "name"}  # what rows are given of their track


def levels(within: Spans, *groups: Spans) -> tuple[Ints, Ints]:
    """Stretches of time in which the number of each group that goes on does not change, inside of `within`.

    Returns how long each stretch is, and of each group (a row) how many of its spans go on in each stretch.
    """
    every = (within, *groups)
    at = np.concatenate([edge for begin, end in every for edge in (begin, end)])
    change = np.zeros((len(every), len(at)), np.int64)
    place = 0
    for number, (begin, end) in enumerate(every):
        change[number, place : place + len(begin)] = 1
        change[number, place + len(begin) : place + len(begin) + len(end)] = -1
        place += len(begin) + len(end)
    order = np.argsort(at, kind="stable")
    going_on = np.cumsum(change[:, order], axis=1)[:, :-1]
    lasts = np.diff(at[order])
    kept = (lasts > 0) & (going_on[0] > 0)
    return lasts[kept], going_on[1:, kept]


def quantile_of_time(lasts: Ints, level: Ints, share: float) -> float:
    """The level that is not exceeded for this share of the time; NaN without any."""
    if not len(lasts):
        return float("nan")
    order = np.argsort(level, kind="stable")
    reached = np.cumsum(lasts[order]) / lasts.sum()
    return float(level[order][np.searchsorted(reached, share * (1 - 1e-12))])


def merged(begins: Sequence[int], ends: Sequence[int]) -> Spans:
    """The spans in order, those that overlap as one."""
    together: list[list[int]] = []
    for begin, end in sorted(zip(begins, ends, strict=True)):
        if together and begin <= together[-1][1]:
            together[-1][1] = max(end, together[-1][1])
        else:
            together.append([begin, end])
    both = np.array(together, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


@dataclass(frozen=True)
class Trace:
    """The tables of a timeline (`results.columns.trace`), and its record."""

    tracks: pd.DataFrame
    intervals: pd.DataFrame
    instants: pd.DataFrame
    samples: pd.DataFrame
    about: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""  # of its folder
    origin_ns: int | None = None  # its first moment, stacks included, where that is known

    @cached_property
    def members(self) -> list[str]:
        """The lead first."""
        lead = self.lead
        named = [*self.about.get("members", {}), *self.tracks["member"].astype("str")]
        return list(dict.fromkeys(filter(None, [lead, *named])))

    @property
    def lead(self) -> str:
        """The member that was traced for its loss; "" where the record does not have it."""
        return str(self.about.get("lead") or "")

    @cached_property
    def first_ns(self) -> int:
        """When the first event of the trace was: what viewers count from."""
        if self.origin_ns is not None:
            return self.origin_ns
        starts = (self.intervals["t0_ns"], *(table["t_ns"] for table in (self.instants, self.samples)))
        return min((int(each.min()) for each in starts if len(each)), default=0)

    def member_of(self, tracks: pd.Series) -> pd.Series:
        """The member of each of these tracks; "" where it belongs to none."""
        return tracks.map(self.of_track["member"].astype("str")).fillna("")

    @cached_property
    def families_there(self) -> frozenset[str]:
        """The families of which the trace has any event."""
        kinds = {*self.intervals["kind"].astype("str").unique(), *self.instants["kind"].astype("str").unique()}
        return frozenset(family for family, own in KINDS.items() if kinds & own)

    @cached_property
    def of_track(self) -> pd.DataFrame:
        """The tracks by their number."""
        return self.tracks.set_index("track")

    def cpus(self, member: str) -> list[int]:
        """The CPUs that a member may use; empty where nothing shows them."""
        written = dict(self.about.get("members", {}).get(member) or {}).get("cpus")
        if isinstance(written, Sequence) and not isinstance(written, str):
            return [int(cpu) for cpu in written]
        if isinstance(written, str) and written:
            return cpus.parse(written, member)
        known = cpus_of(member)
        where = member.rpartition("@")[2].partition("#")[0].replace(".", ",")
        return cpus.parse(where, member) if known == known else []


@dataclass(frozen=True)
class SeenScene:
    """What was recorded of one scene; times are clipped to the stretches in which no event was lost."""

    trace: Trace
    scene: str
    recordings: Spans
    spans: Spans  # of the recordings, in which perf recorded all of its events: what times, counts and rates are of
    states: pd.DataFrame  # t0_ns, t1_ns, track, name, detail, cpu, member; whole (not cut), begins (in the span)
    calls: pd.DataFrame  # the same of system calls and interrupts, with their kind
    instants: pd.DataFrame  # with their member
    shown: frozenset[str]  # members of which anything was recorded, lost or not

    @property
    def seconds(self) -> float:
        """How long it was seen: recorded, and no event lost."""
        return lasting(self.spans)

    @property
    def families(self) -> frozenset[str]:
        """The kinds of events that were recorded of this scene."""
        return recorded_families(self.trace.about, self.scene, self.trace.families_there)

    @property
    def members(self) -> list[str]:
        """The members that the scene runs, and that were seen."""
        there = {*self.states["member"], *self.calls["member"], *self.shown}
        running = [self.trace.lead] if self.kind in ALONE and self.trace.lead else self.trace.members
        return [each for each in running if each in there]

    @property
    def kind(self) -> str:
        """alone, corun …"""
        return self.scene.partition(":")[0].partition("@")[0]

    def names(self, member: str) -> dict[str, object]:
        """The cells that show whom a row is about."""
        about = self.trace.about
        partition = str(about.get("partition") or "")
        is_under = partition and self.scene.endswith(f"@{partition}")
        return {
            "study": str(about.get("study") or ""),
            "trace": self.trace.name,
            "scene": self.scene,
            "kind": self.kind,
            "mix": str(about.get("mix") or ""),
            "partition": partition if is_under else UNMANAGED,
            "member": member,
            "role": LEAD if member == self.trace.lead else ANTAGONIST,
            "platform": str(about.get("platform") or "measured"),
        }


def seen_scenes(trace: Trace) -> Iterator[SeenScene]:
    """Each scene of which something was recorded, in the order in which they came."""
    states = _of_kind(trace, "state")
    calls = _of_kind(trace, "syscall", "irq", "softirq")
    instants = _with_member(trace, trace.instants)
    for scene, recordings in _recordings(trace).items():
        spans = _whole(trace, recordings)
        parts = _clipped(states, spans), _clipped(calls, spans), _inside(instants, spans)
        shown = frozenset(_inside(instants, recordings)["member"])
        yield SeenScene(trace, scene, recordings, spans, *parts, shown)


def lasting(spans: Spans) -> float:
    """Seconds."""
    return float((spans[1] - spans[0]).sum()) / 1e9


def _whole(trace: Trace, recordings: Spans) -> Spans:
    """What of the recordings lies in whole stretches, as perf notes them; the recordings where it notes none."""
    whole = trace.intervals[trace.intervals["kind"] == "whole"]
    if whole.empty:
        return recordings
    begins, ends = (whole[edge].to_numpy(np.int64) for edge in ("t0_ns", "t1_ns"))
    both = [
        (max(int(first), begin), min(int(last), end))
        for first, last in zip(*recordings, strict=True)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]  # two that touch stay two: between them something was lost
    kept = np.array(sorted({each for each in both if each[1] > each[0]}), np.int64).reshape(-1, 2)
    return kept[:, 0], kept[:, 1]


def _recordings(trace: Trace) -> dict[str, Spans]:
    """When events were recorded, by scene: as the launch noted it, or else each scene, or else the whole trace."""
    scenes = trace.intervals[trace.intervals["kind"] == "scene"]
    recorded = trace.intervals[trace.intervals["kind"] == "recording"]
    spans: dict[str, list[tuple[int, int]]] = {}
    for begin, end, name in (recorded if len(recorded) else scenes)[["t0_ns", "t1_ns", "name"]].itertuples(index=False):
        around = scenes[(scenes["t0_ns"] <= (begin + end) // 2) & (scenes["t1_ns"] >= (begin + end) // 2)]
        scene = str(around["name"].iloc[0]) if len(around) else str(name)
        spans.setdefault(scene, []).append((int(begin), int(end)))
    if not spans and len(trace.intervals):
        spans[""] = [(int(trace.intervals["t0_ns"].min()), int(trace.intervals["t1_ns"].max()))]
    return {scene: merged(*zip(*each, strict=True)) for scene, each in spans.items()}


def _of_kind(trace: Trace, *kinds: str) -> pd.DataFrame:
    return _with_member(trace, trace.intervals[trace.intervals["kind"].isin(kinds)])


def _with_member(trace: Trace, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the member, the kind and the name of their track."""
    of_track = trace.of_track
    where = of_track.index.get_indexer(pd.Index(rows["track"]))
    cells = {name: pd.Categorical(of_track[column].astype("str")) for name, column in COLUMNS_OF_TRACKS.items()}
    words = {name: each.take(where, allow_fill=True) for name, each in cells.items()}
    return rows.assign(**words, cpu_of_track=of_track["cpu"].take(where).to_numpy(dtype=float, na_value=NAN))


def _clipped(rows: pd.DataFrame, spans: Spans) -> pd.DataFrame:
    """What of the intervals lies in the spans; `whole` are those that are not cut, `begins` those that begin inside."""
    parts = [rows.iloc[:0].assign(whole=False, begins=False)]
    t0, t1 = rows["t0_ns"].to_numpy(), rows["t1_ns"].to_numpy()
    for begin, end in zip(*spans, strict=True):
        inside = (t1 > begin) & (t0 < end)
        begins = t0[inside] > begin
        parts.append(
            rows[inside].assign(
                t0_ns=np.maximum(t0[inside], begin),
                t1_ns=np.minimum(t1[inside], end),
                whole=begins & (t1[inside] < end),
                begins=begins,
            )
        )
    return pd.concat(parts, ignore_index=True) if len(parts) > 2 else parts[-1].reset_index(drop=True)


def _inside(rows: pd.DataFrame, spans: Spans) -> pd.DataFrame:
    """The instants in the spans; the last moment of a span belongs to it."""
    at = rows["t_ns"].to_numpy()
    inside = np.zeros(len(rows), bool)
    for begin, end in zip(*spans, strict=True):
        inside |= (at >= begin) & (at <= end)
    return rows[inside]
