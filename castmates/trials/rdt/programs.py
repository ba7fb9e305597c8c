"""The programs of a trial of one cache, and what is done with them: masks are set, lines evicted, loads timed."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from castmates.counters.package.collector import Packages
from castmates.counters.package.sources import MOVED, READ, WRITTEN
from castmates.errors import CastmatesError
from castmates.machine.journal import Journal
from castmates.protocols import Allocator, Monitor, Sample
from castmates.runner.cleanup.warden import guarded
from castmates.runner.processes.launch import Start, WorkloadFailed, clean_environment
from castmates.runner.processes.starts import Evictor
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.ledger_load import Surroundings
from castmates.runner.rounds.stage import Stage
from castmates.runner.staging import LiveStage, moved_aside, on_stage
from castmates.study.scenes import CACHE_TIMES
from castmates.study.spec import Share
from castmates.trials.rdt.eviction import Left
from castmates.trials.rdt.isolation import Beside
from castmates.trials.rdt.throttles import Moved

CHASE, EVICTOR, PROBE, STREAM = "chase", "evictor", "probe", "stream"
LINE = 64
MIB = 1 << 20
WINDOW_S = 0.3
CYCLES = 2  # times that every line is visited in a window, at least
OCCUPIED_S = 1.5
MOVED_S = 0.25
FEWEST_BEATS = 8  # of a window of streams
STREAM_TIMES = 4  # the cache, that streams read through
POLL_NS = 10_000_000
LONGEST_S = 60.0
READY_S = 300.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a trial takes place, and with how much memory."""

    programs: Path  # the folder of the native kernels
    chase_cpu: int
    evictor_cpu: int  # of the same last-level cache; the chase's own where there is no other
    cache_bytes: int  # of one last-level cache
    full: int  # the mask of all its ways
    probe_bytes: int = 0  # of a second chase, which tries the ways that I/O fills too; 0 for none
    cores: tuple[int, ...] = ()  # a CPU of each core of the cache


class Programs:
    """A chase through half of a last-level cache, and a stream that evicts everything from it."""

    def __init__(self, setting: Setting, stage: Stage, chase: str = CHASE) -> None:
        self._setting, self._stage, self._chase = setting, stage, chase
        self._lines = (setting.probe_bytes if chase == PROBE else chase_bytes(setting)) // LINE

    def probe(self) -> "Programs":
        """Return the same with the second chase, whose buffer is smaller, in the place of the first."""
        return Programs(self._setting, self._stage, PROBE)

    def set_mask(self, mask: int) -> None:
        """Put a mask in force for the chase, evict what it has elsewhere, and let it fill these ways."""
        self._give(mask)
        self._evict()
        self._run(self._lines)

    def shares(self, mask: int, other: int | None = None) -> tuple[Share, ...]:
        """Return what is given out for a mask of the chase and one of the stream."""
        given = ((self._chase, mask), (EVICTOR, self._setting.full if other is None else other))
        return tuple(Share(member=name, ways=ways) for name, ways in given if ways != self._setting.full)

    def ns_per_load(self) -> float:
        """Let the chase run for one window; the median of its short chunks leaves out the bursts of others."""
        return _ns_per_load(self._run(CYCLES * self._lines, WINDOW_S))

    def occupied(self) -> float | None:
        """Let the chase run until its occupancy stays, and return it in bytes; None where it is not known."""
        monitor = self._stage.hardware.monitor
        monitor.start()
        self._run(self._lines, OCCUPIED_S)
        return last_half(monitor.stop(), self._chase)

    def beside(self, own: int, other: int | None) -> Beside:
        """Let the chase run in its ways for one window, beside the stream in others; alone with None.

        What the window before has left is gone when it begins: the chase has visited every line again.
        """
        self._give(own, other)
        neighbours = () if other is None else (EVICTOR,)
        self._run(CYCLES * self._lines, 0.0, neighbours)
        ns = _ns_per_load(self._run(CYCLES * self._lines, WINDOW_S, neighbours))
        return Beside(ns, self._stage.hardware.occupancies().get(self._chase))

    def after(self, passes: int) -> Left:
        """Let the chase fill its lines, freeze it, let the evictor pass, read, and time the next cycle."""
        self._give(self._setting.full)
        self._run(CYCLES * self._lines)
        for _ in range(passes):
            self._evict()
        occupied = self._stage.hardware.occupancies().get(self._chase)
        return Left(occupied, _ns_of_first_cycle(self._run(self._lines), self._lines))

    def _give(self, mask: int, other: int | None = None) -> None:
        self._stage.apply_shares(self.shares(mask, other))

    def _evict(self) -> None:
        _run(self._stage, EVICTOR, evictor_bytes(self._setting) // MIB, 0.0)

    def _run(self, loads: int, seconds: float = 0.0, beside: Sequence[str] = ()) -> list[tuple[int, int]]:
        return _run(self._stage, self._chase, loads, seconds, beside)


def _run(
    stage: Stage, name: str, units: int, seconds: float, beside: Sequence[str] = (), beats: int = 2
) -> list[tuple[int, int]]:
    """Let a program run until it has done so much for so long; return its beats: time, and units so far."""
    process, deadline = stage.cast[name], time.monotonic() + LONGEST_S
    process.forget_beats()
    stage.switch([name, *beside])
    while not _done(process.records, units, seconds, beats):
        stage.sleep_until(stage.now_ns() + POLL_NS)
        if time.monotonic() > deadline:
            raise CastmatesError(f"{name} made too little progress within {LONGEST_S:g} s: is this machine busy?")
    stage.switch([])
    return process.records


def _done(records: Sequence[tuple[int, int]], units: int, seconds: float, beats: int) -> bool:
    if len(records) < beats:
        return False
    first, last = records[0], records[-1]
    return last[1] - first[1] >= units and last[0] - first[0] >= seconds * 1e9


def _ns_per_load(records: Sequence[tuple[int, int]]) -> float:
    return median((end - begin) / (after - before) for (begin, before), (end, after) in pairwise(records))


def _ns_of_first_cycle(records: Sequence[tuple[int, int]], lines: int) -> float | None:
    """Return the time per load of a cycle without its first chunk, whose begin is not known; None if that was all."""
    (begin, before), (_, second) = records[:2]
    if (rest := lines - (second - before)) <= 0:
        return None
    finish, after = next(record for record in records[1:] if record[1] - before >= rest)
    return (finish - begin) / (after - before)


def last_half(samples: Sequence[Sample], chase: str = CHASE) -> float | None:
    """Return the median of the later half of the chase's occupancy, over its caches; None where none was read."""
    at: dict[int, float] = {}
    for sample in samples:
        if sample.subject == chase and sample.metric == "llc_occupancy" and sample.value is not None:
            at[sample.t_ns] = at.get(sample.t_ns, 0.0) + sample.value
    series = [at[t] for t in sorted(at)]
    return median(series[len(series) // 2 :]) if series else None


def chase_bytes(setting: Setting) -> int:
    """Return the chase's buffer: it fits into the whole cache, and by far not into a few ways."""
    return setting.cache_bytes // 2 // LINE * LINE


def evictor_bytes(setting: Setting) -> int:
    """Return the evictor's buffer, which it writes through in a pass."""
    return CACHE_TIMES * setting.cache_bytes


class Streams:
    """One program that reads through memory on some cores, and can be throttled."""

    def __init__(self, stage: Stage, packages: Packages, unthrottled: int | None) -> None:
        self._stage, self._packages, self._unthrottled = stage, packages, unthrottled

    def moved(self, step: int) -> Moved:
        """Let it run under a step for one window, and return the bytes per second by everybody's count."""
        throttled = step != self._unthrottled
        self._stage.apply_shares((Share(member=STREAM, bandwidth=step),) if throttled else ())
        _run(self._stage, STREAM, 0, 0.0, beats=FEWEST_BEATS)
        monitor = self._stage.hardware.monitor
        self._packages.start(())
        monitor.start()
        records = _run(self._stage, STREAM, 0, MOVED_S, beats=FEWEST_BEATS)
        counted, controllers = monitor.stop(), self._packages.stop()
        (begin, before), (end, after) = records[0], records[-1]
        return Moved(MIB * 1e9 * (after - before) / (end - begin), _traffic(counted), _of_controllers(controllers))


def _traffic(samples: Sequence[Sample]) -> float | None:
    seen = [one.value for one in samples if (one.subject, one.metric) == (STREAM, "mbm_total")]
    known = [value for value in seen if value is not None]
    return fmean(known) if known else None


def _of_controllers(samples: Sequence[Sample]) -> float | None:
    by_metric: Mapping[str, list[float | None]] = {name: [] for name in (MOVED, READ, WRITTEN)}
    for sample in samples:
        if sample.metric in by_metric:
            by_metric[sample.metric].append(sample.value)
    parts = by_metric[MOVED] or [*by_metric[READ], *by_metric[WRITTEN]]
    known = [value for value in parts if value is not None]
    return sum(known) if known and len(known) == len(parts) else None


@contextmanager
def programs_on_stage(setting: Setting, allocator: Allocator, monitor: Monitor) -> Iterator[Programs]:
    """Launch chase and evictor, frozen, each in its own group; everything is put back at the end, or by the warden."""
    evictor = Evictor(setting.evictor_cpu, evictor_bytes(setting))
    commands = {
        CHASE: (setting.chase_cpu, ["chase", "--bytes", str(chase_bytes(setting))]),
        EVICTOR: (setting.evictor_cpu, evictor.command),
    }
    if setting.probe_bytes:
        commands[PROBE] = (setting.chase_cpu, ["chase", "--bytes", str(setting.probe_bytes)])
    members = {name: ((cpu,), command) for name, (cpu, command) in commands.items()}
    with _launched(setting, members, allocator, monitor) as stage:
        yield Programs(setting, stage)


@contextmanager
def streams_on_stage(
    setting: Setting, cores: int, allocator: Allocator, monitor: Monitor, unthrottled: int | None
) -> Iterator[Streams]:
    """Launch a program that reads through memory on so many cores, a thread on each."""
    cpus, size = setting.cores[:cores], STREAM_TIMES * setting.cache_bytes
    command = ["stream", "--mode", "read", "--bytes", str(size), "--threads", str(cores)]
    packages = Packages(cpus)
    with _launched(setting, {STREAM: (cpus, command)}, allocator, monitor) as stage, ExitStack() as exits:
        exits.callback(packages.close)
        packages.attach({})
        yield Streams(stage, packages, unthrottled)


@contextmanager
def _launched(
    setting: Setting,
    members: Mapping[str, tuple[tuple[int, ...], list[str]]],
    allocator: Allocator,
    monitor: Monitor,
) -> Iterator[LiveStage]:
    first = next(iter(members.values()))[0]
    try:
        with guarded() as warden, moved_aside(first, lead=first), on_stage("verify-rdt", warden) as stage:
            warden.guard_journal(Journal())
            for name, (cpus, command) in members.items():
                start = Start(
                    name=name,
                    cpus=cpus,
                    nodes=(),
                    command=command,
                    environment=clean_environment({}, cpus, stage.scratch.files, {"PATH": str(setting.programs)}),
                    ready_within=READY_S,
                )
                stage.launch(start, logs=stage.scratch.files)
            with stage.watched(Hardware(allocator, monitor, (), Surroundings()), list(stage.cast)):
                stage.await_ready()
                yield stage
    except WorkloadFailed as failure:
        raise CastmatesError(str(failure)) from None
