"""What pqos prints: classes and cores, versions, complaints, and series of readings as CSV."""

import csv
import re
from dataclasses import dataclass

CacheMask = tuple[int, int]  # of data and of code; the same where the processor does not distinguish them

_CLASS = r"C(?:L)?OS"  # newer versions write CLOS
_DOMAIN = re.compile(rf"{_CLASS} definitions for (Socket|Domain ID|L3 Cluster \(or Core Complex\)) (\d+):")
_MASK = re.compile(
    rf"L3CA {_CLASS}(\d+) => (?:MASK 0x([0-9a-f]+)|DATA 0x([0-9a-f]+), ?CODE 0x([0-9a-f]+))", re.IGNORECASE
)
_THROTTLE = re.compile(rf"(?<!S)MBA {_CLASS}(\d+) => (\d+)(%| MBps)?")
_CORE = re.compile(rf"Core (\d+), .*?L3ID (\d+) => {_CLASS}(\d+)")
_SOCKET = re.compile(r"Core information for socket (\d+):")
_VERSION = re.compile(r"PQoS (Tool|Library) version: (\S+)", re.IGNORECASE)

# Lines that explain nothing: pqos prints the first two with every call, and the others beside the cause.
_NOTHING = ("NOTE:", "CAT or CMT & MBM", "WARN:", "Allocation configuration error", "Allocation association error")


@dataclass(frozen=True)
class State:
    """What is in force on the whole machine."""

    masks: dict[tuple[int, int], CacheMask]  # by last-level cache and class
    throttles: dict[tuple[int, int], int]  # by cache and class
    unit: str  # of the throttles: "%", "MiB/s" (which pqos calls MBps) or, AMD's, "1/8 GB/s"; "" without any
    cores: dict[int, tuple[int, int]]  # CPU -> its last-level cache and its class


@dataclass(frozen=True)
class Reading:
    """One line of a series."""

    stamp: str  # pqos' own time, to the second
    cpus: str  # as pqos writes them: "3"
    values: dict[str, float]  # by column; one that it left empty is not there


def parse_state(text: str) -> State:
    """Read what `pqos -s` prints."""
    masks: dict[tuple[int, int], CacheMask] = {}
    throttles: dict[tuple[int, int], int] = {}
    cores: dict[int, tuple[int, int]] = {}
    unit, domain, socket, by_socket = "", 0, 0, False
    for line in text.splitlines():
        if match := _DOMAIN.search(line):
            domain, by_socket = int(match[2]), match[1] == "Socket"
        elif match := _SOCKET.search(line):
            socket = int(match[1])
        elif match := _MASK.search(line):
            data = int(match[2] or match[3], 16)
            masks[domain, int(match[1])] = data, int(match[4], 16) if match[4] else data
        elif match := _THROTTLE.search(line):
            throttles[domain, int(match[1])] = int(match[2])
            unit = {"%": "%", " MBps": "MiB/s"}.get(match[3] or "", "1/8 GB/s")
        elif match := _CORE.search(line):
            # Where classes are listed by socket, a cache is known by it, and the caches' own numbers may be others.
            cores[int(match[1])] = socket if by_socket else int(match[2]), int(match[3])
    return State(masks, throttles, unit, cores)


def parse_version(text: str) -> str:
    """Read what `pqos --version` prints: the tool's, and the library's where it differs."""
    versions = {what.lower(): version for what, version in _VERSION.findall(text)}
    tool, library = versions.get("tool", "unknown"), versions.get("library", "unknown")
    return tool if library in (tool, "unknown") else f"{tool} with library {library}"


def parse_readings(text: str) -> list[Reading]:
    """Read what `pqos -u csv` prints, by its header: which columns there are depends on events, interface and version.

    A last line without its end was cut when the tool was ended.
    """
    lines = text.split("\n")[:-1]
    begin = next((number for number, line in enumerate(lines) if line.startswith("Time,")), len(lines))
    readings = []
    for row in csv.DictReader(lines[begin:]):
        values = {name: _float(cell) for name, cell in row.items() if name not in ("Time", "Core", None)}
        known = {name: value for name, value in values.items() if value is not None}
        readings.append(Reading(row.get("Time") or "", row.get("Core") or "", known))
    return readings


def complaint(output: str, errors: str) -> str:
    """Turn what pqos prints when it fails into part of one sentence."""
    lines = [line.strip() for line in (*errors.splitlines(), *output.splitlines())]
    useful = [line for line in lines if line and not line.startswith(_NOTHING) and not line.endswith("- FAILED!")]
    chosen = list(dict.fromkeys(line.removeprefix("ERROR: ").rstrip("!. ") for line in useful))[:2]
    return "; ".join(chosen) or "it gave no reason"


def _float(cell: object) -> float | None:
    try:
        return float(str(cell))
    except ValueError:
        return None
