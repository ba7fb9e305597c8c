"""What of the machine must stay as at the launch's begin: governors, limits of clocks, CPUs online, being awake.

A changed setting spoils every window from then on, so both edges are compared with the launch's begin. A lowered
scaling_max_freq is no fault while the kernel cools the processor: that is throttling, which is an effect.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from castmates.counters.edges import BetweenEdges
from castmates.linux.kernel_files import CPU_DIR, read_int, read_text
from castmates.linux.uncore_frequency import HIGHEST, LOWEST, domains
from castmates.protocols import Sample

GOVERNOR = ("scaling_governor", "scaling_min_freq", "scaling_max_freq")
COOLED = "scaling_max_freq"
TURBO = ("intel_pstate/no_turbo", "cpufreq/boost")
COOLERS = ("Processor", "cpufreq", "thermal-cpufreq", "intel_powerclamp")

Settings = dict[str, str]  # what it is called -> its value


class Asleep(NamedTuple):
    """The least and the most time (ns) that the machine slept since it was started, as two clocks show."""

    least: int
    most: int


class Edge(NamedTuple):
    """What is read at one edge of a window."""

    asleep: Asleep
    settings: Settings
    offline: list[int]
    coolers: int  # devices that hold the processor back for heat


class Conditions(BetweenEdges[Edge]):
    """Holds the settings of the machine at both edges of a window against those at the launch's begin."""

    name = "conditions"

    def __init__(self, cpus: Sequence[int], root: Path = Path("/")) -> None:
        self._cpus = tuple(cpus)
        self._base = root / CPU_DIR
        self._coolers = [
            folder / "cur_state"
            for folder in sorted((root / "sys/class/thermal").glob("cooling_device*"))
            if (read_text(folder / "type") or "").startswith(COOLERS)
        ]
        self._uncore = {
            f"{name} of {folder.name}": folder / name for folder in domains(root) for name in (LOWEST, HIGHEST)
        }
        self._begin: Settings = {}

    def attach(self, members: Mapping[str, int]) -> None:  # noqa: ARG002
        """Remember how the machine is set."""
        self._begin = self._look().settings  # without what cooling lowers: a launch may begin hot

    def _between(self, opening: Edge, closing: Edge) -> list[Sample]:
        """The notes name what is not as it was."""
        changed = [change for edge in (opening, closing) for change in changes(self._begin, edge.settings)]
        offline = sorted({*opening.offline, *closing.offline})
        now = time.monotonic_ns()
        metrics = [
            ("settings_changed", float(len(set(changed))), ", ".join(dict.fromkeys(changed))),
            ("cpus_offline", float(len(offline)), ", ".join(f"CPU {cpu}" for cpu in offline)),
            ("slept_s", slept_s(opening.asleep, closing.asleep), ""),
            ("coolers", float(max(opening.coolers, closing.coolers)), "cooling devices that held the processor back"),
        ]
        return [Sample(now, self.name, "host", metric, value, note) for metric, value, note in metrics]

    def about(self) -> dict[str, str]:
        """Describe how the machine was set when the launch began."""
        settings = [f"{what} {value}" for what, value in self._begin.items()]
        return {"at the launch's begin": ", ".join(settings) or "this kernel does not control the frequency"}

    def _look(self) -> Edge:
        offline = [cpu for cpu in self._cpus if read_int(self._base / f"cpu{cpu}/online") == 0]
        coolers = sum(bool(read_int(file)) for file in self._coolers)
        settings = self._settings()
        if coolers:
            settings = {what: word for what, word in settings.items() if not what.startswith(COOLED)}
        return Edge(read_asleep(), settings, offline, coolers)

    def _settings(self) -> Settings:
        files = {
            f"{name} of CPU {cpu}": self._base / f"cpu{cpu}/cpufreq/{name}" for cpu in self._cpus for name in GOVERNOR
        }
        files |= {name.partition("/")[2]: self._base / name for name in TURBO} | self._uncore
        return {what: word for what, file in files.items() if (word := read_text(file)) is not None}


def changes(before: Settings, after: Settings) -> list[str]:
    """Describe what is not as it was; what one of the edges does not show is not compared."""
    return [
        f"{what} was {value} and is {after[what]}"
        for what, value in before.items()
        if what in after and after[what] != value
    ]


def read_asleep() -> Asleep:
    """Read how far the clock that counts sleep is ahead of the one that does not."""
    first = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    last = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return Asleep(boot - last, boot - first)


def slept_s(before: Asleep, after: Asleep) -> float:
    """Return how long the machine slept in between, at least: 0 unless it is certain that it did."""
    return max(0, after.least - before.most) / 1e9
