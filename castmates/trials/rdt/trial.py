"""`castmates doctor --verify-rdt`: tries what masks, throttles, eviction and readings do here, and keeps a record."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, get_args

import castmates
from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.machine import facts, trial_records
from castmates.machine.lock import machine_lock
from castmates.machine.probes import platform_here
from castmates.machine.topology import CacheDomain, Topology, read_topology
from castmates.protocols import Allocator, Monitor, ReadsProcessor, Say
from castmates.rdt.choose import NoAllocator, choose_allocator, choose_monitor
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.rdt.resctrl.mounting import lease, why_not_mounted
from castmates.runner.cleanup.restore import heal
from castmates.study.cache import Cache
from castmates.study.rdt_trial import COMMAND, NOT_TRIED, UNDECIDED, VERIFIED, WORDS, Masks, Part, worst
from castmates.study.spec import Share
from castmates.trials.rdt import eviction, isolation, masks, throttles
from castmates.trials.rdt.isolation import pairs_of_ways, ways_beside_io
from castmates.trials.rdt.masks import NO_ALLOCATION, SEPARATE, TIED, IoMasks, fewest
from castmates.trials.rdt.programs import Programs, Setting, Streams, programs_on_stage, streams_on_stage
from castmates.workloads import environments

FEWEST, MEMBERS = 2, 3  # programs, each in a group; more where one tries an I/O way
PARTS: Final[tuple[Part, ...]] = get_args(Part)
OCCUPANCY, TRAFFIC = "llc_occupancy", "mbm_total_bytes"
Found = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """One last-level cache, and how it is tried."""

    setting: Setting
    llc: int
    package: int | None
    thorough: bool  # the first of its package; on all others a neighbour is tried, and no more


def verify(envs: Path, cache: Path, say: Say) -> trial_records.Record:
    """Try it, keep the record, and report each part in a paragraph."""
    kernels = environments.build(environments.NATIVE, envs, cache) / "bin"
    with machine_lock(COMMAND, wait=False), ExitStack() as exits:
        for sentence in heal().sentences:
            say(sentence)
        shareable, why = _shareable_cache(exits)
        found = _nothing_to_try(why) if shareable is None else _try(shareable, kernels, say)
        record = _head() | found
    file = trial_records.RDT.write(cache, record)
    for part, each in record["parts"].items():
        say(f"{part}: {each['verdict']}. {each['said']}")
    say(f"Recorded in {file}.")
    return record


def _shareable_cache(exits: ExitStack) -> tuple[Cache | None, str]:
    """Return what can be shared out and read here, mounted for the time of the trial where it must be; or why nothing.

    Where only this user may not, that is an error: it shows nothing about the machine.
    """
    if facts.resctrl(Path("/"))["kernel"] is False:
        return None, why_not_mounted()
    exits.callback(lease(purpose=COMMAND).release)
    cache = read_cache()
    if cache is None or not (_has_masks(cache) or cache.bandwidth or TRAFFIC in cache.events):
        return None, "resctrl has neither masks nor throttles nor counts of traffic here."
    return cache, ""


def _has_masks(cache: Cache) -> bool:
    return cache.ways >= 2 * fewest(cache)


def _head() -> dict[str, Any]:
    return {
        "identity": trial_records.RDT.identity(),
        "at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "castmates": castmates.__version__,
        "platform": platform_here(),
    }


def _nothing_to_try(why: str) -> dict[str, Any]:
    return {"parts": {"masks": _part(NO_ALLOCATION, f"{masks.SENTENCES[NO_ALLOCATION]} {why}")}, "caches": []}


def _part(verdict: str, said: str) -> Found:
    return {"verdict": verdict, "said": said}


def _try(cache: Cache, kernels: Path, say: Say) -> dict[str, Any]:
    every = places(read_topology(), cache, kernels)
    others = sum(not place.thorough for place in every)
    say(
        f"{counted(len(every), 'last-level cache')}: the first of each package takes five minutes or so, longer if it "
        f"is larger than 100 MiB{f'; {others} others 20 to 80 s each' if others else ''}."
    )
    caches = [dict(_try_place(place, cache, say)) for place in every]
    return {
        "parts": {part: together(part, caches) for part in PARTS if any(part in one for one in caches)},
        "cache": cache.model_dump(mode="json"),
        "caches": caches,
        "equal_steps": {"unit": cache.bandwidth.unit if cache.bandwidth else "", "steps": _common_steps(caches)},
    }


def together(part: Part, caches: Sequence[Mapping[str, Any]]) -> Found:
    """Return the worst verdict of all caches on which a part was tried, and what it says."""
    tried = [one for one in caches if part in one]
    shown = worst(part, (one[part]["verdict"] for one in tried))
    first = next(one for one in tried if one[part]["verdict"] == shown)
    good = sum(one[part]["verdict"] in VERIFIED[part] for one in tried)
    which = f"Of {len(tried)} caches {good} pass; cache {first['llc']}: " if len(tried) > 1 else ""
    return _part(shown, f"{which}{first[part]['said']}")


def _common_steps(caches: Iterable[Mapping[str, Any]]) -> list[list[int]]:
    """Return the steps that do the same as a larger one on every cache on which they were tried."""
    each = [set(map(tuple, one["throttles"]["steps"])) for one in caches if "throttles" in one]
    return [list(pair) for pair in sorted(set.intersection(*each))] if each else []


def _try_place(place: Place, cache: Cache, say: Say) -> Iterator[tuple[str, Any]]:
    """Yield what is found of one cache, part by part."""
    setting = place.setting
    yield "llc", place.llc
    yield "package", place.package
    yield "bytes", setting.cache_bytes
    yield "cpus", {"chase": setting.chase_cpu, "evictor": setting.evictor_cpu, "streams": list(setting.cores)}
    parts = _try_masks(place, cache) if _has_masks(cache) and cache.groups >= FEWEST else _no_masks(cache)
    for steps in (parts, _try_streams(place, cache) if place.thorough else ()):
        try:
            for name, found in steps:
                if name in WORDS:
                    say(f"cache {place.llc}, {name}: {found['verdict']}")
                elif name == "io_way" and found["said"]:
                    say(f"cache {place.llc}: {found['said']}")
                yield name, found
        except CastmatesError as problem:
            if place.thorough:
                raise
            yield "isolation", _part(NOT_TRIED, str(problem))


def _no_masks(cache: Cache) -> Iterator[tuple[str, Found]]:
    verdict: Masks = NOT_TRIED if _has_masks(cache) else NO_ALLOCATION
    yield "masks", _part(verdict, masks.SENTENCES[verdict])
    yield "isolation", _part(NOT_TRIED, isolation.SENTENCES[NOT_TRIED])


def _try_masks(place: Place, cache: Cache) -> Iterator[tuple[str, Found]]:
    """Try masks alone, beside a neighbour, and the eviction between them; where that is enough, the neighbour only."""
    setting = place.setting
    tried = masks.io_masks(cache) if cache.groups >= MEMBERS and place.thorough else None
    if tried is not None:
        setting = replace(setting, probe_bytes=tried.buffer(setting.cache_bytes // cache.ways))
    with _drivers("masks") as (allocator, monitor), programs_on_stage(setting, allocator, monitor) as programs:
        if place.thorough:
            yield "masks", _alone(programs, setting, cache)
            if tried is not None:
                yield "io_way", _try_io_way(programs, tried, cache, allocator)
        yield "isolation", _beside(programs, place, cache, tried)
        if place.thorough:
            yield "eviction", eviction.figures(eviction.tried(programs, setting.cache_bytes))
            yield "drivers", {"allocator": allocator.about(), "monitor": monitor.about()}


@contextmanager
def _drivers(what: str) -> Iterator[tuple[Allocator, Monitor]]:
    """Give the drivers, and let go of what they hold; an error where `what` is to be set and this user may not."""
    with ExitStack() as exits:
        allocator = choose_allocator(purpose=COMMAND, beyond_site=True)
        exits.callback(allocator.restore)
        monitor = choose_monitor(purpose=COMMAND)
        exits.callback(monitor.close)
        if what and isinstance(allocator, NoAllocator):
            raise CastmatesError(f"{what} cannot be tried: {'; '.join(allocator.about().values())}")
        yield allocator, monitor


def _alone(programs: Programs, setting: Setting, cache: Cache) -> Found:
    measured = masks.times(programs, cache)
    way = setting.cache_bytes // cache.ways
    occupied = masks.plateaus(programs, cache, way) if OCCUPANCY in cache.events else ()
    ratio = masks.slowdown(measured)
    verdict = masks.judge(ratio, masks.follows(occupied))
    said = masks.in_words(verdict, ratio, len(measured.few), occupied)
    return _part(verdict, said) | masks.figures(measured, ratio, occupied)


def _beside(programs: Programs, place: Place, cache: Cache, tried: IoMasks | None) -> Found:
    ways = pairs_of_ways(cache)
    if ways is None or place.setting.chase_cpu == place.setting.evictor_cpu:
        return _part(NOT_TRIED, isolation.SENTENCES[NOT_TRIED])
    found = isolation.figures(isolation.tried(programs, ways), ways)
    cutting = ways_beside_io(cache) if tried is not None else None
    if cutting is not None:
        beside_io = isolation.figures(isolation.tried(programs.probe(), cutting), cutting)
        found["cutting_io"] = beside_io
        found["said"] += f" With masks that cut through the ways of I/O ({cache.shareable:x}): {beside_io['verdict']}."
    return found


def _try_io_way(programs: Programs, tried: IoMasks, cache: Cache, allocator: Allocator) -> Found:
    """Try a mask that has some of the ways that I/O fills too, and not all."""
    probe = programs.probe()
    measured = masks.io_times(probe, tried)
    occupied = masks.io_occupancy(programs, tried) if OCCUPANCY in cache.events else {}
    held = _held(allocator, probe.shares(tried.io))
    verdict = masks.judge_all([masks.judge_times(measured), masks.judge_occupancy(occupied), held])
    said = masks.io_words(tried, verdict, cache, measured)
    return {"said": said} | masks.io_figures(tried, verdict, measured, occupied, held)


def _held(allocator: Allocator, shares: tuple[Share, ...]) -> str:
    """Return what the processor's registers show of these shares."""
    readings = allocator.processor() if isinstance(allocator, ReadsProcessor) else None
    if readings is None or shares not in readings.under:
        return UNDECIDED
    return TIED if readings.under[shares] else SEPARATE


def _try_streams(place: Place, cache: Cache) -> Iterator[tuple[str, Found]]:
    """Try the steps of the throttle, and what is counted of known traffic."""
    steps = throttles.steps_of(cache.bandwidth) or [0]  # 0 where there is no throttle: its only step is none

    @contextmanager
    def stage(cores: int) -> Iterator[Streams]:
        with (
            _drivers("throttles" if cache.bandwidth else "") as (allocator, monitor),
            streams_on_stage(place.setting, cores, allocator, monitor, unthrottled=steps[0]) as streams,
        ):
            yield streams

    curves = throttles.curves_together(stage, throttles.cores_to_try(len(place.setting.cores)), steps)
    unit = cache.bandwidth.unit if cache.bandwidth else ""
    yield (
        "throttles",
        _part(throttles.judge(curves), throttles.in_words(curves, unit))
        | {
            "unit": unit,
            "steps": [list(pair) for pair in throttles.equal_steps(curves)],
            "curves": [throttles.figures(each) for each in curves],
            "model": throttles.for_a_model(curves, unit),
        },
    )
    yield "traffic", _part(throttles.agreement(curves), throttles.agreement_in_words(curves))


def places(topology: Topology, cache: Cache, programs: Path) -> list[Place]:
    """Choose two cores of each last-level cache, the second for evicting; one core if there is no other.

    Both are in one cluster of a cache that is divided: what one of another cluster streams evicts nothing here.
    """
    found: list[Place] = []
    package_of = {cpu.id: cpu.package for cpu in topology.cpus}
    for llc in topology.llcs:
        if setting := _setting(topology, llc, cache, programs):
            package = package_of.get(setting.chase_cpu)
            found.append(Place(setting, llc.id, package, package not in [place.package for place in found]))
    if not found:
        raise CastmatesError(
            "neither resctrl nor sysfs shows the size of the last-level cache, so no buffer of half of it can be "
            "made; masks cannot be tried on this machine"
        )
    return found


def _setting(topology: Topology, llc: CacheDomain, cache: Cache, programs: Path) -> Setting | None:
    parts = {
        part: tuple(core[0] for core in topology.cores() if core[0] in part.cpus)
        for part in topology.cache_parts()
        if part.llc == llc.id
    }
    part, here = max(parts.items(), key=lambda each: len(each[1]))
    size = cache.way_bytes * cache.ways if cache.way_bytes else part.bytes
    return Setting(programs, here[0], here[-1], size, cache.full, cores=here) if here and size else None
