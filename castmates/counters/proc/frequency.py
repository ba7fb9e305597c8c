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
