"""Events by the names that perf has for them, and how the kernel knows them."""

import re
from pathlib import Path
from typing import NamedTuple

from castmates.errors import CastmatesError

HARDWARE, SOFTWARE, CACHE, RAW = 0, 1, 3, 4
DEVICES = Path("sys/bus/event_source/devices")
CLOCKS = (0, 1)  # configs of cpu-clock and task-clock
IN_KERNEL_ONLY = ("context-switches", "cpu-migrations")  # without the kernel they would be false zeros

_SOFTWARE = {
    "cpu-clock": 0,
    "task-clock": 1,
    "page-faults": 2,
    "context-switches": 3,
    "cpu-migrations": 4,
    "minor-faults": 5,
    "major-faults": 6,
    "alignment-faults": 7,
    "emulation-faults": 8,
}
_HARDWARE = {
    "cycles": 0,
    "instructions": 1,
    "cache-references": 2,
    "cache-misses": 3,
    "branches": 4,
    "branch-misses": 5,
    "bus-cycles": 6,
    "stalled-cycles-frontend": 7,
    "stalled-cycles-backend": 8,
    "ref-cycles": 9,
}
_OTHER_NAMES = {"faults": "page-faults", "cs": "context-switches", "migrations": "cpu-migrations"}
_OTHER_NAMES |= {"cpu-cycles": "cycles", "branch-instructions": "branches"}
_CACHES = {"L1-dcache": 0, "L1-icache": 1, "LLC": 2, "dTLB": 3, "iTLB": 4, "branch": 5, "node": 6}
_OPERATIONS = {"load": 0, "store": 1, "prefetch": 2}


class Event(NamedTuple):
    """What perf_event_open is asked for."""

    name: str  # as it was given
    kind: int
    config: int
    config1: int = 0
    config2: int = 0
    user: bool = True
    kernel: bool = True
    in_kernel_only: bool = False


def event_of(text: str, root: Path = Path("/")) -> Event:
    """Read an event as perf spells it: a name, r01c2, or pmu/term=value,…/, each with :u or :k behind it."""
    word, colon, modes = text.partition(":")
    if "/" in text:
        word, _, modes = text.rpartition("/")
        word, colon, modes = f"{word}/", modes and ":", modes.removeprefix(":")
    if colon and modes not in ("u", "k", "uk", "ku"):
        raise _unknown(text)
    found = _named(word) or _raw(word) or _of_device(word, root)
    if found is None:
        raise _unknown(text)
    user, kernel = "u" in modes or not modes, "k" in modes or not modes
    only = _OTHER_NAMES.get(word, word) in IN_KERNEL_ONLY
    return Event(text, *found, user=user, kernel=kernel, in_kernel_only=only)


Config = tuple[int, int, int, int]  # type, config, config1, config2


def _named(word: str) -> Config | None:
    word = _OTHER_NAMES.get(word, word)
    if word in _SOFTWARE:
        return SOFTWARE, _SOFTWARE[word], 0, 0
    if word in _HARDWARE:
        return HARDWARE, _HARDWARE[word], 0, 0
    cache, _, what = word.rpartition("-")
    missed = what == "misses"
    if missed:
        cache, _, what = cache.rpartition("-")
    operation = what if missed else {"loads": "load", "stores": "store", "prefetches": "prefetch"}.get(what, "")
    if cache not in _CACHES or operation not in _OPERATIONS:
        return None
    return CACHE, _CACHES[cache] | _OPERATIONS[operation] << 8 | missed << 16, 0, 0


def _raw(word: str) -> Config | None:
    found = re.fullmatch(r"r([0-9a-fA-F]{1,16})", word)
    return (RAW, int(found[1], 16), 0, 0) if found else None


def _of_device(word: str, root: Path) -> Config | None:
    """Put the terms where the device's format says; its own named events are looked up too."""
    found = re.fullmatch(r"([\w.-]+)/([^/]*)/", word)
    if found is None:
        return None
    device, configs = root / DEVICES / found[1], {"config": 0, "config1": 0, "config2": 0}
    try:
        kind = int((device / "type").read_text())
        terms = found[2].split(",")
        named = device / "events" / terms[0]
        terms[:1] = named.read_text().strip().split(",") if named.is_file() else terms[:1]
        for term in terms:
            name, _, value = term.partition("=")
            if name != "name":
                _put(configs, (device / "format" / name).read_text().strip(), int(value or "1", 0))
    except (OSError, ValueError, KeyError):
        return None
    return kind, configs["config"], configs["config1"], configs["config2"]


def _put(configs: dict[str, int], places: str, value: int) -> None:
    """Spread a value over the bits that a format names, such as config:0-7,32-35."""
    config, _, ranges = places.partition(":")
    for bits in ranges.split(","):
        low, _, high = bits.partition("-")
        width = int(high or low) - int(low) + 1
        configs[config] |= (value & ((1 << width) - 1)) << int(low)
        value >>= width
    if value:
        raise ValueError(f"more bits than {places} has")


def _unknown(text: str) -> CastmatesError:
    return CastmatesError(
        f"'{text}' is no event that can be counted from inside: give a name of `perf list` such as instructions, "
        "page-faults or L1-dcache-load-misses, a raw code such as r01c2, or cpu/event=0xc0,umask=0x01/."
    )
