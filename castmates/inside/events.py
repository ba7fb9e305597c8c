"""Events by the names that perf has for them, and how the kernel knows them."""

import re
from pathlib import Path
from typing import NamedTuple

from castmates.errors import CastmatesError
from castmates.linux.event_names import IN_KERNEL, TABLE
from castmates.linux.perf_event import EXCLUDE_KERNEL, EXCLUDE_USER, PERF_DEVICES, RAW, Attr


class Event(NamedTuple):
    """What perf_event_open is asked for."""

    name: str  # as it was given
    kind: int
    config: int
    config1: int = 0
    config2: int = 0
    user: bool = True
    kernel: bool = True

    @property
    def attr(self) -> Attr:
        """The event in the kernel's words."""
        exclude = (0 if self.user else EXCLUDE_USER) | (0 if self.kernel else EXCLUDE_KERNEL)
        return Attr(self.kind, self.config, self.config1, self.config2, exclude)

    @property
    def in_kernel_only(self) -> bool:
        """Whether it happens in the kernel alone, so that a count without the kernel would be a false zero."""
        return (self.kind, self.config) in IN_KERNEL


def event_of(text: str, root: Path = Path("/")) -> Event:
    """Read an event as perf spells it: a name, r01c2, or pmu/term=value,…/, each with :u or :k behind it."""
    word, colon, modes = text.partition(":")
    if "/" in text:
        word, _, modes = text.rpartition("/")
        word, colon, modes = f"{word}/", modes and ":", modes.removeprefix(":")
    if colon and modes not in ("u", "k", "uk", "ku"):
        raise _unknown(text)
    config = _named(word) or _raw(word) or _of_device(word, root)
    if config is None:
        raise _unknown(text)
    user, kernel = "u" in modes or not modes, "k" in modes or not modes
    return Event(text, *config, user=user, kernel=kernel)


Config = tuple[int, int, int, int]  # type, config, config1, config2


def _named(word: str) -> Config | None:
    attr = TABLE.get(word)
    return attr and (attr.kind, attr.config, attr.config1, attr.config2)


def _raw(word: str) -> Config | None:
    found = re.fullmatch(r"r([0-9a-fA-F]{1,16})", word)
    return (RAW, int(found[1], 16), 0, 0) if found else None


def _of_device(word: str, root: Path) -> Config | None:
    """Put the terms where the device's format has them; its own named events are looked up too."""
    found = re.fullmatch(r"([\w.-]+)/([^/]*)/", word)
    if found is None:
        return None
    device, configs = root / PERF_DEVICES / found[1], {"config": 0, "config1": 0, "config2": 0}
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
