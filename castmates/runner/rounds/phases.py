"""Joins the phases that members reported to the windows and heartbeats they belong to, by CLOCK_MONOTONIC."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from castmates.protocols import Count, Status
from castmates.runner.processes.launch import Running
from castmates.runner.processes.phase_log import PhaseLog
from castmates.runner.rounds.topdown_phases import topdown_counts
from castmates.runner.rounds.window import Progress, Window
from castmates.workloads.phase_file import OTHER_THREADS, Phase

Row = dict[str, Any]  # of the table of steps: begin_ns and, for each phase, <phase>_s
GROUP = "phases"
SERIES = "counters"  # whose samples they are
FOR_EVER = 2**63  # later than any time
FEWEST_READINGS = 3  # of a series that lie in phases of one name, for their rate to be told


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
        """Everything that a log holds."""
        found: list[Phase] = []
        gaps = []
        for part, torn in log.parts():
            if torn and part:
                gaps.append((max((one.end_ns for one in found), default=0), part[0].end_ns))
            found += part
        if log.trouble:  # what came after the last that was read is not known
            gaps.append((max((one.end_ns for one in found), default=0), FOR_EVER))
        found.sort(key=lambda one: one.end_ns)
        return cls(found, [one.end_ns for one in found], gaps, log.counters, log.lacks)

    def between(self, after_ns: int, until_ns: int) -> Sequence[Phase]:
        """Those that ended after one time and not after another."""
        return self.phases[bisect_right(self.ends, after_ns) : bisect_right(self.ends, until_ns)]

    def inside(self, open_ns: int, close_ns: int) -> list[Phase]:
        """Those that lie wholly between two times."""
        return [one for one in self.between(open_ns, close_ns) if one.begin_ns >= open_ns]

    def whole(self, begin_ns: int, end_ns: int) -> bool:
        """Whether nothing is missing between two times."""
        return not any(begin < end_ns and begin_ns < end for begin, end in self.gaps)


@dataclass(frozen=True)
class Joined:
    """What phases add to the tables of a block."""

    steps: Mapping[tuple[int, str], list[Row]] = field(
        default_factory=dict
    )  # by window and member, a row per heartbeat
    counts: Mapping[int, list[Count]] = field(default_factory=dict)  # by window
    columns: Mapping[str, str] = field(default_factory=dict)  # of the table of steps, behind the fixed ones


def join(cast: Sequence[Running], windows: Sequence[Window]) -> Joined:
    """Join what every member of the cast reported to the block's windows, which count from 1."""
    reported = {one.name: Reported.of(one.phases) for one in cast if one.phases is not None}
    steps: dict[tuple[int, str], list[Row]] = {}
    counts: dict[int, list[Count]] = {}
    for number, window in enumerate(windows, start=1):
        for name in window.scene.active:
            if name in reported:
                steps[number, name] = list(steps_phases(reported[name], window.progress[name]))
                counts.setdefault(number, []).extend(_counts(name, reported[name], window))
    names = dict.fromkeys(one.name for member in reported.values() for one in member.phases)
    return Joined(steps, counts, {f"{name}_s": "float64" for name in names})


def steps_phases(reported: Reported, progress: Progress) -> Iterator[Row]:
    """For each heartbeat inside a window, the phases of the step (or steps) that ended with it.

    A phase belongs to the heartbeat that comes after its end. Nothing is said of a step whose begin is not known, of
    one in which records were lost, and of one without any phase; a phase that other steps have took 0 s. What of a
    phase lies before the first of these heartbeats may be time for which the member was frozen, and is left out.
    """
    names = list(dict.fromkeys(one.name for one in reported.phases))
    before = since = progress.before_ns
    for t_ns, _ in progress.records:
        found = reported.between(before, t_ns) if before is not None and reported.whole(before, t_ns) else ()
        outermost = [one.begin_ns for one in found if "/" not in one.name]
        before = t_ns
        since = t_ns if since is None else since
        if not outermost:
            yield {}
            continue
        lengths = dict.fromkeys(names, 0)
        for one in found:
            lengths[one.name] += one.end_ns - max(one.begin_ns, since)
        yield {"begin_ns": max(min(outermost), since)} | {f"{name}_s": length / 1e9 for name, length in lengths.items()}


def _counts(member: str, reported: Reported, window: Window) -> Iterator[Count]:
    """What was counted in each phase of a member inside a window."""
    by_name: dict[str, list[Phase]] = {}
    for one in reported.inside(window.open_ns, window.close_ns):
        if not one.name.startswith(f"{OTHER_THREADS}/"):  # counts are the whole process's: not theirs alone
            by_name.setdefault(one.name, []).append(one)
    whole = reported.whole(window.open_ns, window.close_ns)
    intervals = _series(member, window)
    for name, phases in by_name.items():
        for place, (event, status) in enumerate(reported.counters.items()):
            counts, lack = [one.counts[place] for one in phases], reported.lacks.get(event, "")
            yield _read_inside(member, event, status, name, phases, counts, whole, lack)
        for (event, scope), series in intervals.items():
            if (found := _by_time(member, event, scope, name, phases, series)) is not None:
                yield found
    spans = {name: [(one.begin_ns, one.end_ns) for one in phases] for name, phases in by_name.items()}
    yield from topdown_counts(member, spans, window)


def _read_inside(
    member: str,
    event: str,
    status: Status,
    phase: str,
    phases: Sequence[Phase],
    counts: Sequence[int | None],
    whole: bool,
    lack: str,
) -> Count:
    """What the process itself counted at the edges of the phase."""
    known = [count for count in counts if count is not None]
    note = f"in {len(phases)} phases, {_seconds(phases):.3f} s"
    if status != "counted" or len(known) < len(counts) or not whole:
        why = "records of phases were lost" if not whole else "not at every edge"
        why = why if status == "counted" else "the process could not count it, or gave it up as others shared it"
        refused: Status = "not supported" if status == "not supported" else "not counted"
        return Count(
            member, event, None, refused, "in-process", group=GROUP, scope="process", phase=phase,
            note=f"{note}; {why}" if refused == "not counted" else note,
        )  # fmt: skip
    return Count(
        member, event, float(sum(known)), "counted", "in-process", group=GROUP, scope="process", phase=phase,
        note=f"{note}; {lack}" if lack else note,
    )  # fmt: skip


Series = list[tuple[int, int, float]]  # from, to, count


def _series(member: str, window: Window) -> dict[tuple[str, str], Series]:
    """The series of every event that was counted for a member, which add up from the opening edge, as intervals.

    By event and scope, which is the window's count's.
    """
    counted = {
        one.name: one.scope for one in window.counts if one.subject == member and one.kind == "event" and not one.phase
    }
    found: dict[tuple[str, str], Series] = {}
    last: dict[str, tuple[int, float]] = {}
    for one in sorted(window.samples, key=lambda sample: sample.t_ns):
        if one.subject == member and one.metric in counted and one.source == SERIES and one.value is not None:
            begin, so_far = last.get(one.metric, (one.t_ns, one.value))
            if one.t_ns > begin and one.value >= so_far:
                found.setdefault((one.metric, counted[one.metric]), []).append((begin, one.t_ns, one.value - so_far))
            last[one.metric] = one.t_ns, one.value
    return found


def _by_time(member: str, event: str, scope: str, phase: str, phases: Sequence[Phase], series: Series) -> Count | None:
    """The rate in those intervals that lie wholly in the phase, times its length; None where too few do."""
    begins = [one.begin_ns for one in phases]
    count, covered, readings = 0.0, 0, 0
    for begin, end, value in series:
        at = bisect_right(begins, begin) - 1
        if at >= 0 and end <= phases[at].end_ns:
            count, covered, readings = count + value, covered + end - begin, readings + 1
    if readings < FEWEST_READINGS:
        return None
    seconds = _seconds(phases)
    return Count(
        member, event, count * seconds * 1e9 / covered, "scaled", "by time", group=GROUP, scope=scope, phase=phase,
        note=f"from {readings} intervals wholly in it, which are {covered / 1e9 / seconds:.0%} of its {seconds:.3f} s",
    )  # fmt: skip


def _seconds(phases: Sequence[Phase]) -> float:
    return sum(one.end_ns - one.begin_ns for one in phases) / 1e9
