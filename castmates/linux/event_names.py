"""The kernel's own events by name, for machines that have no perf to ask, and for castmates/inside."""

import itertools
import re

from castmates.linux.perf_event import EXCLUDE_HV, EXCLUDE_KERNEL, EXCLUDE_USER, HARDWARE, HW_CACHE, RAW, SOFTWARE, Attr

_HARDWARE = {
    "cycles": 0,
    "cpu-cycles": 0,
    "instructions": 1,
    "cache-references": 2,
    "cache-misses": 3,
    "branches": 4,
    "branch-instructions": 4,
    "branch-misses": 5,
    "bus-cycles": 6,
    "stalled-cycles-frontend": 7,
    "stalled-cycles-backend": 8,
    "ref-cycles": 9,
}
_SOFTWARE = {
    "cpu-clock": 0,
    "task-clock": 1,
    "page-faults": 2,
    "faults": 2,
    "context-switches": 3,
    "cs": 3,
    "cpu-migrations": 4,
    "migrations": 4,
    "minor-faults": 5,
    "major-faults": 6,
    "alignment-faults": 7,
    "emulation-faults": 8,
}
_CACHES = {"L1-dcache": 0, "L1-icache": 1, "LLC": 2, "dTLB": 3, "iTLB": 4, "branch": 5, "node": 6}
_ACCESSES = {"load": 0, "store": 1, "prefetch": 2}
_MODIFIERS = re.compile(r"(.+?)(?::([ukh]+))?")
# They happen in the kernel, so that a count without its part would be a false zero.
IN_KERNEL = frozenset((SOFTWARE, _SOFTWARE[name]) for name in ("context-switches", "cpu-migrations"))


def _tabled() -> dict[str, Attr]:
    table = {name: Attr(HARDWARE, config) for name, config in _HARDWARE.items()}
    table |= {name: Attr(SOFTWARE, config) for name, config in _SOFTWARE.items()}
    for (cache, where), (access, how) in itertools.product(_CACHES.items(), _ACCESSES.items()):
        plural = "es" if access == "prefetch" else "s"
        table[f"{cache}-{access}{plural}"] = Attr(HW_CACHE, where | how << 8)
        table[f"{cache}-{access}-misses"] = Attr(HW_CACHE, where | how << 8 | 1 << 16)
    return table


TABLE = _tabled()


def is_software(words: str) -> bool:
    """Whether the kernel counts this event itself, without a hardware counter."""
    attr = look_up(words)
    return attr is not None and attr.kind == SOFTWARE


def look_up(words: str) -> Attr | None:
    """Return the event of this name, with perf's modifiers u, k and h; None where the table has none."""
    match = _MODIFIERS.fullmatch(words)
    if match is None:
        return None
    name, modifiers = match.groups()
    raw = re.fullmatch(r"r([0-9a-f]{1,16})", name)
    plain = Attr(RAW, int(raw[1], 16)) if raw else TABLE.get(name)
    if plain is None or not modifiers:
        return plain
    wanted = {"u": EXCLUDE_USER, "k": EXCLUDE_KERNEL, "h": EXCLUDE_HV}
    return plain._replace(exclude=sum(bit for letter, bit in wanted.items() if letter not in modifiers))
