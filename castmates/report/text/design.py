"""The plan as the report shows it: who plays, and with which design."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from castmates.report.launch_record import LaunchRecord
from castmates.report.results import Results
from castmates.report.text.words import counted, listed, number
from castmates.study.cpus import format_cpu_list
from castmates.study.rounds import UNDECIDED
from castmates.study.spec import Design, Launch, Member, Plan
from castmates.study.written import BY_HAND

Shown = tuple[str, list[tuple[str, str]]]  # a heading, then key by key
NO_SETTINGS = {"decided", "profiling", "tracing"}  # the last two are those of other launches


def designed_rounds(plan: Plan) -> dict[tuple[str, int], tuple[int, int]]:
    """Rounds and spare rounds of every launch, by cohort and number."""
    return {
        (launch.cohort.id, launch.number): (launch.design.rounds, launch.design.spare_rounds)
        for launch in plan.launches
    }


def designs(plan: Plan) -> list[Shown]:
    """The distinct designs in the plan's order; measured launches keep the one that they were measured with.

    Launches that differ in their rounds alone, as those that first launches decided on do, are shown together.
    """
    texts: dict[int, str] = {}  # launches may share a design
    groups: dict[str, list[Launch]] = {}
    for launch in plan.launches:
        if id(launch.design) not in texts:
            alike = launch.design.model_copy(update={"rounds": UNDECIDED, "decided": False})
            texts[id(launch.design)] = alike.canonical()
        groups.setdefault(texts[id(launch.design)], []).append(launch)
    return [(_heading(group, len(groups)), _pairs([launch.design for launch in group])) for group in groups.values()]


def cast(plan: Plan) -> list[dict[str, str]]:
    """A row per workload, in the order of the titles, with all roles and CPUs that it has in the plan."""
    groups: dict[tuple[str, ...], list[Member]] = {}
    for member in _members(plan):
        groups.setdefault(tuple(_entry(member).values()), []).append(member)
    order = {name: place for place, name in enumerate(plan.titles)}
    rows = [
        _entry(members[0])
        | {
            "title": plan.titles.get(members[0].workload) or "–",
            "roles": _distinct(member.role for member in members),
            "cpus": _distinct((format_cpu_list(member.cpus) or "–" for member in members), "; "),
        }
        for members in groups.values()
    ]
    return sorted(rows, key=lambda row: order.get(row["workload"], len(order)))


def _entry(member: Member) -> dict[str, str]:
    """What makes two members the same entry of the cast."""
    return {
        "workload": member.workload,
        "command": shlex.join(member.command) or "–",
        "unit": member.unit,
        "environment": member.environment or "–",
    }


def _members(plan: Plan) -> list[Member]:
    """The members of every cohort, once however many launches share it; a cohort's may differ between launches."""
    cohorts = {id(launch.cohort): launch.cohort for launch in plan.launches}
    return [member for cohort in cohorts.values() for member in cohort.members]


def _heading(group: Sequence[Launch], of: int) -> str:
    leads = [member.workload for launch in group for member in launch.cohort.members if member.role == "lead"]
    which = f"{counted(len(group), 'launch')} of {listed([*dict.fromkeys(leads)])}" if of > 1 else "the launches"
    return f"Design of {which} (times in seconds)"


def _pairs(alike: Sequence[Design]) -> list[tuple[str, str]]:
    values = alike[0].model_dump(mode="json", exclude=NO_SETTINGS, context=BY_HAND) | {"rounds": _rounds(alike)}
    return [(_spaced(key), _text(value)) for key, value in values.items()]


def _rounds(designs: Sequence[Design]) -> str:
    """9; or "3 (in 2 launches), 9 (in 3 launches)" where they differ."""
    counts = Counter(design.rounds for design in designs)
    words = {number: str(number) if number != UNDECIDED else "not decided" for number in counts}
    if len(counts) == 1:
        return "".join(words.values())
    return ", ".join(f"{words[number]} (in {counted(count, 'launch')})" for number, count in sorted(counts.items()))


def _text(value: object) -> str:
    """A value; what it holds that is set, if it may hold several."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    if not isinstance(value, Mapping):
        return "not set" if value is None else str(value)
    known = [(_spaced(key), part) for key, part in value.items() if part is not None]
    parts = [f"{key} ({_text(part)})" if isinstance(part, Mapping) else f"{key} {_text(part)}" for key, part in known]
    return ", ".join(parts) or "nothing"


def _spaced(key: object) -> str:
    return str(key).replace("_", " ")


def _distinct(texts: Iterable[str], between: str = ", ") -> str:
    return between.join(dict.fromkeys(texts))


# How long scenes run at a time, and what that means for effects of power, in sentences.

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
