"""What does each step of the throttle of memory bandwidth do, and is traffic counted right?

The rule stands here, and results do not change it. Streams on some cores run under every step in random order. Steps
whose rates lie within a few per cent of each other, by their interval, on every number of cores do the same.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final, Literal, NamedTuple, Protocol

from castmates.english import counted, listed
from castmates.study.cache import Bandwidth, rate_words
from castmates.study.rdt_trial import EQUAL_STEPS, NO_EFFECT, NOT_TRIED, UNDECIDED, WORKS, Throttles, Traffic
from castmates.trials.rdt.looks import SEED, Looks, Numbers, logs, windows

AGREES: Final = "agrees"
DIFFERS: Final = "differs"
NOT_COUNTED: Final = "not counted"

SENTENCES: Mapping[Throttles, str] = {
    WORKS: "Every step of the throttle that was tried does something of its own.",
    EQUAL_STEPS: "Some steps of the throttle do the same.",
    NO_EFFECT: "No step of the throttle slows streams down.",
    UNDECIDED: "Which steps of the throttle do the same was not decided: rates differ too much; try again when nothing "
    "else runs.",
    NOT_TRIED: "Throttles were not tried: there are none, or the kernel regulates them itself (mba_MBps).",
}
AGREEMENT: Mapping[Traffic, str] = {
    AGREES: "Traffic is counted as the program counts it.",
    DIFFERS: "Traffic is counted otherwise than the program counts it.",
    UNDECIDED: "Whether traffic is counted right was not decided.",
    NOT_COUNTED: "Traffic is not counted here.",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """How the trial is made and judged."""

    looks: tuple[int, ...] = (6, 12, 24)  # rounds of windows after which it may be decided
    same: float = 1.03  # times: rates within it do the same
    counted: float = 1.25  # times: counts within it agree; prefetchers and page tables move a little more


RULE = Rule()
MOST_STEPS = 10
FEWEST_COUNTED = 4  # windows of a rate
LEAST_RATIO = 1e-6  # in place of a count of 0, which has no logarithm
GBPS = 8  # of AMD's unit, 1/8 GB/s


class Moved(NamedTuple):
    """Bytes per second in one window; None where nobody counts them."""

    program: float  # by the program's own count
    monitor: float | None  # by resctrl (MBM)
    controllers: float | None  # by the memory controllers of the package, of all programs


class Streams(Protocol):
    """Streams on some cores, which can be throttled."""

    def moved(self, step: int) -> Moved:
        """Let them run under a step for one window."""


@dataclass(frozen=True)
class Curve:
    """All windows on so many cores; those of one round stand at the same place."""

    cores: int
    windows: Mapping[int, Sequence[Moved]]  # by step, the largest first, which is no throttle

    @property
    def steps(self) -> list[int]:
        """The steps that were tried."""
        return list(self.windows)

    @property
    def looks(self) -> Looks:
        """How sure the comparisons are, of all steps together."""
        return _looks(len(self.windows))

    def rates(self, step: int) -> Numbers:
        """The logarithms of the rates under a step."""
        return logs([each.program for each in self.windows[step]])

    def relation(self, step: int, other: int) -> Literal["same", "different", "undecided"]:
        """Whether two steps do the same on these cores."""
        margin, found = math.log(RULE.same), self.looks.interval(self.rates(step) - self.rates(other))
        if found.low > margin or found.high < -margin:
            return "different"
        return "same" if -margin < found.low and found.high < margin else UNDECIDED


def _looks(steps: int) -> Looks:
    return Looks(RULE.looks, comparisons=3 * max(1, steps - 1))  # on up to three numbers of cores


def steps_of(bandwidth: Bandwidth | None) -> list[int]:
    """List the steps to try, the largest first: all, or a few that lie evenly; of rates each double the last."""
    if bandwidth is None:
        return []
    if bandwidth.unit == "1/8 GB/s":
        rates = [GBPS << power for power in range(8)]
        return [bandwidth.most, *(rate for rate in reversed(rates) if bandwidth.least <= rate < bandwidth.most)]
    if bandwidth.unit != "%":
        return [bandwidth.most]
    every = range(bandwidth.most, bandwidth.least - 1, -bandwidth.step)
    return list(every[:: math.ceil(len(every) / MOST_STEPS)])


def curve(streams: Streams, cores: int, steps: Sequence[int], seed: int = SEED) -> Curve:
    """Measure rounds of all steps in random order until a look decides."""

    def decided(found: Mapping[int, Sequence[Moved]]) -> bool:
        return not _open([Curve(cores, found)])

    return Curve(cores, windows(list(steps), streams.moved, _looks(len(steps)), decided, seed))


def curves_together(
    stage: Callable[[int], AbstractContextManager[Streams]], cores: Sequence[int], steps: Sequence[int]
) -> list[Curve]:
    """Measure a curve on each number of cores, and go on with those that leave pairs open which all together compare.

    What one number of cores tells apart is compared on the others too, which may have stopped without that.
    """
    found: list[Curve] = []
    for number in cores:
        with stage(number) as streams:
            found.append(curve(streams, number, steps))
    while (place := next((place for place in range(len(found)) if _goes_on(found, place)), None)) is not None:
        found[place] = _further(stage, found, place)
    return found


def _further(stage: Callable[[int], AbstractContextManager[Streams]], curves: Sequence[Curve], place: int) -> Curve:
    one = curves[place]

    def decided(found: Mapping[int, Sequence[Moved]]) -> bool:
        return not _goes_on([*curves[:place], Curve(one.cores, found), *curves[place + 1 :]], place)

    with stage(one.cores) as streams:
        return Curve(one.cores, windows(one.steps, streams.moved, one.looks, decided, before=one.windows))


def _goes_on(curves: Sequence[Curve], place: int) -> bool:
    """Whether more rounds of this curve may decide about a pair of steps that is open."""
    one = curves[place]
    if len(one.windows[one.steps[0]]) >= RULE.looks[-1]:
        return False
    return any(one.relation(step, other) == UNDECIDED for step, other in _open(curves))


def cores_to_try(cores: int) -> list[int]:
    """1, 4 and all, as far as there are so many."""
    return sorted({1, min(4, cores), cores})


def groups(curves: Sequence[Curve]) -> list[tuple[int, ...]]:
    """Join each step to the one above it with which it does the same on every number of cores."""
    found: list[list[int]] = []
    for step in curves[0].steps if curves else ():
        if found and _relation(curves, step, found[-1][0]) == "same":
            found[-1].append(step)
        else:
            found.append([step])
    return [tuple(each) for each in found]


def _relation(curves: Iterable[Curve], step: int, other: int) -> Literal["same", "different", "undecided"]:
    relations = {curve.relation(step, other) for curve in curves}
    return "different" if "different" in relations else UNDECIDED if UNDECIDED in relations else "same"


def _open(curves: Sequence[Curve]) -> list[tuple[int, int]]:
    """Return the neighbours of which it is not decided whether they do the same."""
    heads = [each[0] for each in groups(curves)]
    return [(head, before) for before, head in pairwise(heads) if _relation(curves, head, before) == UNDECIDED]


def equal_steps(curves: Sequence[Curve]) -> tuple[tuple[int, int], ...]:
    """Pair each step that does the same as a larger one with it."""
    return tuple((step, each[0]) for each in groups(curves) for step in each[1:])


def judge(curves: Sequence[Curve]) -> Throttles:
    """Return the verdict."""
    same = groups(curves)
    if sum(map(len, same)) < 2:
        return NOT_TRIED
    if _open(curves):
        return UNDECIDED
    if len(same) == 1:
        return NO_EFFECT
    return EQUAL_STEPS if any(len(each) > 1 for each in same) else WORKS


def agreement(curves: Sequence[Curve]) -> Traffic:
    """Return whether resctrl counts what the program counts, without a throttle, on every number of cores."""
    margin, verdicts = math.log(RULE.counted), set[Traffic]()
    for each in curves:
        ratios = [max(ratio, LEAST_RATIO) for ratio in _ratios(each, "monitor")]
        if len(ratios) < FEWEST_COUNTED:
            return NOT_COUNTED
        found = each.looks.interval(logs(ratios))
        inside = -margin < found.low and found.high < margin
        verdicts.add(AGREES if inside else DIFFERS if found.low > margin or found.high < -margin else UNDECIDED)
    order: tuple[Traffic, ...] = (DIFFERS, UNDECIDED, AGREES)
    return next((word for word in order if word in verdicts), NOT_COUNTED)


def in_words(curves: Sequence[Curve], unit: str) -> str:
    """Return the result, in one paragraph."""
    verdict = judge(curves)
    said = [SENTENCES[verdict]]
    ends = [(rate_words(each[-1], unit), rate_words(each[0], unit)) for each in groups(curves) if len(each) > 1]
    joined = [f"{low.split()[0]} to {high}" for low, high in ends]
    if joined and verdict != NO_EFFECT:
        said.append(f"The same are {listed(joined)}.")
    if verdict != NOT_TRIED:
        rows = figures(curves[-1])["curve"]
        shares = ", ".join(f"{rate_words(row['step'], unit)}: {row['percent']:.0f}" for row in rows[1:])
        said.append(f"Per cent of the unthrottled rate on {counted(curves[-1].cores, 'core')}: {shares}.")
    return " ".join(said)


def agreement_in_words(curves: Sequence[Curve]) -> str:
    """Return what resctrl and the controllers count, in a sentence or two."""
    verdict = agreement(curves)
    seldom = verdict == NOT_COUNTED and any(_ratios(each, "monitor") for each in curves)
    said = ["Traffic was counted in too few windows." if seldom else AGREEMENT[verdict]]
    for name, whose in (("monitor", "resctrl"), ("controllers", "the memory controllers")):
        ratios = {each.cores: ratio for each in curves if (ratio := counted_ratio(each, name)) is not None}
        if ratios:
            numbers, cores = (
                ", ".join(some) for some in ([f"{each:.2f}" for each in ratios.values()], map(str, ratios))
            )
            where = f"{cores} {'core' if cores == '1' else 'cores'}"
            said.append(f"By {whose} it is {numbers} times the program's own count, on {where}.")
    return " ".join(said)


def counted_ratio(one: Curve, name: str) -> float | None:
    """Return what is counted over the program's own count, without a throttle."""
    ratios = _ratios(one, name)
    return median(ratios) if ratios else None


def _ratios(one: Curve, name: str) -> list[float]:
    """Return them window by window, for those in which it was counted."""
    both = [(getattr(moved, name), moved.program) for moved in one.windows[one.steps[0]]]
    return [value / program for value, program in both if value is not None]


def for_a_model(curves: Sequence[Curve], unit: str) -> list[dict[str, Any]]:
    """Return the points as `throttles` of a modelled machine, which has steps of per cent."""
    return [
        {"cores": each.cores, "step": step, "rate": f"{math.exp(each.rates(step).mean()) / 1e9:.5g} GB"}
        for each in curves
        for step in each.steps
        if unit == "%"
    ]


def figures(one: Curve) -> dict[str, Any]:
    """Return a curve: per cent of the unthrottled rate by step, and everything that was measured."""
    free = one.rates(one.steps[0])
    points = []
    for step in one.steps:
        found = one.looks.interval(one.rates(step) - free)
        points.append(
            {
                "step": step,
                "percent": 100 * math.exp(found.mean),
                "low": 100 * math.exp(found.low),
                "high": 100 * math.exp(found.high),
                "bytes_per_s": math.exp(one.rates(step).mean()),
            }
        )
    return {
        "cores": one.cores,
        "curve": points,
        "rule": asdict(RULE),
        "windows": {str(step): [list(each) for each in some] for step, some in one.windows.items()},
    }
