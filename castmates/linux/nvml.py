"""What NVIDIA's driver shows of its GPUs, by its management library (NVML) and the package nvidia-ml-py.

Not tried on a GPU yet: written from NVIDIA's documentation of NVML, and tested against a stand-in for its library.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castmates.linux.kernel_files import read_pairs

DRIVER = "proc/driver/nvidia/version"
MEMORY_NODES = "proc/driver/nvidia/gpus/*/numa_status"  # which node of the kernel's a GPU's own memory is
NO_DRIVER = "no NVIDIA driver is loaded here"
NO_PACKAGE = (
    "there is an NVIDIA driver, and the Python package nvidia-ml-py is not installed: pip install castmates[gpu]"
)
# Bits of nvmlDeviceGetCurrentClocksThrottleReasons that hold the clock down; idle and settings of the user's do not.
REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}


@dataclass(frozen=True, slots=True)
class Look:
    """What a GPU showed at a moment; None where it shows nothing, as some do."""

    utilisation: float | None  # per cent of the last sample period (a sixth of a second to one) with a kernel running
    memory_bytes: float | None  # that are taken, by whomever
    watts: float | None  # mean of the last second on Ampere and later ones, a moment's before
    sm_mhz: float | None
    memory_mhz: float | None
    celsius: float | None
    reasons: int | None  # why its clock is held down


def memory_nodes(root: Path) -> frozenset[str]:
    """Return the numbers of the kernel's nodes that are the memory of a GPU."""
    return frozenset(node for status in root.glob(MEMORY_NODES) if (node := read_pairs(status).get("Node")))


class Gpus:
    """The GPUs of this machine, as NVML shows them; `close` lets go of the library."""

    def __init__(self, root: Path = Path("/")) -> None:
        """Open the library; `lack` has the reason where there is nothing to read."""
        self._nvml: Any = None
        self._handles: list[Any] = []
        self._is_open = False
        self.lack = self._opened(root)

    def names(self) -> list[str]:
        """What each GPU is, with its driver."""
        driver = _text(self._asked("nvmlSystemGetDriverVersion")) if self._handles else ""
        return [f"{_text(self._asked('nvmlDeviceGetName', one))}, driver {driver}" for one in self._handles]

    def look(self) -> list[Look]:
        """Read every GPU."""
        return [self._look(handle) for handle in self._handles]

    def joules(self) -> list[float | None]:
        """Return the energy of every GPU since its driver was loaded; from Volta on they count it."""
        counted = [self._asked("nvmlDeviceGetTotalEnergyConsumption", one) for one in self._handles]
        return [None if one is None else one / 1e3 for one in counted]

    def close(self) -> None:
        """Let go of the library; safe to call twice."""
        if self._is_open:
            self._asked("nvmlShutdown")
        self._is_open, self._handles = False, []

    def _opened(self, root: Path) -> str:
        if not (root / DRIVER).exists():
            return NO_DRIVER
        try:
            self._nvml = importlib.import_module("pynvml")
        except ImportError:
            return NO_PACKAGE
        try:
            self._nvml.nvmlInit()
            self._is_open = True
            count = self._nvml.nvmlDeviceGetCount()
            self._handles = [self._nvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
        except self._nvml.NVMLError as error:
            return f"NVML refuses: {error}"
        return "" if self._handles else "the NVIDIA driver shows no GPU"

    def _look(self, handle: Any) -> Look:  # noqa: ANN401 (NVML's own)
        nvml = self._nvml
        rates = self._asked("nvmlDeviceGetUtilizationRates", handle)
        memory = self._asked("nvmlDeviceGetMemoryInfo", handle)
        milliwatts = self._asked("nvmlDeviceGetPowerUsage", handle)
        return Look(
            utilisation=None if rates is None else float(rates.gpu),
            memory_bytes=None if memory is None else float(memory.used),
            watts=None if milliwatts is None else milliwatts / 1e3,
            sm_mhz=self._asked("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM),
            memory_mhz=self._asked("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_MEM),
            celsius=self._asked("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU),
            reasons=self._asked("nvmlDeviceGetCurrentClocksThrottleReasons", handle),
        )

    def _asked(self, function: str, *words: Any) -> Any:  # noqa: ANN401
        """What NVML answers; None where this GPU or driver does not show it."""
        try:
            return getattr(self._nvml, function)(*words)
        except self._nvml.NVMLError:
            return None


def seen(root: Path = Path("/")) -> dict[str, object]:
    """The GPUs of this machine by name, and why there is nothing to read of them."""
    gpus = Gpus(root)
    try:
        return {"names": gpus.names(), "lack": gpus.lack}
    finally:
        gpus.close()


def reasons_text(reasons: int) -> str:
    """Name what holds a clock down; "" where nothing does."""
    return ", ".join(words for bit, words in REASONS.items() if reasons & bit)


def _text(words: Any) -> str:  # noqa: ANN401 (older releases of the package give bytes)
    return words.decode() if isinstance(words, bytes) else str(words)
