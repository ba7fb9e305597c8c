"""Which sampled stacks belong to a member in one kind of scene, and how many seconds and steps they were sampled in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates.errors import CastmatesError
from castmates.timeline.flames.reading import CUT
from castmates.timeline.model import Timeline
from castmates.workloads.environments import KEEPERS

COUNTED = {"cpu-clock": "task-clock", "cycles": "cycles"}  # what is sampled -> the number that counts all of it
UNITS = {"CPUs": 1.0, "/s": 1e-9}  # of such a number -> its share of a sample's weight in each nanosecond
IN_USER_SPACE = ":u"  # ends the name of an event on perf's command line


def is_run_again(about: Mapping[str, Any], member: str) -> bool:
    """Whether a member is a command that is started anew whenever it has ended, by the record of the trace."""
    command = ((about.get("members") or {}).get(member) or {}).get("command") or [""]
    return Path(str(command[0])).name == KEEPERS["runs"][0]


def unsampled(
    timeline: Timeline, member: str, spans: Sequence[tuple[int, int]], event: str, sampled: float
) -> float | None:
    """The share of a member's CPU time in these spans that no sample stands for; None where that was not counted.

    perf follows the processes that it finds as it starts, and their later children. A run that is born meanwhile is not
    sampled, and one that is shorter than the time between two samples may have none.
    """
    if _is_user_space_alone(timeline):
        return None
    tracks, every = timeline.tracks, timeline.samples
    own = tracks.loc[(tracks["member"] == member) & (tracks["kind"] == "member"), "track"]
    counted = every[every["track"].isin(own) & (every["name"] == COUNTED[event]) & every["unit"].isin(UNITS)]
    if counted.empty:
        return None
    times = counted["t_ns"].to_numpy(np.int64)
    rates = counted["value"].to_numpy(float) * counted["unit"].astype(str).map(UNITS).to_numpy(float)
    parts = [_over(span, times, rates) for span in spans]
    whole = sum(part for part in parts if part is not None)
    if None in parts or whole <= 0:
        return None
    return max(0.0, 1.0 - sampled / whole)


def _is_user_space_alone(timeline: Timeline) -> bool:
    """Whether samples leave the kernel out, which the clocks do not."""
    commands = [(scene.get("commands") or {}).get("stacks") or () for scene in timeline.about.get("scenes") or ()]
    return any(str(word).endswith(IN_USER_SPACE) for command in commands for word in command)


def _over(span: tuple[int, int], times: np.ndarray, rates: np.ndarray) -> float | None:
    """What a rate adds up to over a span; each reading is the mean since the one before."""
    begin, end = span
    edges = np.clip(np.concatenate([[begin], times]), begin, end)
    lengths = np.diff(edges)
    covered = lengths.sum()
    return float((lengths * rates).sum() / covered * (end - begin)) if covered > 0 else None


TIMED = ("cycles", "cpu-clock")  # what stacks are sampled by; other events are sources of latencies
NO_OPERATION = "[no operation]"  # stands below stacks of threads that were in no traced operation
ALONE, CORUN = "alone", "corun"
EDGE = 20_000_000  # ns before the first sample and after the last one that count as sampled
WHOLE = 0.98  # the share of a stretch from which on all of it counts as sampled


@dataclass(frozen=True)
class Stretch:
    """A span of the trace in which stacks were sampled in one scene."""

    scene: str
    t0_ns: int
    t1_ns: int
    steps: float  # that the member made in it


@dataclass(frozen=True)
class Profile:
    """The sampled stacks of a member in one kind of scene."""

    member: str
    scene: str
    event: str
    stretches: tuple[Stretch, ...]
    # A row per stack and stretch: stack, stretch, samples, weight.
    stacks: pd.DataFrame
    by_operation: bool = False  # each stack begins with the operation that its thread was in
    lost: int = 0  # stacks of the whole trace
    why: str = ""  # what went wrong as stacks were read
    runs_again: bool = False  # the member is a command that is started anew whenever it has ended
    unsampled: float | None = None  # of such a member: the share of its CPU time that no sample stands for, if known

    @property
    def samples(self) -> int:
        """How many there are."""
        return int(self.stacks["samples"].sum())

    @property
    def cut(self) -> float:
        """The share of stacks whose outermost frames could not be found."""
        frames = self.stacks["stack"].str.split(";", n=2).str[1 if self.by_operation else 0]
        return float(self.stacks.loc[frames == CUT, "samples"].sum() / max(self.samples, 1))

    @property
    def seconds(self) -> float:
        """How long stacks were sampled."""
        return sum(each.t1_ns - each.t0_ns for each in self.stretches) / 1e9

    @property
    def steps(self) -> float:
        """How many steps the member made meanwhile."""
        return sum(each.steps for each in self.stretches)

    def exposure(self, per: str) -> float:
        """By what weights and samples are divided: steps or seconds."""
        return self.steps if per == "step" else self.seconds


def scene_kind(scene: str) -> str:
    """Whether the lead runs alone or beside others in a scene."""
    return CORUN if scene.startswith("corun:") else ALONE if scene.split("@")[0].startswith(ALONE) else scene


def scenes(timeline: Timeline) -> list[str]:
    """The scenes of a trace, in the order of their first span."""
    found = timeline.intervals[timeline.intervals["kind"] == "scene"]
    return list(dict.fromkeys(found["name"].astype(str)))


def stretches(timeline: Timeline, member: str, scene: str, profiled: bool = False) -> list[Stretch]:
    """The spans of a scene (its name, or `alone` or `corun`) in which events, or operations too, were recorded."""
    intervals = timeline.intervals
    spans = intervals[intervals["kind"] == "scene"]
    kept = intervals["kind"] == "recording"
    if profiled and (on := (intervals["kind"] == "profiled") & intervals["track"].isin(_own(timeline, member))).any():
        kept = on
    recorded = intervals.loc[kept, ["t0_ns", "t1_ns"]].to_numpy()
    beats = _beats(timeline, member)
    found = []
    for name, begin, end in zip(
        spans["name"].astype(str), spans["t0_ns"].tolist(), spans["t1_ns"].tolist(), strict=True
    ):
        if scene not in (name, scene_kind(name)):
            continue
        for t0, t1 in _common(begin, end, recorded):
            found.append(Stretch(name, t0, t1, _steps(beats, t0, t1)))
    return found


def _common(t0: int, t1: int, recorded: np.ndarray) -> list[tuple[int, int]]:
    """What of a span was recorded; all of it where the trace does not have what was."""
    if not len(recorded):
        return [(t0, t1)]
    parts = ((max(t0, int(begin)), min(t1, int(end))) for begin, end in recorded)
    return [(begin, end) for begin, end in parts if begin < end]


def _beats(timeline: Timeline, member: str) -> tuple[np.ndarray, np.ndarray]:
    """When the member's counts of steps were reported, and the counts."""
    instants = timeline.instants
    found = instants[(instants["kind"] == "heartbeat") & instants["track"].isin(_own(timeline, member))]
    return found["t_ns"].to_numpy(np.float64), found["value"].to_numpy(np.float64)


def _own(timeline: Timeline, member: str) -> pd.Series:
    """The member's track, without those of its threads."""
    tracks = timeline.tracks
    return tracks.loc[(tracks["member"] == member) & (tracks["kind"] == "member"), "track"]


def _steps(beats: tuple[np.ndarray, np.ndarray], t0: int, t1: int) -> float:
    """Steps between two moments, whole ones and parts of the first and last one."""
    times, counts = beats
    if len(times) < 2:
        return 0.0
    begin, end = np.interp([t0, t1], times, counts)
    return float(end - begin)


def profile(
    timeline: Timeline, member: str, scene: str, thread: str | None = None, by_operation: bool = False
) -> Profile:
    """The stacks of a member's threads in a scene; with operations, each begins with the one that its thread was in."""
    where = stretches(timeline, member, scene, profiled=by_operation)
    if not where:
        raise CastmatesError(
            f"the trace has no scene '{scene}'; it has {', '.join(scenes(timeline)) or 'none'} (--scene)."
        )
    chosen = timeline.stacks["track"].isin(_threads(timeline, member, thread)) & timeline.stacks["event"].isin(TIMED)
    own = timeline.stacks[chosen]
    if own.empty:
        who = f"thread {thread} of {member}" if thread else member
        raise CastmatesError(f"the trace has no sampled stacks of {who}; {_why_none(timeline)}.")
    event = next(each for each in TIMED if (own["event"] == each).any())
    own = own[own["event"] == event]
    where = _sampled(timeline, member, where)
    table = _counted(own, where, operations_at(timeline, own) if by_operation else None)
    source = _source(timeline)
    lost, why = int(str(source.get("lost") or 0)), str(source.get("reason") or "")
    made = Profile(member, scene, event, tuple(where), table, by_operation, lost, why)
    if thread is not None or not is_run_again(timeline.about, member):
        return made
    spans = [(each.t0_ns, each.t1_ns) for each in where]
    lacking = unsampled(timeline, member, spans, event, float(table["weight"].sum()))
    return replace(made, runs_again=True, unsampled=lacking)


def _counted(own: pd.DataFrame, where: Sequence[Stretch], operations: np.ndarray | None) -> pd.DataFrame:
    """A row per stack and stretch; stacks are counted by their numbers, because their texts are long."""
    stacks = own["stack"].astype("category").cat
    names, first = list(stacks.categories), stacks.codes.to_numpy(np.int64)
    below: Sequence[str] | np.ndarray = [""]
    if operations is not None:
        below, under = np.unique(operations, return_inverse=True)
        first = under * len(names) + first
    times, weights = own["t_ns"].to_numpy(), own["weight"].to_numpy()
    parts = []
    for place, each in enumerate(where):
        inside = (times >= each.t0_ns) & (times < each.t1_ns)
        numbers, back, samples = np.unique(first[inside], return_inverse=True, return_counts=True)
        summed = np.bincount(back, weights[inside], minlength=len(numbers))
        pairs = (divmod(int(number), len(names)) for number in numbers)
        texts = [";".join(filter(None, (below[one], names[other]))) for one, other in pairs]
        parts.append(pd.DataFrame({"stack": texts, "stretch": place, "samples": samples, "weight": summed}))
    empty = pd.DataFrame({"stack": pd.Series([], dtype="str"), "stretch": [], "samples": [], "weight": []})
    return pd.concat(parts, ignore_index=True) if parts else empty


def _sampled(timeline: Timeline, member: str, where: Sequence[Stretch]) -> list[Stretch]:
    """The parts of stretches in which stacks were sampled: perf may begin later, or stop at its largest file."""
    stacks = timeline.stacks
    times = stacks.loc[stacks["event"].isin(TIMED), "t_ns"].to_numpy()  # in order
    beats = _beats(timeline, member)
    found = []
    for each in where:
        begin, end = np.searchsorted(times, [each.t0_ns, each.t1_ns])
        if begin == end:
            continue
        t0, t1 = max(each.t0_ns, int(times[begin]) - EDGE), min(each.t1_ns, int(times[end - 1]) + EDGE)
        share = (t1 - t0) / (each.t1_ns - each.t0_ns)
        found.append(each if share > WHOLE else replace(each, t0_ns=t0, t1_ns=t1, steps=_steps(beats, t0, t1)))
    return found


def _threads(timeline: Timeline, member: str, thread: str | None) -> list[int]:
    """The tracks of a member's threads; of one, where it is named by its number or its name."""
    tracks = timeline.tracks
    own = tracks[(tracks["member"] == member) & (tracks["kind"] == "thread")]
    if own.empty:
        there = sorted(set(tracks["member"].astype(str)) - {""})
        raise CastmatesError(f"the trace has no member '{member}'; it has {', '.join(there) or 'none'} (--member).")
    if thread is not None:
        names = own["name"].astype(str)
        own = own[(names == thread) | (own["tid"].astype(str) == thread)]
        if own.empty:
            listed = ", ".join(sorted(set(names)))
            raise CastmatesError(
                f"{member} has no thread '{thread}'; expected a number or a name: {listed} (--thread)."
            )
    return list(own["track"].to_numpy())


def _why_none(timeline: Timeline) -> str:
    """Why a trace has no stacks, as far as its record has it."""
    return str(_source(timeline).get("reason") or "").rstrip(".") or "trace the mix with stacks, or for longer"


def _source(timeline: Timeline) -> Mapping[str, object]:
    """What the record of the trace has of its stacks."""
    sources: Sequence[Mapping[str, object]] = timeline.about.get("sources") or ()
    return next((each for each in sources if each.get("name") == "stacks"), {})


def operations_at(timeline: Timeline, samples: pd.DataFrame) -> np.ndarray:
    """The innermost operation that the thread of each sample was in."""
    found = np.full(len(samples), NO_OPERATION, object)
    every = timeline.intervals
    operations = every[every["kind"] == "operation"]
    tracks, times = samples["track"].to_numpy(), samples["t_ns"].to_numpy()
    # On one track those of one depth do not overlap; deeper ones come later and win.
    for (track, _), group in operations.groupby(["track", "depth"], sort=True):
        at = np.flatnonzero(tracks == track)
        begins, ends = group["t0_ns"].to_numpy(), group["t1_ns"].to_numpy()
        place = np.searchsorted(begins, times[at], side="right") - 1
        inside = (place >= 0) & (times[at] < ends[np.maximum(place, 0)])
        names = group["name"].astype(str).to_numpy(object)
        found[at[inside]] = names[place[inside]]
    return np.array([str(each).replace(";", ":") for each in found], object)
