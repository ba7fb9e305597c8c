"""Puts what perf recorded of members into a timeline, and tells what is known of the recording as a whole."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.timeline.families import SCHEDULER, SYSCALLS
from castmates.errors import CastmatesError
from castmates.timeline.model import Making, Registry, categories, or_none
from castmates.timeline.perf import moments
from castmates.timeline.perf.groups import People, Scope, Span, Spans, spans_of
from castmates.timeline.perf.header import MONOTONIC
from castmates.timeline.perf.moments import HOW, calls_of, waits
from castmates.timeline.perf.reading import Recording, read
from castmates.timeline.perf.states import WAKE_UPS, States, states_of
from castmates.timeline.states import BLOCKED, NAMES, NONE, UNKNOWN, UNWOKEN, Array
from castmates.timeline.syscalls import syscall_name


def summary(recording: Recording, people: People, spans: Spans) -> dict[str, Any]:
    """The source's entry in the record of a trace."""
    counts = dict(recording.counts)
    states = {name.removeprefix("states "): counts.pop(name) for name in list(counts) if name.startswith("states ")}
    lost = max(int(recording.losses["count"].sum()), recording.lost_samples)
    return {
        "name": "perf",
        "events": {name: count for name, count in sorted(counts.items()) if count},
        "lost": lost,
        "bytes": recording.header.file.stat().st_size,
        "first_ns": recording.first_ns,
        "last_ns": recording.last_ns,
        "whole_s": float((spans.ends - spans.begins).sum()) / 1e9,
        "threads": len(people),
        "threads_of": dict(Counter(people.members)),
        "switches": states,
        "version": recording.header.about.get("perf", ""),
        "reason": "" if len(people) else "none of its threads belongs to a member",
    }


def missing(recording: Recording, people: People) -> dict[str, list[str]]:
    """What a reader of the timeline has to know that it lacks: sentences, and the families that each is about."""
    return dict(_missing(recording, people))


def _missing(recording: Recording, people: People) -> Iterator[tuple[str, list[str]]]:
    samples = recording.samples
    leaves = samples.get("sched:sched_switch")
    if leaves is None:
        yield (
            "The scheduler's own events were not recorded: who ran instead of a thread is not known, and a thread that "
            "is blocked counts as blocked until it runs again.",
            [SCHEDULER],
        )
    elif not any(len(samples[name]) for name in WAKE_UPS if name in samples):
        words = "Wake-ups were not recorded: a thread that is blocked counts as blocked until it runs again."
        yield words, [SCHEDULER]
    elif (recording.switches["other"] >= 0).any() and (people.number(leaves["tid"]) >= 0).all():
        yield (
            "Recorded by control groups: wake-ups of members by other programs are not in it, and a thread that they "
            "woke counts as blocked until it runs again.",
            [SCHEDULER],
        )
    if "raw_syscalls:sys_enter" not in samples:
        yield "System calls were not recorded: in what a blocked thread waits is not known.", [SCHEDULER, SYSCALLS]
    if (lost := int(recording.losses["count"].sum())) or recording.lost_samples:
        many = max(lost, recording.lost_samples)
        if lost:
            yield f"{many:,} events were lost: no state is shown for the times in which they were.", []
        else:
            yield f"{many:,} events were lost, and when is not known: states and sums around them may be wrong.", []
    counts = _counts(recording)
    if many := recording.counts["throttled"] - sum(recording.throttled[name] for name in counts):
        yield f"The kernel held events back {many:,} times, because there were too many.", []
    for name in counts:
        if many := recording.throttled[name]:
            yield f"The kernel held {name} back {many:,} times: its counts are too low; sample fewer of them.", [COUNTS]
        elif not len(samples[name]):
            yield f"No {name} was sampled: there were too few, or others had the processor's counters.", [COUNTS]


def _counts(recording: Recording) -> dict[str, int]:
    """Events that were sampled once in so many; one of several kinds of cores is in the file once for each."""
    return {event.name: event.period for event in recording.header.events if event.is_count}


SOURCE, COUNTS = "perf", "counts"
OTHERS = "others or idle"


def add_perf(
    making: Making,
    registry: Registry,
    file: Path,
    members: Mapping[int, str],
    span: Span | Sequence[Span] | None = None,
    ended_early: bool = False,
) -> dict[str, Any]:
    """Add all that a perf.data holds of members' processes and of what they started; return what is known of it.

    `span` is the time, or the times, in which all events were on; without it, a thread's states begin with its first
    event. With it, the stretches in which nothing was lost either become intervals of the kind `whole`. Where perf has
    `ended_early`, by itself, they end with what it surely read.

    Whom the others are is shown by name alone, where they ran instead of a member or woke one.
    """
    recording = read(file)
    if any(event.clock != MONOTONIC for event in recording.header.events):
        raise CastmatesError(
            f"{file}: recorded on another clock than the other sources; use perf record -k CLOCK_MONOTONIC"
        )
    asked = _spans(span)
    if ended_early:
        asked = [(begin, max(begin, min(end, recording.sure_ns))) for begin, end in asked]
    people, spans = People(recording, members), spans_of(recording, asked)
    if len(people) and len(spans.begins):
        _Adding(making, registry, Scope(recording, people, spans)).add()
    if asked:
        _whole(making, registry, spans)
    _lost(making, registry, recording)
    found = summary(recording, people, spans)
    return found | {"missing": missing(recording, people)}


def _spans(span: Span | Sequence[Span] | None) -> list[Span]:
    if not span:
        return []
    if isinstance(span[0], int):
        return [(int(span[0]), int(span[1]))]  # type: ignore[arg-type]
    return [(int(begin), int(end)) for begin, end in span]  # type: ignore[misc]


class _Adding:
    """One recording on its way into a timeline."""

    def __init__(self, making: Making, registry: Registry, scope: Scope) -> None:
        self._making, self._registry, self._scope = making, registry, scope
        self._people, self._tracks = scope.people, np.full(len(scope.people), NONE)

    def add(self) -> None:
        """Add everything."""
        calls, unpaired = calls_of(self._scope)
        states = states_of(self._scope)
        self._states(states, calls)
        self._calls(calls)
        self._wakeups(states)
        self._cpus(states)
        self._moments(states)
        counts = self._scope.recording.counts
        counts.update({f"states {name}": count for name, count in states.counts.items()})
        counts["system calls without a begin"] = unpaired

    def _track(self, threads: Array) -> Array:
        """The tracks of threads; one that does nothing in the recording gets none."""
        people, tasks = self._people, self._scope.recording.tasks
        for number in pd.unique(threads).tolist():
            if self._tracks[number] < 0:
                tid, pid, member = int(people.tids[number]), people.pid(number), people.member(number)
                self._registry.process(pid, tasks.name(pid), member)
                self._tracks[number] = self._registry.thread(tid, pid, people.name(number), member)
        return np.asarray(self._tracks[threads])

    def _states(self, states: States, calls: Array) -> None:
        """States, with what a blocked one waits in (its wake-up seen or not), and who ran instead of one that waits."""
        rows = states.rows
        instead = self._people.labels(moments.instead_of(self._scope, states))
        blocked = np.flatnonzero(np.isin(rows["state"], (BLOCKED, UNWOKEN)))
        inside = waits(self._scope, rows.take(blocked), calls)
        words = list(dict.fromkeys(["", *instead.categories, *inside.categories]))
        place = {word: code for code, word in enumerate(words)}
        detail = _again(instead, place)
        detail[blocked] = _again(inside, place)
        value = np.full(len(rows), np.nan)
        value[blocked] = rows["is_deep"][blocked]
        self._making.intervals(
            t0_ns=rows["t0"],
            t1_ns=rows["t1"],
            track=self._track(states.thread),
            kind="state",
            name=categories(np.minimum(rows["state"], UNKNOWN), NAMES),
            cpu=or_none(rows["cpu"]),
            value=value,
            detail=categories(detail, words),
            source=SOURCE,
        )

    def _calls(self, calls: Array) -> None:
        if not len(calls):
            return
        unique, code = np.unique(calls["number"], return_inverse=True)
        machine = self._scope.recording.header.about.get("arch", "")
        self._making.intervals(
            t0_ns=calls["t0"],
            t1_ns=calls["t1"],
            track=self._track(calls["group"] // self._scope.stretches),
            kind="syscall",
            name=categories(code, [syscall_name(number, machine) for number in unique.tolist()]),
            cpu=or_none(calls["cpu"]),
            value=calls["result"],
            detail=categories(calls["how"], HOW),
            source=SOURCE,
        )

    def _wakeups(self, states: States) -> None:
        """The wake-ups that ended a wait, each once, however often the kernel reported it."""
        place = np.unique(states.rows["wake"][states.rows["wake"] >= 0])
        if not len(place):
            return
        wakes = states.wakes.take(place)
        label = self._people.labels(wakes["waker"])
        self._making.instants(
            t_ns=wakes["t"],
            track=self._track(states.wake_thread()[place]),
            kind="wakeup",
            name="woken",
            cpu=or_none(wakes["cpu"]),
            value=np.where(wakes["waker"] >= 0, wakes["waker"], np.nan),
            detail=categories(np.asarray(label.codes), [word or "interrupt" for word in label.categories]),
            source=SOURCE,
        )

    def _cpus(self, states: States) -> None:
        turns = moments.turns_of(self._people, states)
        if not len(turns):
            return
        tracks = {cpu: self._registry.cpu(cpu) for cpu in pd.unique(turns["cpu"]).tolist()}
        is_member = turns["thread"] >= 0
        members = [*dict.fromkeys(self._people.members), OTHERS]
        place = {name: code for code, name in enumerate(members)}
        of_thread = np.array([place[name] for name in self._people.members])
        tids = np.where(is_member, self._people.tids[turns["thread"]], turns["other_tid"])
        self._making.intervals(
            t0_ns=turns["t0"],
            t1_ns=turns["t1"],
            track=pd.Series(turns["cpu"]).map(tracks).to_numpy(np.int64),
            kind="on_cpu",
            name=categories(np.where(is_member, of_thread[turns["thread"]], place[OTHERS]), members),
            cpu=or_none(turns["cpu"]),
            value=np.where(tids >= 0, tids, np.nan),
            detail=self._thread_names(tids),
            source=SOURCE,
        )

    def _thread_names(self, tids: Array) -> pd.Categorical:
        codes, unique = pd.factorize(tids)
        name = self._scope.recording.tasks.name
        return categories(codes, ["" if tid < 0 else "idle" if tid == 0 else name(tid) for tid in unique.tolist()])

    def _moments(self, states: States) -> None:
        for fault in moments.faults_of(self._scope):
            self._making.instants(
                t_ns=fault.time,
                track=self._track(fault.thread),
                kind="fault",
                name="page fault",
                cpu=or_none(fault.cpu),
                detail=categories(fault.in_kernel.astype(int), ("user", "kernel")),
                source=SOURCE,
            )
        for name, period in _counts(self._scope.recording).items():
            own, group = self._scope.rows(self._scope.recording.samples[name])
            self._making.instants(
                t_ns=own["time"],
                track=self._track(group // self._scope.stretches),
                kind="count",
                name=name,
                cpu=or_none(own["cpu"]),
                value=float(period),
                source=SOURCE,
            )
        for each in moments.interrupts_of(self._scope):
            self._making.intervals(
                t0_ns=each.begins,
                t1_ns=each.ends,
                track=self._track(each.thread),
                kind=each.kind,
                name=categories(each.code, each.names),
                cpu=or_none(each.cpu),
                source=SOURCE,
            )
        moved = moments.migrations_of(states)
        self._making.instants(
            t_ns=moved.time,
            track=self._track(moved.thread),
            kind="migration",
            name="migrated",
            cpu=or_none(moved.to),
            detail=[f"cpu{one}->cpu{to}" for one, to in zip(moved.origin.tolist(), moved.to.tolist(), strict=True)],
            source=SOURCE,
        )


def _whole(making: Making, registry: Registry, spans: Spans) -> None:
    """The stretches in which all events were on and none was lost: silence means something there, and nowhere else."""
    making.intervals(
        t0_ns=spans.begins, t1_ns=spans.ends, track=registry.run(), kind="whole", name="perf", source=SOURCE
    )


def _lost(making: Making, registry: Registry, recording: Recording) -> None:
    """Losses, each on the CPU whose events are missing."""
    losses = recording.losses
    for time, cpu, count, since in losses[["time", "cpu", "count", "since"]].tolist():
        making.instants(
            t_ns=[time],
            track=registry.cpu(cpu) if cpu >= 0 else registry.run(),
            kind="lost",
            name="events lost",
            cpu=or_none(np.array([cpu])),
            value=float(count),
            detail=f"within {(time - since) / 1e6:.3f} ms" if since else "",
            source=SOURCE,
        )


def _again(column: pd.Categorical, place: Mapping[str, int]) -> Array:
    """The codes of a column among other words."""
    new = np.array([place[word] for word in column.categories] or [0])
    return np.asarray(new[np.asarray(column.codes)])
