"""Read what toplev of pmu-tools wrote with -x, and make rows of the table `topdown` of it.

toplev is not a dependency: it is run separately, here or elsewhere, and its file is read.
"""

import csv
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.study.counter_keys import Category, category

SOURCE = "toplev"
# What categories were called before TMA settled on its names; toplev also cuts their parents' names short.
OLD_NAMES = {
    "fe_latency": "Fetch_Latency",
    "fe_bandwidth": "Fetch_Bandwidth",
    "frontend_latency": "Fetch_Latency",
    "frontend_bandwidth": "Fetch_Bandwidth",
    "branch_mispred": "Branch_Mispredicts",
    "mem_bound": "Memory_Bound",
    "base": "Light_Operations",
    "microcode_sequencer": "Heavy_Operations",
}
WHOLE = 0.99
ROUNDED = 0.01  # by which multiplexing makes a share seem less than none or more than all
_HEADING = ("Timestamp", "CPUs", "Area")
_PLACE = re.compile(r"S\d+-(D\d+-)?C\d+(-T\d+)?|C\d+(-T\d+)?|CPU\d+|S\d+|\d+")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Reading:
    """One line of toplev about a category of the tree."""

    t_s: float | None  # end of the interval, of -I
    where: str  # S0-C0, C3, C3-T1; "" where toplev saw but one
    category: Category
    value: float  # of one
    running: float | None
    below_threshold: bool

    @property
    def is_share(self) -> bool:
        """Whether it can be a part of slots, rounding aside: toplev's formulas also give what cannot."""
        return -ROUNDED <= self.value <= 1 + ROUNDED

    @property
    def status(self) -> str:
        """How it was counted, as in the table `topdown`."""
        if not self.is_share:
            return "not counted"
        return "counted" if self.running is None or self.running >= WHOLE else "scaled"

    @property
    def note(self) -> str:
        """What has to be known besides."""
        if not self.is_share:
            return f"toplev wrote {self.value:.1%}, which is no share of slots"
        return "below TMA's threshold" if self.below_threshold else ""


def read_toplev(text: str) -> list[Reading]:
    """Read all categories of the tree that toplev wrote; other metrics and its counters' shares are passed over."""
    readings: list[Reading] = []
    multiplex: int | None = None
    try:
        lines = list(csv.reader(text.splitlines()))
    except csv.Error as problem:
        raise CastmatesError(f"it is no CSV of toplev: {problem}.") from None
    for number, fields in enumerate(lines, start=1):
        cells = [field.strip() for field in fields]
        if not any(cells) or cells[0].startswith("#"):
            continue
        if set(cells) & set(_HEADING):
            multiplex = cells.index("Multiplex") - cells.index("Area") if "Multiplex" in cells else None
            continue
        readings += _reading(number, cells, multiplex)
    if not readings:
        raise CastmatesError("there is no Top-Down category in it: expected what `toplev -x, -v -l2 -o FILE` wrote.")
    return readings


def rows(readings: Sequence[Reading], study: str, member: str, scene: str, platform: str) -> list[dict[str, Any]]:
    """Return rows of `topdown`; each of toplev's intervals is a separate window."""
    times = sorted({reading.t_s for reading in readings if reading.t_s is not None})
    return [
        {
            "study": study,
            "cohort": "",
            "launch": 0,
            "window": times.index(reading.t_s) + 1 if reading.t_s is not None else 1,
            "round": 0,
            "scene": scene,
            "member": member,
            "level": reading.category.level,
            "metric": reading.category.name,
            "value": reading.value if reading.is_share else float("nan"),
            "status": reading.status,
            "running": float("nan") if reading.running is None else reading.running,
            "scope": reading.where,
            "source": SOURCE,
            "phase": "",
            "note": reading.note,
            "platform": platform,
        }
        for reading in readings
    ]


def _reading(number: int, cells: list[str], multiplex: int | None) -> Iterator[Reading]:
    rest = list(cells)
    time = float(rest.pop(0)) if _NUMBER.fullmatch(rest[0]) and "." in rest[0] else None
    where = rest.pop(0) if rest and _PLACE.fullmatch(rest[0]) else ""
    if len(rest) < 3 or not _NUMBER.fullmatch(rest[1].rstrip("%")):
        line = ",".join(cells)[:60]
        raise CastmatesError(f"line {number} is not CSV of toplev: expected an area, a number and a unit in '{line}'.")
    area, value, unit = rest[:3]
    name = area.split()[-1].rpartition(".")[2]
    known = category(OLD_NAMES.get(name.lower(), name))
    if known is None or not unit.startswith("%"):
        return
    # Without a heading (version 3): area, value, unit, description, sample, standard deviation, multiplexing.
    share = rest[multiplex if multiplex is not None else 6] if len(rest) > (multiplex or 6) else ""
    running = float(share) / 100 if _NUMBER.fullmatch(share) else None
    yield Reading(time, where, known, float(value.rstrip("%")) / 100, running, unit.endswith("<"))


# Run toplev of pmu-tools, which the user has somewhere, on a command.

LAST_WORDS = 3


def run_toplev(toplev: Path, python: str, level: int, output: Path, command: Sequence[str]) -> None:
    """Have toplev count a command up to this level and write CSV; `python` is the interpreter that it runs in."""
    if not toplev.is_file():
        raise CastmatesError(
            f"{toplev}: there is no toplev; get pmu-tools (github.com/andikleen/pmu-tools) and give its toplev.py."
        )
    words = [python, str(toplev), "-x,", f"-l{level}", "-v", "--no-desc", "-o", str(output), "--", *command]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    except OSError as problem:
        raise CastmatesError(
            f"{python} cannot be started ({problem.strerror}): give the interpreter of toplev."
        ) from None
    if done.returncode or not output.is_file():
        lines = done.stderr.decode(errors="replace").strip().splitlines()[-LAST_WORDS:]
        raise CastmatesError(f"toplev ended with status {done.returncode}: {'; '.join(lines) or 'it wrote nothing'}")
