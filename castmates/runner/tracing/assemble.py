"""Puts everything that a trace launch recorded onto one timeline, one source after the other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castmates.errors import CastmatesError
from castmates.protocols import Sample
from castmates.runner.outcome import Outcome
from castmates.runner.tracing.numbers import UNITS
from castmates.runner.tracing.programs import (
    Source,
    add_annotations,
    add_beats,
    add_profile,
)
from castmates.runner.tracing.recorded import Events, Recorded
from castmates.runner.tracing.recorders import PERF
from castmates.timeline.flames.reading import add_stacks
from castmates.timeline.model import Making
from castmates.timeline.perf.load import add_perf
from castmates.timeline.registry import Registry

RUNNER, NUMBERS = "runner", "numbers"
BYTES = {"llc_occupancy": ("llc_occupancy_bytes", "B"), "mbm_total": ("memory_bytes_per_s", "B/s")}
Facts = dict[str, Any]


class Assembly:
    """A timeline in the making, and what each scene's sources gave to it."""

    def __init__(self, outcome: Outcome) -> None:
        self.making = Making()
        self.by_scene: list[list[Source]] = []
        self.annotations: list[Source] = []
        self._outcome = outcome
        self._registry = Registry(self.making)
        self._registry.run(outcome.block.company.mixes[0].name)
        for process in outcome.cast:
            if process.name in self._members:
                self._registry.process(process.pid, process.start.command[0].rpartition("/")[2], process.name)
        for recorded in outcome.recorded:
            self.by_scene.append(list(self._scene(recorded)))
        spans = [(recorded.switch_ns, recorded.end_ns) for recorded in outcome.recorded]
        for process in outcome.cast:
            if process.name in self._members and process.phases is not None:
                self.annotations.append(add_annotations(self.making, self._registry, process, spans))

    @property
    def _members(self) -> Sequence[str]:
        return [member.name for member in self._outcome.block.company.members]

    def _scene(self, recorded: Recorded) -> Iterator[Source]:
        self._add_run(recorded)
        yield add_beats(self.making, self._registry, recorded, self._outcome.block.company.members)
        if (profile := add_profile(self.making, self._registry, self._outcome, recorded)) is not None:
            yield profile
        yield self._add_samples(recorded.samples)
        owners = {pid: name for name, pids in recorded.pids.items() for pid in pids}
        for name, events in recorded.events.items():
            yield self._add_events(name, events, owners)

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
        by_series: dict[tuple[str, str, str], list[Sample]] = {}
        for sample in samples:
            if sample.value is not None:
                by_series.setdefault((sample.subject, sample.metric, sample.source), []).append(sample)
        for (subject, metric, read_by), ones in by_series.items():
            name, unit = BYTES.get(metric, (metric, UNITS.get(metric, "")))
            self.making.samples(
                t_ns=[one.t_ns for one in ones],
                track=self._track_of(subject),
                name=name,
                value=[one.value for one in ones],
                unit=unit,
                source=read_by,
            )
            source.events[name] = source.events.get(name, 0) + len(ones)
        return source

    def _track_of(self, subject: str) -> int:
        if subject in self._members:
            return self._registry.member(subject)
        if subject.startswith("cpu") and subject[3:].isdigit():
            return self._registry.cpu(int(subject[3:]))
        return self._registry.run() if subject in ("host", "runner") else self._registry.device(subject)

    def _add_events(self, name: str, events: Events, owners: Mapping[int, str]) -> Source:
        source = Source(name, reason=events.reason)
        if events.file is None:
            return source
        source.bytes = events.file.stat().st_size
        if events.ended_early:
            source.more["ended early"] = events.ended_early
        try:
            if name == PERF:
                found: Facts = dict(add_perf(self.making, self._registry, events.file, owners, events.span))
            else:
                found = dict(add_stacks(self.making, self._registry, events.file, owners))
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
