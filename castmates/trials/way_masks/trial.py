"""`castmates doctor --verify-cat`: tries whether way masks do something on this machine, and keeps a record."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import castmates
from castmates.errors import CastmatesError
from castmates.machine import facts_rdt, trial_records
from castmates.machine.emulation import platform_here
from castmates.machine.lock import machine_lock
from castmates.machine.topology import Topology, read_topology
from castmates.protocols import Allocator, ReadsProcessor, Say
from castmates.rdt.choose import choose_allocator, choose_monitor
from castmates.rdt.nothing import NoAllocator
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.rdt.resctrl.mounting import lease, why_not_mounted
from castmates.runner.cleanup.restore import heal
from castmates.study.cache import Cache
from castmates.study.spec import Share
from castmates.trials.way_masks.experiment import fewest, plateaus, times
from castmates.trials.way_masks.io_ways import (
    SEPARATE,
    TIED,
    UNDECIDED,
    IoMasks,
    io_figures,
    io_masks,
    io_occupancy,
    io_times,
    io_words,
    judge_all,
    judge_occupancy,
    judge_times,
)
from castmates.trials.way_masks.programs import Programs, Setting, programs_on_stage
from castmates.trials.way_masks.verdict import NO_ALLOCATION, figures, follows, in_words, judge, slowdown
from castmates.workloads import environments

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
    if facts_rdt.resctrl(Path("/"))["kernel"] is False:
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
