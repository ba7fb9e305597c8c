"""How a pair of programs and a range are written on a terminal."""

from collections import Counter

from castmates.english import duration
from castmates.study.class_names import workload_of
from castmates.study.spec import Mix
from castmates.study.wanted import with_place

TO, DASH = " to ", "\N{EN DASH}"  # in a sentence, in a table


def antagonists(mix: Mix) -> str:
    """Who runs beside the lead: stream+chase, 2 stream:smt; "" where it is alone."""
    counts = Counter(map(workload_of, mix.antagonists))
    names = (who if count == 1 else f"{count} {who}" for who, count in counts.items())
    return with_place("+".join(names), mix.name)  # without the class, which stands with the lead


def pair(mix: Mix) -> str:
    """dlrm-train beside stream."""
    return " beside ".join(filter(None, [workload_of(mix.lead), antagonists(mix)]))


def minutes_between(least: float, most: float, to: str = TO) -> str:
    """4 min; 4 to 5 min; 50 s to 2 min."""
    return between(duration(least), duration(most), to)


def between(least: object, most: object, to: str = TO) -> str:
    """180 to 225; what both ends share, a number or its unit, stands once."""
    first, last = str(least), str(most)
    if first == last:
        return last
    number, _, unit = first.partition(" ")
    is_shared = unit and " " not in unit and last.partition(" ")[2] == unit  # 1 h 10 min has two
    return f"{number if is_shared else first}{to}{last}"
