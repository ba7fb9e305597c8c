"""The kernel's counting units (PMUs) outside of the cores' own counters, as sysfs describes them; and their events."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.kernel_files import CPU_DIR, read_int, read_text
from castmates.linux.perf_event import PERF_DEVICES, Attr

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
