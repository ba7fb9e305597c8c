"""Joins the phases that members reported to the windows and heartbeats they belong to, by CLOCK_MONOTONIC."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from castmates.protocols import Count, Status
from castmates.runner.processes.launch import Running
from castmates.runner.processes.member_log import PhaseLog, RangeLog
from castmates.runner.rounds.slices import Progress, Slice, topdown_counts
from castmates.runner.rounds.window import Window
from castmates.workloads.phase_file import OTHER_THREADS
from castmates.workloads.phase_records import Phase, Range

Row = dict[str, Any]  # of the table of steps: begin_ns and, for each phase, <phase>_s


GROUP = "phases"
SERIES = "counters"  # whose samples they are
FOR_EVER = 2**63  # later than any time
FEWEST_READINGS = 3  # of a series that lie in phases of one name, or their rate is not known


@dataclass(frozen=True)
class Reported:
    """The phases of one member, in the order in which they ended."""

    phases: Sequence[Phase]
    ends: Sequence[int]
    gaps: Sequence[tuple[int, int]]  # times between which records were lost
    counters: Mapping[str, Status]  # that it was to read, each with how it fared
    lacks: Mapping[str, str]  # what the numbers of some of them lack

    @classmethod
    def of(cls, log: PhaseLog) -> "Reported":
        """Return everything that a log holds."""
        phases: list[Phase] = []
        gaps = []
        for part, torn in log.parts():
            if torn and part:
                gaps.append((max((phase.end_ns for phase in phases), default=0), part[0].end_ns))
            phases += part
        if log.trouble:  # what came after the last that was read is not known
            gaps.append((max((phase.end_ns for phase in phases), default=0), FOR_EVER))
        phases.sort(key=lambda phase: phase.end_ns)
        return cls(phases, [phase.end_ns for phase in phases], gaps, log.counters, log.lacks)

    def between(self, after_ns: int, until_ns: int) -> Sequence[Phase]:
        """Return those that ended after one time and not after another."""
        return self.phases[bisect_right(self.ends, after_ns) : bisect_right(self.ends, until_ns)]

    def inside(self, open_ns: int, close_ns: int) -> list[Phase]:
        """Return those that lie wholly between two times."""
        return [phase for phase in self.between(open_ns, close_ns) if phase.begin_ns >= open_ns]

    def whole(self, begin_ns: int, end_ns: int) -> bool:
        """Check whether nothing is missing between two times."""
        return not any(begin < end_ns and begin_ns < end for begin, end in self.gaps)


@dataclass(frozen=True)
class Joined:
    """What phases add to the tables of a launch."""

    steps: Mapping[tuple[int, str], list[Row]] = field(
        default_factory=dict
    )  # by window and member, a row per heartbeat
    counts: Mapping[int, list[Count]] = field(default_factory=dict)  # by window
    columns: Mapping[str, str] = field(default_factory=dict)  # of the table of steps, behind the fixed ones


def join(cast: Sequence[Running], windows: Sequence[Window]) -> Joined:
    """Join what every member of the cast reported to the launch's windows, which count from 1."""
    reported = {process.name: Reported.of(process.phases) for process in cast if process.phases is not None}
    steps: dict[tuple[int, str], list[Row]] = {}
    counts: dict[int, list[Count]] = {}
    for number, window in enumerate(windows, start=1):
        for name in window.scene.active:
            if name in reported:
                steps[number, name] = [
                    row for each in window.slices_of(name) for row in steps_phases(reported[name], each.progress(name))
                ]
                counts.setdefault(number, []).extend(_counts(name, reported[name], window))
    seen = {phase.name for member in reported.values() for phase in member.phases}
    # In the order of a step: a member may have been frozen in the middle of the first step that was read.
    begun = [name for process in cast if process.phases is not None for name in process.phases.names]
    names = dict.fromkeys(name for name in begun if name in seen)
    return Joined(steps, counts, {f"{name}_s": "float64" for name in names})


def steps_phases(reported: Reported, progress: Progress) -> Iterator[Row]:
    """For each heartbeat inside a slice, the phases of the step (or steps) that ended with it.

    A phase belongs to the heartbeat that comes after its end. The row is empty where the begin of the step is
    not known, records were lost in it, or it has no phase; a phase that only other steps have took 0 s. What of a phase
    lies before the first of these heartbeats may be time for which the member was frozen, and is left out.
    """
    names = list(dict.fromkeys(phase.name for phase in reported.phases))
    before = since = progress.before_ns
    for t_ns, _ in progress.records:
        within = reported.between(before, t_ns) if before is not None and reported.whole(before, t_ns) else ()
        outermost = [phase.begin_ns for phase in within if "/" not in phase.name]
        before = t_ns
        since = t_ns if since is None else since
        if not outermost:
            yield {}
            continue
        lengths = dict.fromkeys(names, 0)
        for phase in within:
            lengths[phase.name] += phase.end_ns - max(phase.begin_ns, since)
        yield {"begin_ns": max(min(outermost), since)} | {f"{name}_s": length / 1e9 for name, length in lengths.items()}


def _counts(member: str, reported: Reported, window: Window) -> Iterator[Count]:
    """Yield what was counted in each phase of a member inside a window."""
    by_name: dict[str, list[Phase]] = {}
    slices = window.slices_of(member)
    for phase in (phase for each in slices for phase in reported.inside(each.open_ns, each.close_ns)):
        if not phase.name.startswith(f"{OTHER_THREADS}/"):  # counts are the whole process's: not theirs alone
            by_name.setdefault(phase.name, []).append(phase)
    whole = all(reported.whole(each.open_ns, each.close_ns) for each in slices)
    intervals = _series(member, window.watched) if window.watched.counted else {}
    for name, phases in by_name.items():
        stays = _Stays(member, name, phases)
        for place in range(len(reported.counters)):
            yield _read_inside(stays, place, reported, whole)
        for (event, scope), series in intervals.items():
            if (count := _by_time(stays, event, scope, series)) is not None:
                yield count
    if window.watched.counted:
        spans = {name: [(phase.begin_ns, phase.end_ns) for phase in phases] for name, phases in by_name.items()}
        yield from topdown_counts(member, spans, window.watched)


@dataclass(frozen=True)
class _Stays:
    """Every time that a member was in the phase of this name inside a window."""

    member: str
    phase: str
    phases: Sequence[Phase]

    @property
    def seconds(self) -> float:
        """How long they were together."""
        return sum(phase.end_ns - phase.begin_ns for phase in self.phases) / 1e9

    def count(self, event: str, value: float | None, status: Status, source: str, scope: str, note: str) -> Count:
        """Return what was counted in them, as a row of the table."""
        return Count(
            self.member,
            event,
            value,
            status,
            source,
            group=GROUP,
            scope=scope,
            phase=self.phase,
            note=note,
            seconds=self.seconds,
        )


def _read_inside(stays: _Stays, place: int, reported: Reported, whole: bool) -> Count:
    """Return what the process itself counted at the edges of the phase, with the counter at this place of its list."""
    event, status = list(reported.counters.items())[place]
    counts = [phase.counts[place] for phase in stays.phases]
    known = [count for count in counts if count is not None]
    note = f"in {len(counts)} phases, {stays.seconds:.3f} s"
    if status == "counted" and whole and len(known) == len(counts):
        lack = reported.lacks.get(event, "")
        note = f"{note}; {lack}" if lack else note
        return stays.count(event, float(sum(known)), "counted", "in-process", "process", note)
    if status == "not supported":
        return stays.count(event, None, "not supported", "in-process", "process", note)
    why = "records of phases were lost" if not whole else "not at every edge"
    why = why if status == "counted" else "the process could not count it, or gave it up as others shared it"
    return stays.count(event, None, "not counted", "in-process", "process", f"{note}; {why}")


Series = list[tuple[int, int, float]]  # from, to, count


def _series(member: str, watched: Slice) -> dict[tuple[str, str], Series]:
    """Return the series of every event that was counted for a member, which add up from the opening edge, as intervals.

    By event and scope, which is the count's; only watched slices have series.
    """
    counted = {
        sample.name: sample.scope
        for sample in watched.counts
        if sample.subject == member and sample.kind == "event" and not sample.phase
    }
    intervals: dict[tuple[str, str], Series] = {}
    last: dict[str, tuple[int, float]] = {}
    own = [sample for sample in watched.samples if (sample.source, sample.subject) == (SERIES, member)]
    for sample in sorted(own, key=lambda each: each.t_ns):
        if sample.metric not in counted or sample.value is None:
            continue
        begin, so_far = last.get(sample.metric, (sample.t_ns, sample.value))
        if sample.t_ns > begin and sample.value >= so_far:
            interval = (begin, sample.t_ns, sample.value - so_far)
            intervals.setdefault((sample.metric, counted[sample.metric]), []).append(interval)
        last[sample.metric] = sample.t_ns, sample.value
    return intervals


def _by_time(stays: _Stays, event: str, scope: str, series: Series) -> Count | None:
    """Return the rate in those intervals that lie wholly in the phase, times its length; None where too few do."""
    begins = [phase.begin_ns for phase in stays.phases]
    total, covered, readings = 0.0, 0, 0
    for begin, end, value in series:
        at = bisect_right(begins, begin) - 1
        if at >= 0 and end <= stays.phases[at].end_ns:
            total, covered, readings = total + value, covered + end - begin, readings + 1
    if readings < FEWEST_READINGS:
        return None
    part = covered / 1e9 / stays.seconds
    note = f"from {readings} intervals wholly in it, which are {part:.0%} of its {stays.seconds:.3f} s"
    return stays.count(event, total * stays.seconds * 1e9 / covered, "scaled", "by time", scope, note)


# Everything that members annotated, one by one, as rows of a table: each with the slice that it ended in.

LONG = ("range", "epoch")  # what may last longer than a window, and is kept where it ends in none
Numbered = tuple[Slice, int]  # a slice, and the number of its window


def ranges_are_kept(cast: Sequence[Running]) -> bool:
    """Whether some member was to report ranges."""
    return any(isinstance(process.phases, RangeLog) for process in cast)


def range_rows(cast: Sequence[Running], windows: Sequence[Window]) -> Iterator[Row]:
    """Yield a row for each range of each member, as far as they fit its limit; how many do not is noted in its log."""
    for process in cast:
        if not isinstance(log := process.phases, RangeLog):
            continue
        numbered = [(window, number) for number, window in enumerate(windows, start=1)]
        own = [(window, number) for window, number in numbered if process.name in window.scene.active]
        slices = [(each, number) for window, number in own for each in window.all_slices]
        slices.sort(key=lambda one: one[0].switch_ns)
        placed = (_placed(one, slices) | {"member": process.name} for one in log.ranges())
        rows = [row for row in placed if row["window"] is not None or row["type"] in LONG]
        kept = share_out([row["window"] for row in rows], log.most)
        log.left_out = len(rows) - sum(kept)
        yield from sorted(
            (row for row, keep in zip(rows, kept, strict=True) if keep), key=lambda row: int(row["begin_ns"])
        )


def share_out(windows: Sequence[object], most: int) -> list[bool]:
    """Which of these rows are kept, so many at most: the first of each window, an equal number of each if it has them.

    Without that, the later windows of a launch would have nothing.
    """
    counts: dict[object, int] = {}
    for window in windows:
        counts[window] = counts.get(window, 0) + 1
    quotas: dict[object, int] = {}
    left = most
    for place, (window, count) in enumerate(sorted(counts.items(), key=lambda one: one[1])):
        quotas[window] = min(count, left // (len(counts) - place))
        left -= quotas[window]
    kept = []
    for window in windows:
        quotas[window] -= 1
        kept.append(quotas[window] >= 0)
    return kept


def columns_of(one: Range) -> Row:
    """What every table has of a range."""
    return {
        "type": one.type,
        "name": one.name,
        "path": one.path,
        "depth": one.depth,
        "domain": one.domain,
        "thread": one.thread,
        "end_thread": one.end_thread,
        "begin_ns": one.begin_ns,
        "end_ns": one.end_ns,
        "step": one.step,
        "epoch": one.epoch,
        "payload": one.payload,
    }


def _placed(one: Range, slices: Sequence[Numbered]) -> Row:
    """A range with the slice that it ended in, from the switch of its scene to its close."""
    place = bisect_left(slices, one.end_ns, key=lambda each: each[0].switch_ns) - 1
    row: Row = columns_of(one) | {"window": None, "slice": None, "scene": "", "whole": False}
    if place < 0 or one.end_ns > slices[place][0].close_ns:
        return row
    found, window = slices[place]
    whole = one.begin_ns >= found.switch_ns
    return row | {"window": window, "slice": found.number, "scene": found.scene.name, "whole": whole}
