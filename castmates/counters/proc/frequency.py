"""The frequency of the launch's CPUs, at both edges of a window: an effect, recorded and never a reason."""

import time
from collections.abc import Sequence
from pathlib import Path

from castmates.counters.edges import BetweenEdges
from castmates.linux import host
from castmates.linux.kernel_files import CPU_DIR, read_int
from castmates.protocols import Sample

DRIVER = "scaling_cur_freq"
CPUINFO = "/proc/cpuinfo, in a guest often the nominal one"


class Frequency(BetweenEdges[list[Sample]]):
    """Reads each CPU's frequency from the kernel, and notes where the kernel shows it."""

    name = "frequency"

    def __init__(self, cpus: Sequence[int], root: Path = Path("/")) -> None:
        self._files = {cpu: root / CPU_DIR / f"cpu{cpu}/cpufreq" / DRIVER for cpu in cpus}
        self._root = root

    def _between(self, opening: list[Sample], closing: list[Sample]) -> list[Sample]:
        return opening + closing

    def about(self) -> dict[str, str]:
        """Return where the frequency is read."""
        return {
            "frequency_mhz": ", ".join(sorted({sample.note for sample in self._look()})) + "; two samples, one an edge"
        }

    @property
    def reads(self) -> bool:
        """Whether the kernel shows a frequency, and not the nominal one alone."""
        return any(sample.note == DRIVER for sample in self._look())

    def available(self) -> str | None:
        """Explain why there is nothing to read; None where there is something."""
        is_shown = any(sample.value is not None for sample in self._look())
        return None if is_shown else "this kernel shows no frequency of these CPUs"

    def _look(self) -> list[Sample]:
        now = time.monotonic_ns()
        khz = {cpu: read_int(file) for cpu, file in self._files.items()}
        without = {cpu for cpu, value in khz.items() if value is None}
        nominal = host.nominal_mhz(without, self._root) if without else {}
        samples = []
        for cpu, value in khz.items():
            mhz, note = (nominal.get(cpu), CPUINFO) if value is None else (value / 1e3, DRIVER)
            note = "not shown" if mhz is None else note
            samples.append(Sample(now, self.name, f"cpu{cpu}", "frequency_mhz", mhz, note))
        return samples


# How often the launch's CPUs, and their packages, were throttled for heat: an effect, never a reason.
#
# Whether the members made the heat or a fan failed does not show in a counter. So it was decided beforehand: throttle
# events are recorded as an effect, and no window is rejected for them. A power limit that lowers the clock is counted
# only where the kernel was started with `int_pln_enable`; elsewhere the clock itself and the package's energy show it.

CORE, PACKAGE = "core_throttles", "package_throttles"
LIMIT, PACKAGE_LIMIT = "core_power_limits", "package_power_limits"
COUNTS = {
    CORE: "core_throttle_count",
    PACKAGE: "package_throttle_count",
    LIMIT: "core_power_limit_count",
    PACKAGE_LIMIT: "package_power_limit_count",
}
OF_PACKAGES = (PACKAGE, PACKAGE_LIMIT)
NONE_HERE = "this kernel or processor counts no throttling (thermal_throttle is Intel's)"
Counts = dict[tuple[str, str], int | None]  # CPU and metric -> count


class Throttling(BetweenEdges[Counts]):
    """Counts throttle events between two edges."""

    name = "throttling"

    def __init__(self, cpus: Sequence[int], root: Path = Path("/")) -> None:
        files = {
            (f"cpu{cpu}", metric): root / CPU_DIR / f"cpu{cpu}/thermal_throttle" / count
            for cpu in cpus
            for metric, count in COUNTS.items()
        }
        self._files = {key: file for key, file in files.items() if read_int(file) is not None}
        packages = {cpu: read_int(root / CPU_DIR / f"cpu{cpu}/topology/physical_package_id") for cpu in cpus}
        self._package_of = {f"cpu{cpu}": number for cpu, number in packages.items() if number is not None}

    def _between(self, opening: Counts, closing: Counts) -> list[Sample]:
        """The differences, of CPUs and of packages."""
        now = time.monotonic_ns()
        samples = []
        for (subject, metric), after in closing.items():
            before = opening[subject, metric]
            value = None if before is None or after is None else float(after - before)
            note = "" if value is not None else "this CPU is offline"
            samples.append(Sample(now, self.name, subject, metric, value, note))
        return samples + self._of_packages(samples)

    def about(self) -> dict[str, str]:
        """Describe what is counted."""
        counted = sorted({metric for _, metric in self._files})
        return {
            "throttles": "thermal_throttle/*_count of each CPU; recorded, never a reason",
            "counted": ", ".join(counted),
            "for power limits": "yes" if LIMIT in counted else "no: the kernel was started without int_pln_enable",
        }

    def available(self) -> str | None:
        """Explain why there is nothing to count; None where there is something."""
        return None if self._files else NONE_HERE

    def _of_packages(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return the most that a CPU of a package counted of its events: the interrupt goes to all of its CPUs."""
        most: dict[tuple[int, str], Sample] = {}
        for sample in samples:
            package = self._package_of.get(sample.subject)
            if sample.metric in OF_PACKAGES and package is not None and sample.value is not None:
                known = most.get((package, sample.metric))
                if known is None or sample.value > (known.value or 0.0):
                    most[package, sample.metric] = sample
        return [
            Sample(sample.t_ns, self.name, f"package{package}", metric, sample.value, f"as {sample.subject} counted")
            for (package, metric), sample in sorted(most.items(), key=lambda item: item[0])
        ]

    def _look(self) -> dict[tuple[str, str], int | None]:
        return {key: read_int(file) for key, file in self._files.items()}
