"""Power of the modelled machine: what its packages have drawn on average, the clock that is left, and who reads both.

A package may draw its budget on average over some seconds. What runs beside a program therefore lowers the program's
clock later, and for longer than it runs: turns that are shorter than that spread the loss over all scenes.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from castmates.counters.edges import BetweenEdges
from castmates.protocols import Sample
from castmates.study.modelled import MachineModel, PowerModel

STEPS = 20  # pieces of the averaging time, in each of which the clock is held


class Busy(Protocol):
    """Something that is on CPUs."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return them."""


class Packages:
    """The average power of each package, its energy and its clock so far."""

    def __init__(self, machine: MachineModel, power: PowerModel) -> None:
        self._machine, self.power = machine, power
        self._average = [power.idle] * machine.domains
        self.joules = [0.0] * machine.domains
        self.clock_s = [0.0] * machine.domains  # the share of the full clock, added up over the seconds

    @property
    def longest(self) -> float:
        """Seconds that may pass at once."""
        return self.power.memory / STEPS

    def pass_time(self, running: Sequence[Busy], seconds: float) -> list[float]:
        """Let the time pass, and return each package's clock in it, as a share of the full one."""
        clocks = []
        for number, demand in enumerate(self._demands(running)):
            before = self._average[number]
            middle, after = (
                demand + (before - demand) * math.exp(-part * seconds / self.power.memory) for part in (0.5, 1.0)
            )
            clock = self.power.clock_at(middle)
            self._average[number] = after
            self.joules[number] += (self.power.idle + (demand - self.power.idle) * clock**3) * seconds
            self.clock_s[number] += clock * seconds
            clocks.append(clock)
        return clocks

    def steady(self, running: Sequence[Busy]) -> list[float]:
        """Return each package's clock when these have run for long."""
        return [self.power.clock_at(demand) for demand in self._demands(running)]

    def clock_of(self, process: Busy, clocks: Sequence[float]) -> float:
        """Return the clock of a process: the mean over its CPUs."""
        return sum(clocks[self._machine.domain_of(cpu)] for cpu in process.cpus) / len(process.cpus)

    def _demands(self, running: Sequence[Busy]) -> list[float]:
        busy = {cpu for process in running for cpu in process.cpus}
        return [
            self.power.drawn(len(busy.intersection(self._machine.around(number))))
            for number in range(self._machine.domains)
        ]


def slowed(rate: float, compute: float, clock: float) -> float:
    """Return the rate at a lower clock: computing takes longer, waiting does not."""
    return 1 / (1 / rate + compute * (1 / clock - 1)) if clock < 1 else rate


class Clock(Protocol):
    """The modelled machine, as far as its power is read."""

    now_ns: int
    packages: Packages | None

    def cpus_in_use(self) -> list[int]:
        """Return the CPUs on which somebody runs."""


Edge = tuple[int, list[float], list[float]]  # when; joules, and seconds at full clock, by package


class PowerReader(BetweenEdges[Edge]):
    """Reads energy and clocks at both edges, as the collectors of a real machine do."""

    name = "package"

    def __init__(self, world: Clock, packages: Packages, machine: MachineModel) -> None:
        self._world, self._packages, self._machine = world, packages, machine

    def _between(self, opening: Edge, closing: Edge) -> list[Sample]:
        """Watts of packages and GHz of CPUs."""
        now, joules, clocks = closing
        seconds = (now - opening[0]) / 1e9
        if seconds <= 0:
            return []
        samples = []
        for number in range(self._machine.domains):
            watts = (joules[number] - opening[1][number]) / seconds
            samples.append(Sample(now, self.name, f"package{number}", "package_w", watts))
        for cpu in self._world.cpus_in_use():
            number = self._machine.domain_of(cpu)
            ghz = (clocks[number] - opening[2][number]) / seconds * self._packages.power.clock
            samples.append(Sample(now, "busy_clock", f"cpu{cpu}", "busy_ghz", ghz))
            samples.append(Sample(now, "busy_clock", f"cpu{cpu}", "unhalted_s", seconds))
        return samples

    def about(self) -> dict[str, str]:
        """Describe the model."""
        power = self._packages.power
        return {
            "package_w, busy_ghz": f"modelled: {power.budget:g} W on average over {power.memory:g} s",
        }

    def _look(self) -> Edge:
        return self._world.now_ns, list(self._packages.joules), list(self._packages.clock_s)
