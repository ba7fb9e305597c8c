"""What can be counted of a package, and where: one table of data, from the kernel's drivers and perf's event lists.

Of each quantity the first source counts whose units the machine has. Where sysfs names an event, its fields and its
scale are taken from there, so that a later processor of the same family needs no new row.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.linux.kernel_files import CPU_DIR, read_int, read_text
from castmates.linux.perf_event import PERF_DEVICES, Attr

# The kernel's counting units (PMUs) outside of the cores' own counters, as sysfs describes them; and their events.

_NUMBER = re.compile(r"\d+")
_TERM = re.compile(r"([\w-]+)(?:=(0x[0-9a-fA-F]+|\d+))?")
_FIELD = re.compile(r"(config[12]?):(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)")

Terms = Mapping[str, int]  # the fields of an event: event, umask …


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit, such as uncore_imc_3: what counts on one or several packages."""

    name: str
    folder: Path
    kind: int  # its number, which the kernel gives out anew at each start
    cpus: tuple[int, ...]  # through which it is read: one CPU of each package, or die, that it counts

    def named(self, event: str) -> Terms | None:
        """Return the fields of an event that sysfs names; None where this unit has no such event."""
        text = read_text(self.folder / "events" / event)
        return None if text is None else parse_terms(text, f"{self.name}/{event}")

    def scale(self, event: str) -> tuple[float, str]:
        """Return what sysfs multiplies a count of this event with, and the unit that this gives; 1 and "" if none."""
        scale, unit = (read_text(self.folder / "events" / f"{event}.{part}") for part in ("scale", "unit"))
        try:
            return (float(scale) if scale else 1.0), unit or ""
        except ValueError:
            raise CastmatesError(f"{self.folder}/events/{event}.scale is {scale!r}, and no number.") from None

    def attr(self, terms: Terms) -> Attr:
        """Put the fields of an event where this unit's `format` files want them."""
        configs = {"config": 0, "config1": 0, "config2": 0}
        for field, value in terms.items():
            word, bits = self._place(field)
            if value >> len(bits):
                raise CastmatesError(f"{self.name}: {field}={value:#x} does not fit into {len(bits)} bits.")
            configs[word] |= sum(1 << bit for number, bit in enumerate(bits) if value >> number & 1)
        return Attr(self.kind, configs["config"], configs["config1"], configs["config2"])

    def _place(self, field: str) -> tuple[str, list[int]]:
        """Return the word of perf_event_attr that holds a field, and its bits there, the lowest first."""
        if field in ("config", "config1", "config2"):
            return field, list(range(64))
        text = read_text(self.folder / "format" / field)
        match = _FIELD.fullmatch(text or "")
        if match is None or match[1] not in ("config", "config1", "config2"):
            raise CastmatesError(f"{self.folder}/format/{field} is {text!r}, which does not show which bits it has.")
        ranges = [[int(number) for number in part.split("-")] for part in match[2].split(",")]
        return match[1], [bit for ends in ranges for bit in range(ends[0], ends[-1] + 1)]


def parse_terms(text: str, whose: str) -> dict[str, int]:
    """Read `event=0x04,umask=0x03`; a field without a value is 1."""
    terms = {}
    for part in text.split(","):
        match = _TERM.fullmatch(part.strip())
        if match is None:  # a field that the user has to give, for instance
            raise CastmatesError(f"the event {whose} is {text!r}, which castmates cannot read.")
        terms[match[1]] = int(match[2], 0) if match[2] else 1
    return terms


def package_units(pattern: str, root: Path = Path("/")) -> list[Unit]:
    """Every unit whose name matches, in the order of their numbers, that can be read through some CPU."""
    folders = [folder for folder in (root / PERF_DEVICES).glob("*") if re.fullmatch(pattern, folder.name)]
    found = []
    for folder in sorted(folders, key=lambda folder: (_NUMBER.sub("", folder.name), _numbers(folder.name))):
        kind, cpus = read_int(folder / "type"), _cpus(read_text(folder / "cpumask") or "")
        if kind is not None and cpus:
            found.append(Unit(folder.name, folder, kind, cpus))
    return found


def package_of(cpu: int, root: Path = Path("/")) -> int | None:
    """Return the package that a CPU is in; None where the kernel does not show it."""
    number = read_int(root / CPU_DIR / f"cpu{cpu}/topology/physical_package_id")
    return number if number is not None and number >= 0 else None


def packages_of(cpus: tuple[int, ...], root: Path = Path("/")) -> list[int]:
    """Return the packages that these CPUs are in."""
    return sorted({package for cpu in cpus if (package := package_of(cpu, root)) is not None})


def _numbers(name: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(name)]


def _cpus(text: str) -> tuple[int, ...]:
    """Read a list of CPUs such as `0,24`; nothing where it is something else."""
    ranges = [part.split("-") for part in text.split(",")]
    if not all(number.isdecimal() for ends in ranges for number in ends):
        return ()
    return tuple(cpu for ends in ranges for cpu in range(int(ends[0]), int(ends[-1]) + 1))


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
            READ, r"uncore_imc_\d+", ["cas_count_read", "cas_count_read_sch0", "cas_count_read_sch1"], evidence=_INTEL
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


# Energy counters as the power capping framework shows them, where perf's `power` unit cannot be had.

ZONES = "sys/class/powercap"
_PACKAGE = re.compile(r"package-(\d+)(?:-die-\d+)?")


@dataclass(frozen=True, slots=True)
class Zone:
    """One counter of microjoules, which starts again at 0 above its range."""

    metric: str
    package: int
    file: Path
    range: int

    def joules(self, before: int, after: int) -> float:
        """Return what passed between two readings, less than a whole range apart."""
        return ((after - before) % (self.range + 1)) / 1e6


def zones(packages: Sequence[int], root: Path = Path("/")) -> list[Zone]:
    """List the counters of these packages, and of their memory, that this user may read."""
    found: list[Zone] = []
    once = energy_is_the_package_s(root)
    for folder in sorted((root / ZONES).glob("intel-rapl:*")):
        top = folder.name.split(":")[:2]
        match = _PACKAGE.fullmatch(read_text(folder.with_name(":".join(top)) / "name") or "")
        is_top, name = len(folder.name.split(":")) == 2, read_text(folder / "name")
        metric = ENERGY if is_top else MEMORY_ENERGY if name == "dram" else None
        most = read_int(folder / "max_energy_range_uj")
        if match is None or metric is None or most is None or int(match[1]) not in packages:
            continue
        if once and any((zone.package, zone.metric) == (int(match[1]), metric) for zone in found):
            continue  # of another die, and the same counter
        if read_int(folder / "energy_uj") is not None:
            found.append(Zone(metric, int(match[1]), folder / "energy_uj", most))
    return found
