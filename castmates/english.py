"""How numbers, counts, lists and durations are written, in the terminal and on the page; pure."""

import math
from collections.abc import Iterable, Sequence

WHOLE = 9.95  # per cent, from which on decimals do not matter
# Letters without a shape that change the order in which others are shown.
TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
STEERING = {*range(0x20), *range(0x7F, 0xA0), *map(ord, TURNING)} - {ord("\n"), ord("\t")}
MARKED = dict.fromkeys(STEERING, "\N{REPLACEMENT CHARACTER}")


def number(value: float, digits: int = 1) -> str:
    """The number with a real minus sign; no minus before a zero; a dash where there is none."""
    if math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")


def rounded(value: float) -> str:
    """A percentage without more digits than matter: 46, 5.6, 5.0."""
    return number(value, 0 if abs(value) >= WHOLE else 1)


def percent(value: float) -> str:
    """A loss or a spread as a plan writes it: 46 %, 5.6 %, 5 %."""
    if not math.isfinite(value):
        return "none found"
    return f"{rounded(value).removesuffix('.0')} %"


def counted(count: int, thing: str) -> str:
    """1 launch, 5 launches."""
    return f"{count} {thing if count == 1 else plural(thing)}"


def plural(thing: str) -> str:
    """launches, queries, days."""
    if thing.endswith("y") and thing[-2:-1] not in "aeou":
        return f"{thing[:-1]}ies"
    return f"{thing}{'es' if thing.endswith(('ch', 'ss', 'x')) else 's'}"


def listed(parts: Sequence[str]) -> str:
    """a, b and c."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def by_reason(named: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each reason once, with the names of all that are missing because of it."""
    found: dict[str, list[str]] = {}
    for name, reason in named:
        if reason:
            found.setdefault(reason, []).append(name)
    return [(reason, listed(list(dict.fromkeys(names)))) for reason, names in found.items()]


def size(amount: float) -> str:
    """1.5 GB, 350 MB, 12 kB, 800 B."""
    for unit, name, digits in ((1e9, "GB", 1), (1e6, "MB", 0), (1e3, "kB", 0)):
        if amount >= 0.9995 * unit:  # and is not 1000 of the smaller unit when it is rounded
            return f"{amount / unit:.{digits}f} {name}"
    return f"{amount:.0f} B"


def duration(seconds: float) -> str:
    """40 s, 9 min, 2 h, 2 h 10 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def printable(text: str) -> str:
    """The text with a mark for each letter that would steer a terminal or turn what is read around: others wrote it."""
    return text.translate(MARKED)
