"""Whether a monitoring group's traffic has a counter of the hardware: by chance, or assigned (`mbm_assign_mode`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

TRAFFIC = ("mbm_total_bytes", "mbm_local_bytes")
DEFAULT, ASSIGNED = "default", "mbm_event"
BY_CHANCE = ("", DEFAULT)  # the modes in which the hardware chooses whom it counts; "" on kernels without the choice
FREE = "_"  # in mbm_L3_assignments: no counter
COUNTED = "e"


@dataclass(frozen=True, slots=True)
class Assignment:
    """What info/L3_MON shows of counters for traffic."""

    mode: str = ""  # default, mbm_event, or "" where the kernel has no such choice
    offered: tuple[str, ...] = ()
    counters: Mapping[int, int] = field(default_factory=dict)  # of each cache
    free: Mapping[int, int] = field(default_factory=dict)

    @property
    def assigned(self) -> bool:
        """Whether groups are counted only by the counters that were assigned to them."""
        return self.mode == ASSIGNED


def assignment(files: Mapping[str, str | None]) -> Assignment:
    """Read the files of info/L3_MON, of which each may be missing."""
    modes = (files.get("mbm_assign_mode") or "").split()
    chosen = next((mode[1:-1] for mode in modes if mode.startswith("[") and mode.endswith("]")), "")
    return Assignment(
        chosen,
        tuple(mode.strip("[]") for mode in modes),
        _by_cache(files.get("num_mbm_cntrs")),
        _by_cache(files.get("available_mbm_cntrs")),
    )


def assignments(text: str) -> dict[str, dict[int, str]]:
    """Read a group's mbm_L3_assignments, `mbm_total_bytes:0=e;1=_`: event -> cache -> state."""
    states: dict[str, dict[int, str]] = {}
    for line in text.split():
        event, _, caches = line.partition(":")
        pairs = (pair.partition("=") for pair in caches.split(";"))
        states[event] = {int(cache): state for cache, _, state in pairs if cache.isdecimal()}
    return states


def _by_cache(text: str | None) -> dict[int, int]:
    pairs = ([part.strip() for part in pair.split("=")] for pair in (text or "").split(";"))
    return {int(pair[0]): int(pair[1]) for pair in pairs if len(pair) == 2 and all(part.isdecimal() for part in pair)}
