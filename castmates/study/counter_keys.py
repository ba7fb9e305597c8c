"""The key `counters` of a study: which events are counted for each member, and how.

What an event is on a processor is asked of perf there, when a launch is measured: here are names alone.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from castmates.study.event_sets import PROCESSOR_SETS, SETS
from castmates.study.written import Name, Written

FASTEST_SERIES = 100.0
MOST_PROFILED = 10  # what the makers of the profiler advise
MOST_RANGES = 500_000
_EVENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*(/[A-Za-z0-9_.,=:@-]+/[a-zA-Z]*)?")
_OTHER_MODES = re.compile(r".+(?::(?=[ukhpPGHSDIWeb]+$)|/)[ukh]*[^ukh/:][^/:]*")
_MODES = "no other letters behind an event than u, k and h (user mode, the kernel's part, the hypervisor's)"
_NAME = re.compile(r"[/,]name=([^,/]+)")
_WHAT = "an event in perf's words, such as cache-misses or cpu/event=0xd1,umask=0x20,name=l3_miss/, one to an entry"


def _event(text: str) -> str:
    if not _EVENT.fullmatch(text):
        raise ValueError(_WHAT)
    if _OTHER_MODES.fullmatch(text):
        raise ValueError(_MODES)
    return text


EventText = Annotated[str, AfterValidator(_event), Field(description=_WHAT)]


def event_name(event: str) -> str:
    """What the event is called in tables: the name that it gives itself, or its own words."""
    named = _NAME.search(event)
    return named[1] if named else event


class CounterKeys(Written):
    """What is counted in every window; more in docs/counters.md."""

    events: list[Name] = Field(
        default=["basic", "cache"],
        description=f"sets of events: {', '.join(SETS)}, or names of 'sets'; an empty list counts none",
    )
    sets: dict[Name, Annotated[list[EventText], Field(min_length=1)]] = Field(
        default_factory=dict, description="sets of your own: a name, and its events in perf's words"
    )
    topdown: Literal[0, 1, 2] = Field(default=1, description="level of the Top-Down analysis; 0 for none")
    how: Literal["auto", "cgroup", "thread", "cpu"] = Field(
        default="auto",
        description="what is counted: a member's control group, its threads with all that they start, or all that "
        "runs on its CPUs; auto takes the first of these that the kernel allows",
    )
    series: float = Field(
        default=10.0,
        ge=0,
        le=FASTEST_SERIES,
        description="readings of the events in a second of a window; 0 for its two edges alone",
    )
    profile: int = Field(
        default=0,
        ge=0,
        le=MOST_PROFILED,
        description="steps of each lead that are profiled in its 'alone' and co-run scenes after the rounds, kept "
        "apart from what is measured; 0 for none",
    )
    cost_pairs: int = Field(
        default=0,
        ge=0,
        le=100,
        description="pairs of windows of each launch, with and without each collector, that show what it costs; "
        "0 for none",
    )
    ranges: int = Field(
        default=0,
        ge=0,
        le=MOST_RANGES,
        description="annotations (phases, ranges, instants, epochs) that a launch keeps one by one of each member with "
        "'phases: true', at most; 0 keeps only their sums",
    )

    @model_validator(mode="after")
    def _known_and_clear(self) -> Self:
        taken = [name for name in self.sets if name in SETS]
        unknown = [name for name in self.events if name not in SETS and name not in self.sets]
        twice = sorted({name for name in self.events if self.events.count(name) > 1})
        known = ", ".join([*SETS, *(name for name in self.sets if name not in SETS)])
        wrong = {
            f"another name for the set {' and '.join(taken)}, which there is already": taken,
            f"sets of events ({known}), and not {' and '.join(unknown)}": unknown,
            f"each set once, and not {' and '.join(twice)} twice": twice,
        }
        for expected, holds in wrong.items():
            if holds:
                raise ValueError(expected)
        for name, words in self.sets.items():
            called = [event_name(event) for event in words]
            if len(set(called)) < len(called):
                raise ValueError(f"events of different names in the set {name}")
        first: dict[str, tuple[str, str]] = {}
        for name, events in self.chosen:
            for event in events:
                earlier, other = first.setdefault(event_name(event), (event, name))
                if earlier != event:
                    raise ValueError(
                        f"one event for each name, and not two for {event_name(event)}, in {other} and {name}"
                    )
        return self

    @property
    def chosen(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The sets that are counted, each with its events."""
        return tuple((name, SETS[name] if name in SETS else tuple(self.sets[name])) for name in self.events)


def described(keys: CounterKeys) -> str:
    """What is counted, in a line."""
    parts = [
        f"{name} (as perf lists them for the processor)"
        if name in PROCESSOR_SETS
        else f"{name} ({', '.join(event_name(event) for event in events)})"
        for name, events in keys.chosen
    ]
    if keys.topdown:
        parts.append(f"Top-Down level {keys.topdown}")
    ranges = f"; up to {keys.ranges:,} annotations of each member with phases, one by one" if keys.ranges else ""
    if not parts:
        return f"no events{ranges}"
    how = {"auto": "", "cgroup": ", by control group", "thread": ", by thread", "cpu": ", by CPU"}[keys.how]
    return f"{'; '.join(parts)}{how}, as far as each machine can{ranges}"
