"""What can be counted of a package, and where: one table of data, from the kernel's drivers and perf's event lists.

Of each quantity the first source counts whose units the machine has. Where sysfs names an event, its fields and its
scale are taken from there, so that a later processor of the same family needs no new row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.counters.package.units import Terms, Unit, package_units
from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.linux.perf_event import Attr

LINE = 64.0  # bytes of a cache line, which is what a memory controller moves at a time
ENERGY, MEMORY_ENERGY = "package_w", "memory_w"
READ, WRITTEN, MOVED = "memory_read", "memory_written", "memory_moved"
TRAFFIC = (READ, WRITTEN, MOVED)
MEANINGS = {
    ENERGY: "watts of the package (RAPL)",
    MEMORY_ENERGY: "watts of its memory (RAPL)",
    READ: "bytes a second that its memory controllers read",
    WRITTEN: "bytes a second that its memory controllers wrote",
    MOVED: "bytes a second that its memory controllers read and wrote",
}
# What sysfs calls a scaled count's unit -> how much of our unit that is.
_SIZES = {"Joules": 1.0, "MiB": 2.0**20, "MB": 1e6, "Bytes": 1.0, "": LINE}
# Zen 2 and Zen 3 servers and clients; later ones have amd_umc. DF events differ from model to model.
_DATA_FABRIC_OF_ZEN = {0x17: range(0x30, 0x100), 0x19: [*range(0x10), *range(0x20, 0x60)]}
_CHANNELS = [0x07, 0x47, 0x87, 0xC7, 0x107, 0x147, 0x187, 0x1C7]  # events of the fabric's eight memory channels

# AMD's counter of energy is the package's. A kernel that knows of dies may read it through one CPU of each of them,
# which all show the whole package; dies of Intel's have a counter each, and the package is their sum
# (arch/x86/events/rapl.c, rapl_pmu_is_pkg_scope).
_ONE_A_PACKAGE = ("AuthenticAMD", "HygonGenuine")


@dataclass(frozen=True, slots=True)
class Source:
    """Events of some kind of unit that together are a quantity."""

    metric: str
    units: str  # a pattern of names
    names: Sequence[str] = ()  # events in sysfs; those that a unit has are added up
    fields: Sequence[Terms] = ()  # events that sysfs does not name; a count of theirs is a cache line
    models: Mapping[int, Sequence[int]] | None = None  # AMD's families and models alone, where given
    is_energy: bool = False
    evidence: str = ""  # where it is written down


_INTEL = "arch/x86/events/intel/uncore_snbep.c: cas_count_*; two schedulers a unit from Granite Rapids on"
_ALTERNATIVES: Sequence[Sequence[Source]] = (
    (Source(ENERGY, "power", ["energy-pkg"], is_energy=True, evidence="arch/x86/events/rapl.c"),),
    (Source(MEMORY_ENERGY, "power", ["energy-ram"], is_energy=True, evidence="arch/x86/events/rapl.c"),),
    (
        Source(
            READ,
            r"uncore_imc_\d+",
            ["cas_count_read", "cas_count_read_sch0", "cas_count_read_sch1"],
            evidence=_INTEL,
        ),
        Source(
            READ,
            r"amd_umc_\d+",
            fields=[{"event": 0x0A, "rdwrmask": 1}],
            evidence="perf: amdzen4/memory-controller.json, umc_cas_cmd.rd",
        ),
    ),
    (
        Source(
            WRITTEN,
            r"uncore_imc_\d+",
            ["cas_count_write", "cas_count_write_sch0", "cas_count_write_sch1"],
            evidence=_INTEL,
        ),
        Source(
            WRITTEN,
            r"amd_umc_\d+",
            fields=[{"event": 0x0A, "rdwrmask": 2}],
            evidence="perf: amdzen4/memory-controller.json, umc_cas_cmd.wr",
        ),
    ),
    (
        Source(
            MOVED,
            "amd_df",
            fields=[{"event": event, "umask": 0x38} for event in _CHANNELS],
            models=_DATA_FABRIC_OF_ZEN,
            evidence="perf: amdzen2, amdzen3/data-fabric.json, dram_channel_data_controller_*",
        ),
        Source(
            MOVED,
            r"arm_cmn_\d+",
            ["hnf_mc_reqs", "hns_mc_reqs_local_all", "hns_mc_reqs_remote_all"],
            evidence="drivers/perf/arm-cmn.c: requests of the home nodes to memory controllers",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One event of one unit, and what it adds to a quantity."""

    metric: str
    unit: Unit
    name: str
    attr: Attr
    scale: float  # of one count, in joules or bytes
    once: bool = False  # whichever CPU of a package it is read through, it is the whole package's


def wanted(root: Path = Path("/")) -> tuple[list[Wanted], list[str]]:
    """Every event that this machine's units have for the quantities above, and in sentences what could not be read."""
    chosen: list[Wanted] = []
    problems: list[str] = []
    for sources in _ALTERNATIVES:
        found: list[Wanted] = []
        for source in sources:
            try:
                found = found or _events(source, root)
            except CastmatesError as problem:  # of a kernel newer than this table: the launch goes on without it
                problems.append(str(problem))
        # What is moved is counted only where reads and writes are not.
        if found and (found[0].metric != MOVED or not {READ, WRITTEN} & {event.metric for event in chosen}):
            chosen += found
    return chosen, problems


def _events(source: Source, root: Path) -> list[Wanted]:
    if source.models is not None and not _is_model(source.models, root):
        return []
    events: list[Wanted] = []
    lacking: list[str] = []
    once = source.is_energy and energy_is_the_package_s(root)
    for unit in package_units(source.units, root):
        before = len(events)
        for name in source.names:
            if (terms := unit.named(name)) is not None:
                scale, of = unit.scale(name)
                if of in _SIZES:
                    events.append(Wanted(source.metric, unit, name, unit.attr(terms), scale * _SIZES[of], once))
        events += [
            Wanted(source.metric, unit, ",".join(f"{field}={value:#x}" for field, value in terms.items()), attr, LINE)
            for terms in source.fields
            for attr in [unit.attr(terms)]
        ]
        lacking += [unit.name] if len(events) == before else []
    if events and lacking:  # the sum of the others is not the package's
        raise CastmatesError(
            f"{lacking[0]} has no event for '{MEANINGS[source.metric]}', unlike {events[0].unit.name}."
        )
    return events


def energy_is_the_package_s(root: Path = Path("/")) -> bool:
    """Check whether this processor has one counter of energy for a package, whatever dies it has."""
    return host.cpuinfo(root).get("vendor_id") in _ONE_A_PACKAGE


def _is_model(models: Mapping[int, Sequence[int]], root: Path) -> bool:
    shown = host.cpuinfo(root)
    try:
        family, model = int(shown["cpu family"]), int(shown["model"])
    except (KeyError, ValueError):
        return False
    return shown.get("vendor_id") == "AuthenticAMD" and model in models.get(family, ())
