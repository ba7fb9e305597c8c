"""How long scenes run at a time, and what that means for effects of power, in sentences."""

from collections.abc import Iterable

from castmates.report.launch_record import LaunchRecord
from castmates.report.results import Results
from castmates.report.text.words import number

LONG = 10.0  # seconds of a slice: several times what processors average their power over
MUCH_LONGER = 5.0  # times; else two studies have slices of about the same length
Range = tuple[float, float]


def lengths(records: Iterable[LaunchRecord]) -> Range | None:
    """The shortest and the longest nominal slice of these launches; None where none is recorded."""
    known = [length for record in records if record.measured for length in record.slices]
    return (min(known), max(known)) if known else None


def in_words(shortest: float, longest: float) -> str:
    """60 to 75 ms; 30 s."""
    unit, factor = ("s", 1.0) if longest >= 1 else ("ms", 1000.0)
    shown = [round(factor * length, 1 if unit == "s" else 0) for length in (shortest, longest)]
    ends = list(dict.fromkeys(number(length, 0 if length == int(length) else 1) for length in shown))
    return f"{' to '.join(ends)} {unit}"


def used(results: Results) -> str:
    """Which slices a study used, and whether they are long enough for what power does; "" where none is recorded."""
    found = lengths(results.records)
    if found is None:
        return ""
    words = f"Scenes took turns in slices of {in_words(*found)}."
    if found[0] >= LONG:
        return f"{words} Within such slices, power limits and heat show in the scene that causes them."
    return (
        f"{words} What builds up over seconds (a power limit that averages, heat) is spread over all scenes by turns "
        "as short as these: losses that are due to it are underestimated. The same study with `budget: {slice: 30}` "
        "shows whether that is so here; `castmates compare` states it."
    )


def much_longer(one: Range | None, other: Range | None) -> bool:
    """Whether the slices of one study are several times as long as those of another, in either direction."""
    if one is None or other is None:
        return False
    return one[0] >= MUCH_LONGER * other[1] or other[0] >= MUCH_LONGER * one[1]
