"""Utilisation, memory, power and clocks of NVIDIA's GPUs while a window is open; they belong to no member.

Not tried on a GPU yet (docs/gpu.md).
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from castmates.linux.nvml import Gpus, reasons_text
from castmates.protocols import Sample
from castmates.sampler import Sampler

NAME = "gpu"
PERIOD_S = 0.1
UTILISATION, MEMORY, WATTS, ENERGY_W = "gpu_utilisation", "gpu_memory", "gpu_w", "gpu_mean_w"
SM, MEMORY_CLOCK, HEAT, HELD_DOWN = "gpu_sm_ghz", "gpu_memory_ghz", "gpu_celsius", "gpu_held_down"
MEANINGS = {
    UTILISATION: "per cent of NVML's last sample period with a kernel running",
    MEMORY: "bytes taken on the GPU, by whomever",
    WATTS: "watts, as NVML shows them",
    ENERGY_W: "mean watts of the window: energy at its edges over its time",
    SM: "clock of its multiprocessors",
    MEMORY_CLOCK: "clock of its memory",
    HEAT: "its temperature",
    HELD_DOWN: "1 where its clock is held down (power or heat), else 0",
}


class GpuReadings:
    """Reads all GPUs at the edges of a window and ten times a second between them."""

    name = NAME
    inside_windows = True

    def __init__(self, root: Path = Path("/")) -> None:
        self._gpus = Gpus(root)
        self._series: Sampler | None = None
        self._opening: tuple[int, list[float | None]] = (0, [])

    def available(self) -> str | None:
        """Explain why there is nothing to read; None where there is something."""
        return self._gpus.lack or None

    def attach(self, members: Mapping[str, int]) -> None:
        """Watch nothing more: a GPU is everybody's."""

    def start(self, active: Sequence[str]) -> None:  # noqa: ARG002
        """Begin to read."""
        self._opening = time.monotonic_ns(), self._gpus.joules()
        self._series = Sampler(NAME, self._look, PERIOD_S, edges=True)
        self._series.start()

    def stop(self) -> list[Sample]:
        """End the series, and return it with the mean power over the window."""
        if self._series is None:
            return []
        samples, self._series = self._series.finish(), None
        begun, before = self._opening
        now, after = time.monotonic_ns(), self._gpus.joules()
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            known = one is not None and other is not None and now > begun
            watts = (other - one) / ((now - begun) / 1e9) if known else None  # type: ignore[operator]
            note = "" if known else "this GPU counts no energy"
            samples.append(Sample(now, NAME, f"gpu{number}", ENERGY_W, watts, note))
        return samples

    def close(self) -> None:
        """End what still reads; safe to call twice."""
        if self._series is not None:
            self._series.finish()
            self._series = None

    def about(self) -> dict[str, str]:
        """Describe what is read, of which GPUs."""
        return {f"gpu{number}": name for number, name in enumerate(self._gpus.names())} | MEANINGS

    def _look(self) -> list[Sample]:
        samples: list[Sample] = []
        for number, look in enumerate(self._gpus.look()):
            sample = partial(Sample, time.monotonic_ns(), NAME, f"gpu{number}")
            held = "" if look.reasons is None else reasons_text(look.reasons)
            samples += [
                sample(UTILISATION, look.utilisation),
                sample(MEMORY, look.memory_bytes),
                sample(WATTS, look.watts),
                sample(SM, _giga(look.sm_mhz)),
                sample(MEMORY_CLOCK, _giga(look.memory_mhz)),
                sample(HEAT, look.celsius),
                sample(HELD_DOWN, None if look.reasons is None else float(bool(held)), held),
            ]
        return samples


def _giga(mega: float | None) -> float | None:
    return None if mega is None else mega / 1e3
