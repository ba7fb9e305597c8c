"""`castmates doctor --verify-cat`: tries whether way masks do something on this machine, and keeps a record."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import castmates
from castmates.errors import CastmatesError
from castmates.machine import facts, trial_records
from castmates.machine.journal import Journal
from castmates.machine.lock import machine_lock
from castmates.machine.probes import platform_here
from castmates.machine.topology import Topology, read_topology
from castmates.protocols import Allocator, Monitor, ReadsProcessor, Sample, Say
from castmates.rdt.choose import NoAllocator, choose_allocator, choose_monitor
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.rdt.resctrl.mounting import lease, why_not_mounted
from castmates.runner.cleanup.restore import heal
from castmates.runner.cleanup.warden import guarded
from castmates.runner.processes.launch import Start, WorkloadFailed, clean_environment
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.ledger_load import Surroundings
from castmates.runner.rounds.stage import Stage
from castmates.runner.staging import moved_aside, on_stage
from castmates.study.cache import Cache
from castmates.study.spec import Share
from castmates.trials.way_masks.verdict import (
    NO_ALLOCATION,
    SEPARATE,
    TIED,
    UNDECIDED,
    IoMasks,
    fewest,
    figures,
    follows,
    in_words,
    io_figures,
    io_masks,
    io_occupancy,
    io_times,
    io_words,
    judge,
    judge_all,
    judge_occupancy,
    judge_times,
    plateaus,
    slowdown,
    times,
)
from castmates.workloads import environments

# The programs of a trial, and what is done with them: masks are set, lines evicted, loads timed.

CHASE, EVICTOR, PROBE = "chase", "evictor", "probe"
LINE = 64
MIB = 1 << 20
WINDOW_S = 0.3
CYCLES = 2  # times that every line is visited in a window, at least
OCCUPIED_S = 1.5
POLL_NS = 10_000_000
LONGEST_S = 60.0
READY_S = 60.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a trial takes place, and with how much memory."""

    programs: Path  # the folder of the native kernels
    chase_cpu: int
    evictor_cpu: int  # of the same last-level cache; the chase's own where there is no other
    cache_bytes: int  # of one last-level cache
    full: int  # the mask of all its ways
    probe_bytes: int = 0  # of a second chase, which tries the ways that I/O fills too; 0 for none


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
        self._stage.apply_shares(() if mask == self._setting.full else self.shares(mask))
        self._run(EVICTOR, evictor_bytes(self._setting) // MIB, 0.0)
        self._run(self._chase, self._lines, 0.0)

    def shares(self, mask: int) -> tuple[Share, ...]:
        """Return what is given out for a mask."""
        return (Share(member=self._chase, ways=mask),)

    def ns_per_load(self) -> float:
        """Let the chase run for one window; the median of its short chunks leaves out the bursts of others."""
        records = self._run(self._chase, CYCLES * self._lines, WINDOW_S)
        return median((end - begin) / (after - before) for (begin, before), (end, after) in pairwise(records))

    def occupied(self) -> float | None:
        """Let the chase run until its occupancy stays, and return it in bytes; None where it is not known."""
        monitor = self._stage.hardware.monitor
        monitor.start()
        self._run(self._chase, self._lines, OCCUPIED_S)
        return last_half(monitor.stop(), self._chase)

    def _run(self, name: str, units: int, seconds: float) -> list[tuple[int, int]]:
        """Let one program run until it has done so much for so long; return its beats: time, and units so far."""
        process, deadline = self._stage.cast[name], time.monotonic() + LONGEST_S
        process.forget_beats()
        self._stage.switch([name])
        while not _done(process.records, units, seconds):
            self._stage.sleep_until(self._stage.now_ns() + POLL_NS)
            if time.monotonic() > deadline:
                raise CastmatesError(f"{name} made too little progress within {LONGEST_S:g} s: is this machine busy?")
        self._stage.switch([])
        return process.records


def _done(records: Sequence[tuple[int, int]], units: int, seconds: float) -> bool:
    if len(records) < 2:
        return False
    first, last = records[0], records[-1]
    return last[1] - first[1] >= units and last[0] - first[0] >= seconds * 1e9


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
    """Return the evictor's buffer: one pass leaves nothing of the chase's lines."""
    return 2 * setting.cache_bytes


@contextmanager
def programs_on_stage(setting: Setting, allocator: Allocator, monitor: Monitor) -> Iterator[Programs]:
    """Launch both programs, frozen, each in its own group; everything is put back at the end, or by the warden."""
    aside = moved_aside([setting.chase_cpu], lead=[setting.chase_cpu])
    try:
        with guarded() as warden, aside, on_stage("verify-cat", warden) as stage:
            warden.guard_journal(Journal())
            for start in _starts(setting, stage.scratch.files):
                stage.launch(start, logs=stage.scratch.files)
            with stage.watched(Hardware(allocator, monitor, (), Surroundings()), list(stage.cast)):
                stage.await_ready()
                yield Programs(setting, stage)
    except WorkloadFailed as failure:
        raise CastmatesError(str(failure)) from None


def _starts(setting: Setting, scratch: Path) -> list[Start]:
    sizes = {
        CHASE: ("chase", setting.chase_cpu, chase_bytes(setting)),
        EVICTOR: ("stream", setting.evictor_cpu, evictor_bytes(setting)),
    }
    if setting.probe_bytes:
        sizes[PROBE] = ("chase", setting.chase_cpu, setting.probe_bytes)
    return [
        Start(
            name=name,
            cpus=(cpu,),
            nodes=(),
            command=[kernel, "--bytes", str(size)],
            environment=clean_environment({}, (cpu,), scratch, {"PATH": str(setting.programs)}),
            ready_within=READY_S,
        )
        for name, (kernel, cpu, size) in sizes.items()
    ]


WHAT = "castmates doctor --verify-cat"
MEMBERS = 3  # with the program that tries an I/O way: each takes a group


def verify(envs: Path, cache: Path, say: Say) -> trial_records.Record:
    """Try it, keep the record, and report the result in one paragraph."""
    kernels = environments.build(environments.NATIVE, envs, cache) / "bin"
    with machine_lock(WHAT, wait=False), ExitStack() as exits:
        for sentence in heal().sentences:
            say(sentence)
        shareable, why = _shareable_cache(exits)
        record = _head() | (_nothing_to_try(why) if shareable is None else _try(shareable, kernels))
    file = trial_records.WAY_MASKS.write(cache, record)
    say(record["said"])
    say(f"Recorded in {file}.")
    return record


def _shareable_cache(exits: ExitStack) -> tuple[Cache | None, str]:
    """Return what can be shared out here, mounted for the time of the trial where it must be; or why nothing can.

    Where only this user may not, that is an error: it shows nothing about the machine.
    """
    if facts.resctrl(Path("/"))["kernel"] is False:
        return None, why_not_mounted()
    exits.callback(lease(purpose=WHAT).release)
    cache = read_cache()
    if cache is None or cache.ways < 2 * fewest(cache) or cache.groups < 1:
        return None, "resctrl has no way masks here: this processor only monitors, or its masks have no room."
    return cache, ""


def _try(cache: Cache, kernels: Path) -> dict[str, Any]:
    setting, domain = where(read_topology(), cache, kernels)
    tried = io_masks(cache) if cache.groups >= MEMBERS else None
    if tried is not None:
        setting = replace(setting, probe_bytes=tried.buffer(setting.cache_bytes // cache.ways))
    allocator = choose_allocator(purpose=WHAT, beyond_site=True)
    if isinstance(allocator, NoAllocator):
        raise CastmatesError(f"masks cannot be tried: {'; '.join(allocator.about().values())}")
    monitor = choose_monitor(purpose=WHAT)
    with programs_on_stage(setting, allocator, monitor) as programs:
        measured = times(programs, cache)
        occupied = (
            plateaus(programs, cache, setting.cache_bytes // cache.ways) if "llc_occupancy" in cache.events else ()
        )
        io_way = _try_io_way(programs, tried, cache, allocator) if tried is not None else {}
        drivers = {"allocator": allocator.about(), "monitor": monitor.about()}
    ratio = slowdown(measured)
    verdict = judge(ratio, follows(occupied))
    place = {"cpu": setting.chase_cpu, "evictor_cpu": setting.evictor_cpu, "llc": domain, "bytes": setting.cache_bytes}
    return {
        "verdict": verdict,
        "said": " ".join(
            filter(None, [in_words(verdict, ratio, len(measured.few), occupied), _said(io_way, tried, cache)])
        ),
        "place": place,
        "cache": cache.model_dump(mode="json"),
        "drivers": drivers,
        **figures(measured, ratio, occupied),
        "io_way": io_way,
    }


def _try_io_way(programs: Programs, tried: IoMasks, cache: Cache, allocator: Allocator) -> dict[str, Any]:
    """Try a mask that has some of the ways that I/O fills too, and not all."""
    probe = programs.probe()
    measured = io_times(probe, tried)
    occupied = io_occupancy(programs, tried) if "llc_occupancy" in cache.events else {}
    held = _held(allocator, probe.shares(tried.io))
    verdict = judge_all([judge_times(measured), judge_occupancy(occupied), held])
    return io_figures(tried, verdict, measured, occupied, held)


def _held(allocator: Allocator, shares: tuple[Share, ...]) -> str:
    """Return what the processor's registers show of these shares."""
    readings = allocator.processor() if isinstance(allocator, ReadsProcessor) else None
    if readings is None or shares not in readings.under:
        return UNDECIDED
    return TIED if readings.under[shares] else SEPARATE


def _said(io_way: dict[str, Any], tried: IoMasks | None, cache: Cache) -> str:
    return io_words(tried, io_way.get("verdict", UNDECIDED), cache)


def _nothing_to_try(why: str) -> dict[str, Any]:
    return {"verdict": NO_ALLOCATION, "said": f"There is no cache allocation here, so no mask could be tried: {why}"}


def _head() -> dict[str, Any]:
    return {
        "identity": trial_records.WAY_MASKS.identity(),
        "at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "castmates": castmates.__version__,
        "platform": platform_here(),
    }


def where(topology: Topology, cache: Cache, programs: Path) -> tuple[Setting, int]:
    """Choose two cores of one last-level cache, the second for evicting; one core if there is no other.

    Both are in one cluster of a cache that is divided: what one of another cluster streams evicts nothing here.
    """
    cores = topology.cores()
    for part in sorted(topology.cache_parts(), key=lambda part: -sum(core[0] in part.cpus for core in cores)):
        here = [core[0] for core in cores if core[0] in part.cpus]
        if not here:
            continue
        size = cache.way_bytes * cache.ways if cache.way_bytes else part.bytes
        if size:
            return Setting(programs, here[0], here[-1], size, cache.full), part.llc
    raise CastmatesError(
        "neither resctrl nor sysfs shows the size of the last-level cache, so no buffer of half of it can be "
        "made; masks cannot be tried on this machine"
    )
