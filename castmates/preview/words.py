"""How a pair of programs, a duration, a range and a share are written on a terminal."""

import math

from castmates.study.spec import Mix

TO, DASH = " to ", "\N{EN DASH}"  # in a sentence, in a table


def workload_of(member: str) -> str:
    """A member's name without its CPUs."""
    return member.partition("@")[0]


def neighbours(mix: Mix) -> str:
    """Who runs beside the lead: stream+chase; "" where it is alone."""
    return "+".join(map(workload_of, mix.antagonists))


def pair(mix: Mix) -> str:
    """dlrm-train beside stream."""
    return " beside ".join(filter(None, [workload_of(mix.lead), neighbours(mix)]))


def minutes(seconds: float) -> str:
    """A duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def minutes_between(least: float, most: float, to: str = TO) -> str:
    """4 min; 4 to 5 min; 50 s to 2 min."""
    return between(minutes(least), minutes(most), to)


def between(least: object, most: object, to: str = TO) -> str:
    """180 to 225; what both ends share, a number or its unit, stands once."""
    first, last = str(least), str(most)
    if first == last:
        return last
    number, _, unit = first.partition(" ")
    return f"{number if unit and last.endswith(f' {unit}') else first}{to}{last}"


def percent(value: float) -> str:
    """A loss or a spread in per cent, with two digits: 8.4 %, 12 %."""
    if not math.isfinite(value):
        return "nothing"
    return f"{value:.2g} %" if abs(value) < 9.95 else f"{value:.0f} %"


def listed(parts: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else ""
