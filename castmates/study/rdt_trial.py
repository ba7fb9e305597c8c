"""What `castmates doctor --verify-rdt` found on a machine: the words of its verdicts, and how its record is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from castmates.study.cache import Bandwidth, Cache

COMMAND = "castmates doctor --verify-rdt"

Masks = Literal[
    "no cache allocation here", "no effect on time", "occupancy does not follow", "undecided", "not tried", "works"
]
Isolation = Literal[
    "not isolated", "slowed by traffic", "contradictory", "shows nothing", "undecided", "not tried", "isolated"
]
Throttles = Literal["no effect", "undecided", "some steps are equal", "works", "not tried"]
Eviction = Literal["not emptied", "contradictory", "undecided", "not read", "emptied"]
Traffic = Literal["differs", "undecided", "not counted", "agrees"]
Part = Literal["masks", "isolation", "throttles", "eviction", "traffic"]

WORKS: Final = "works"
UNDECIDED: Final = "undecided"
ISOLATED: Final = "isolated"
EQUAL_STEPS: Final = "some steps are equal"
NO_EFFECT: Final = "no effect"
NOT_TRIED: Final = "not tried"

# Of each part its words, the worst first: of several caches the worst is shown.
WORDS: Mapping[str, Sequence[str]] = {
    "masks": get_args(Masks),
    "isolation": get_args(Isolation),
    "throttles": get_args(Throttles),
    "eviction": get_args(Eviction),
    "traffic": get_args(Traffic),
}
VERIFIED: Mapping[str, Sequence[str]] = {
    "masks": (WORKS,),
    "isolation": (ISOLATED,),
    "throttles": (WORKS, EQUAL_STEPS),
    "eviction": ("emptied",),
    "traffic": ("agrees",),
}
SHOWN: tuple[Part, ...] = ("masks", "isolation", "throttles")  # with the results of partitions


def worst(part: Part, verdicts: Iterable[str]) -> str:
    """Return the worst of these verdicts."""
    return min(verdicts, key=WORDS[part].index)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of one part."""

    verdict: str
    said: str  # in a sentence or two


@dataclass(frozen=True)
class Tried:
    """The record of a trial, as far as others need it."""

    at: str
    parts: Mapping[str, Found]
    unit: str = ""  # of throttles
    steps: tuple[tuple[int, int], ...] = ()  # throttles that do the same as a higher one, and that one
    # Of the first cache, by the number of cores that streamed: bytes a second under each step.
    rates: Mapping[int, Mapping[int, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any] | None) -> "Tried | None":
        """Read a record; None where there is none."""
        try:
            parts = {
                name: Found(str(each["verdict"]), str(each["said"]))
                for name, each in (record or {})["parts"].items()
                if each["verdict"] in WORDS.get(name, ())
            }
            equal = (record or {}).get("equal_steps") or {}
            steps = tuple((int(step), int(same)) for step, same in equal.get("steps") or ())
            curves = next(
                (one["throttles"]["curves"] for one in (record or {}).get("caches") or () if "throttles" in one), ()
            )
            rates = {
                int(each["cores"]): {int(point["step"]): float(point["bytes_per_s"]) for point in each["curve"]}
                for each in curves
            }
            return cls(str((record or {})["at"]), parts, str(equal.get("unit") or ""), steps, rates)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def verifies(self, part: Part) -> bool:
        """Check whether a part does what it promises."""
        return part in self.parts and self.parts[part].verdict in VERIFIED[part]

    @property
    def masks_hold(self) -> bool:
        """Whether masks do something, and keep a neighbour out."""
        return self.verifies("masks") and self.verifies("isolation")

    @property
    def verified(self) -> list[Part]:
        """What a study's partitions rest on, and was verified."""
        return [part for part in SHOWN if self.verifies(part)]

    def sentence(self, part: Part) -> str:
        """Return the verdict on a part that was tried, with what it says."""
        found = self.parts[part]
        return f"{part[0].upper()}{part[1:]}: {found.verdict}. {found.said}"

    def left(self, step: int) -> dict[int, float]:
        """Per cent of the unthrottled rate that a step left, by the number of cores; empty where it was not tried."""
        return {cores: 100 * own[step] / own[max(own)] for cores, own in self.rates.items() if step in own}

    def left_on(self, cache: Cache | None, step: int) -> dict[int, float]:
        """The same for a study's cache; empty, too, where its steps are in another unit than those that were tried."""
        same = cache is not None and cache.bandwidth is not None and cache.bandwidth.unit == self.unit
        return self.left(step) if same else {}

    def measured(self, bandwidth: Bandwidth) -> Bandwidth:
        """Return the same throttle with the steps that were measured to do the same, where that was decided."""
        found = self.parts.get("throttles")
        if found is None or found.verdict not in (WORKS, EQUAL_STEPS, NO_EFFECT) or bandwidth.unit != self.unit:
            return bandwidth
        return bandwidth.model_copy(update={"becomes": self.steps})


def with_measured_steps(cache: Cache | None, tried: Tried | None) -> Cache | None:
    """Add which throttles were measured to do the same."""
    if cache is None or cache.bandwidth is None or tried is None:
        return cache
    return cache.model_copy(update={"bandwidth": tried.measured(cache.bandwidth)})
