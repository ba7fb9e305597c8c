"""Puts everything that a trace launch recorded onto one timeline, one source after the other."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from castmates.analysis.dataflow.path_states import TracedSteps
from castmates.errors import CastmatesError
from castmates.protocols import Sample
from castmates.runner.tracing.programs import (
    Source,
    add_annotations,
    add_beats,
    add_profile,
)
from castmates.runner.tracing.recorded import Events, Recorded, Span, Traced
from castmates.runner.tracing.recorders import PERF, series
from castmates.study.spec import LATENCIES
from castmates.timeline.flames.reading import add_stacks
from castmates.timeline.latencies import add_latencies
from castmates.timeline.model import Making, Registry
from castmates.timeline.perf.load import add_perf

RUNNER, NUMBERS = "runner", "numbers"
Facts = dict[str, Any]


class Assembly:
    """A timeline in the making, and what each scene's sources gave to it."""

    def __init__(self, outcome: Traced, done: Callable[[Recorded], None]) -> None:
        """`done` is called with each recording once its files are read, before those of the next."""
        self.making = Making()
        self.by_scene: list[list[Source]] = []
        self.annotations: list[Source] = []
        self.traced: list[TracedSteps] = []
        self._outcome = outcome
        self._registry = Registry(self.making)
        self._registry.run(outcome.launch.cohort.mixes[0].name)
        for process in outcome.cast:
            if process.name in self._members:
                self._registry.process(process.pid, process.start.command[0].rpartition("/")[2], process.name)
        for recorded in outcome.recorded:
            self.by_scene.append(list(self._scene(recorded)))
            done(recorded)
        spans = [(recorded.switch_ns, recorded.end_ns) for recorded in outcome.recorded]
        for process in outcome.cast:
            if process.name in self._members and process.phases is not None:
                owners = {tid: pid for recorded in outcome.recorded for tid, pid in recorded.processes.items()}
                self.annotations.append(add_annotations(self.making, self._registry, process, spans, owners))

    @property
    def _members(self) -> Sequence[str]:
        return [member.name for member in self._outcome.launch.cohort.members]

    def _scene(self, recorded: Recorded) -> Iterator[Source]:
        self._add_run(recorded)
        yield add_beats(self.making, self._registry, recorded, self._outcome.launch.cohort.members)
        if (profile := add_profile(self.making, self._registry, self._outcome, recorded, self.traced)) is not None:
            yield profile
        yield self._add_samples(recorded.samples)
        owners = {pid: name for name, pids in recorded.pids.items() for pid in pids}
        for name, events in recorded.events.items():
            yield self._add_events(name, events, owners, recorded.span)

    def _add_run(self, recorded: Recorded) -> None:
        """What the runner did: on the launch's own track."""
        run, scene = self._registry.run(), recorded.scene
        stretches = [
            ("scene", scene.name, recorded.switch_ns, recorded.end_ns),
            ("settling", scene.name, recorded.switch_ns, recorded.before[0]),
            ("usual", scene.name, *recorded.before),
            ("recording", scene.name, *recorded.span),
            ("usual", scene.name, *recorded.after),
        ]
        kinds, names, begins, ends = zip(*(one for one in stretches if one[3] > one[2]), strict=True)
        self.making.intervals(
            t0_ns=list(begins),
            t1_ns=list(ends),
            track=run,
            kind=list(kinds),
            name=list(names),
            value=float(recorded.round),
            detail=scene.partition,
            source=RUNNER,
        )
        for t_ns, partition, held in recorded.masks:
            self.making.instants(t_ns=[t_ns], track=run, kind="mask", name=partition, detail=held, source=RUNNER)

    def _add_samples(self, samples: Sequence[Sample]) -> Source:
        source = Source(NUMBERS)
        for one in series(samples):
            if one.readings:
                self.making.samples(
                    t_ns=[t_ns for t_ns, _ in one.readings],
                    track=self._track_of(one.subject),
                    name=one.name,
                    value=[value for _, value in one.readings],
                    unit=one.unit,
                    source=one.source,
                )
            source.events[one.name] = source.events.get(one.name, 0) + len(one.readings)
        return source

    def _track_of(self, subject: str) -> int:
        if subject in self._members:
            return self._registry.member(subject)
        if subject.startswith("cpu") and subject[3:].isdigit():
            return self._registry.cpu(int(subject[3:]))
        return self._registry.run() if subject in ("host", "runner") else self._registry.device(subject)

    def _add_events(self, name: str, events: Events, owners: Mapping[int, str], recorded: Span) -> Source:
        """What a recorder has of the recording: it was on a little earlier, and until a little later."""
        span = max(events.span[0], recorded[0]), min(events.span[1], recorded[1])
        source = Source(name, reason=events.reason)
        if events.file is None:
            return source
        source.bytes = events.file.stat().st_size
        if events.ended_early:
            source.more["ended early"] = events.ended_early
        try:
            if name == PERF:
                early = bool(events.ended_early)
                found: Facts = dict(add_perf(self.making, self._registry, events.file, owners, span, early))
            else:
                add = add_latencies if name == LATENCIES else add_stacks
                found = dict(add(self.making, self._registry, events.file, owners, span))
        except CastmatesError as problem:
            source.reason = str(problem)
            return source
        source.events, source.lost = dict(found.pop("events", {})), int(found.pop("lost", 0))
        source.reason = str(found.pop("reason", ""))
        source.more |= {key: value for key, value in found.items() if key not in source.about()}
        return source


def together(by_scene: Sequence[Sequence[Source]], annotations: Sequence[Source]) -> list[Facts]:
    """Each source over all scenes: numbers of events and losses added up, the worst alignment, every reason once."""
    found: dict[str, list[Source]] = {}
    for source in [*(one for scene in by_scene for one in scene), *annotations]:
        found.setdefault(source.name, []).append(source)
    return [_added_up(name, ones) for name, ones in found.items()]


def _added_up(name: str, ones: Sequence[Source]) -> Facts:
    events: dict[str, int] = {}
    for one in ones:
        for kind, count in one.events.items():
            events[kind] = events.get(kind, 0) + count
    apart = [one.alignment_ns for one in ones if one.alignment_ns is not None]
    return {
        "name": name,
        "events": events,
        "lost": sum(one.lost for one in ones),
        "bytes": sum(one.bytes for one in ones),
        "alignment_ns": max(apart, default=None),
        "reason": "; ".join(dict.fromkeys(one.reason for one in ones if one.reason)),
    }
