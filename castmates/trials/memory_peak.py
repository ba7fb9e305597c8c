"""`castmates doctor --memory-peak`: what 1, 2, 3, 4, 6 … cores of one package take of memory, and a record of it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import castmates
from castmates.errors import CastmatesError
from castmates.machine import trial_records
from castmates.machine.lock import machine_lock
from castmates.machine.probes import platform_here, usable_memory
from castmates.protocols import Say
from castmates.runner.cleanup.restore import heal_or_refuse
from castmates.runner.cleanup.warden import Warden, guarded
from castmates.runner.processes.launch import Start, WorkloadFailed, clean_environment
from castmates.study.cpus import format_cpu_list
from castmates.study.last_level import NATIVE, CachePlace, last_level, sized_workload
from castmates.study.memory_peak import COMMAND, MODES, Peak
from castmates.study.model import Workload
from castmates.study.placement.layout import Layout
from castmates.trials.workloads.promises import launched
from castmates.workloads import environments

MIB = 1 << 20
WARM_UP_S, MEASURED_S = 0.2, 0.6
PIECES = 6  # of the time that is measured; their median leaves out a disturbance
READY_S = 300.0


def measure(envs: Path, cache: Path, layout: Layout, say: Say) -> trial_records.Record:
    """Measure it, keep the record, and report the result in one sentence."""
    programs = environments.build(NATIVE, envs, cache) / "bin"
    package, cpus = cores_of_a_package(layout)
    with machine_lock(COMMAND, say=say), guarded() as warden:
        heal_or_refuse(say)
        curve = list(_curve(cpus, layout, programs, warden, say))
    record = _record(package, cpus, curve, layout)
    file = trial_records.MEMORY_PEAK.write(cache, record)
    say(record["said"])
    say(f"Recorded in {file}.")
    return record


def cores_of_a_package(layout: Layout) -> tuple[int | None, tuple[int, ...]]:
    """The package with most cores that may be used, and a CPU of each of them."""
    packages: dict[int | None, list[int]] = {}
    for core in layout.cores:
        packages.setdefault(core.package, []).append(core.cpus[0])
    if not packages:
        raise CastmatesError("no core may be used here, so no memory bandwidth can be measured.")
    package = max(packages, key=lambda each: len(packages[each]))
    return package, tuple(packages[package])


def ladder(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12 … and all: bandwidth saturates between two of them, near enough."""
    steps = {size for power in range(most.bit_length()) for size in (1 << power, 3 << power) if size < most}
    return sorted({*steps, most})


def _curve(
    cpus: Sequence[int], layout: Layout, programs: Path, warden: Warden, say: Say
) -> Iterator[dict[str, float | int]]:
    for count in ladder(len(cpus)):
        point: dict[str, float | int] = {"cores": count}
        for mode in MODES:
            point[mode] = _bandwidth(cpus[:count], mode, layout, programs, warden)
        found = ", ".join(f"{mode} {point[mode] / 1e9:.3g} GB/s" for mode in MODES)
        say(f"{count} {'core' if count == 1 else 'cores'}: {found}")
        yield point


def _bandwidth(cpus: Sequence[int], mode: str, layout: Layout, programs: Path, warden: Warden) -> float:
    """Bytes per second that these cores read and write together, each thread on one of them."""
    stream = Workload(
        command="stream",
        options={"bytes": "4llc", "threads": len(cpus), "mode": mode},
        environment=NATIVE,
        progress="heartbeat",
    )
    command = sized_workload(stream, CachePlace(cpus, last_level(layout, cpus), usable_memory())).words

    def start(scratch: Path) -> Start:
        return Start(
            name="stream",
            cpus=tuple(cpus),
            nodes=(),
            command=[str(programs / command[0]), *command[1:]],
            environment=clean_environment({}, tuple(cpus), scratch, {}),
            ready_within=READY_S,
        )

    try:
        with launched(start, cpus, warden) as alone:
            alone.become_ready()
            beats = alone.record(WARM_UP_S, MEASURED_S)
    except WorkloadFailed as failure:
        raise CastmatesError(f"the memory's peak cannot be measured: {failure}") from None
    return MIB * rate(beats)


def rate(beats: Sequence[tuple[int, int]]) -> float:
    """Units a second: the median over pieces of the time."""
    size = max(1, len(beats) // PIECES)
    ends = beats[::size]
    pieces = [1e9 * (after - before) / (end - begin) for (begin, before), (end, after) in pairwise(ends) if end > begin]
    if not pieces:
        raise CastmatesError("the memory's peak cannot be measured: streaming made no progress; is this machine busy?")
    return median(pieces)


def _record(
    package: int | None, cpus: Sequence[int], curve: list[dict[str, float | int]], layout: Layout
) -> trial_records.Record:
    record: dict[str, Any] = {
        "identity": trial_records.MEMORY_PEAK.identity(),
        "at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "castmates": castmates.__version__,
        "platform": platform_here(),
        "package": package,
        "cpus": format_cpu_list(cpus),
        "curve": curve,
    }
    peak = Peak.of(record)
    return record | {"said": f"{in_words(peak)}{of_a_part(peak, layout)}"} if peak else record


def of_a_part(peak: Peak, layout: Layout) -> str:
    """Say that a cpuset cuts the cache, or that another one's cores come between; "" where neither is so."""
    together, there = peak.cores_of_first_cache(layout)
    if together >= there:
        return ""
    caches = [cpu and cpu.llc for cpu in map(layout.by_id.get, peak.cpus)]
    tried = caches.count(caches[0])
    if tried >= there:
        return (
            f" The {there} cores around a last-level cache were tried in turns with those of others, so throttles in "
            "per cent are not taken from it."
        )
    return (
        f" Only {tried} of the {there} cores around a last-level cache may be used here (cpuset), so throttles in per "
        "cent are not taken from it."
    )


def in_words(peak: Peak) -> str:
    """What the curve shows."""
    cores = "one core" if peak.cores == 1 else f"{peak.cores} cores"
    found = (
        f"The memory's peak is {peak.highest() / 1e9:.3g} GB/s of reads ({peak.highest('triad') / 1e9:.3g} of a triad)"
    )
    if not peak.saturated:
        return f"{found}, as far as {cores} reach: bandwidth still grew with the last one, so memory may give far more."
    return f"{found}; {peak.saturating} of {cores} saturate it."
