"""Do our evictors empty the cache? The rule stands here, and results do not change it.

A chase fills its lines and is frozen; an evictor writes through the cache up to four times. What the chase holds then
is read, and its first cycle afterwards is timed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Final, NamedTuple, Protocol

from castmates.runner.rounds.stage import CLEAN, PASSES
from castmates.study.rdt_trial import UNDECIDED, Eviction
from castmates.trials.rdt.looks import SEED, Looks, Numbers, logs, windows

EMPTIED: Final = "emptied"
NOT_EMPTIED: Final = "not emptied"
CONTRADICTORY: Final = "contradictory"
NOT_READ: Final = "not read"

SENTENCES: Mapping[Eviction, str] = {
    EMPTIED: "Writing through the cache empties it.",
    NOT_EMPTIED: "Writing through the cache leaves lines of a frozen program in it.",
    CONTRADICTORY: "By occupancy the cache was emptied, and the first cycle afterwards is no slower.",
    UNDECIDED: "Whether the cache was emptied was not decided.",
    NOT_READ: "Whether the cache was emptied is not known, because this machine does not show occupancy.",
}


LOOKS = Looks((6, 12, 24), comparisons=2 * PASSES + 1)  # rounds of windows after which it may be decided


@dataclass(frozen=True, slots=True)
class Rule:
    """How the trial is made and judged."""

    looks: Looks = LOOKS
    clean: float = CLEAN  # share of the cache that may be left
    slower: float = 1.1  # times that a load of the first cycle takes at least, after the cache was emptied


RULE = Rule()


class Left(NamedTuple):
    """One window."""

    occupied: float | None  # bytes of the frozen chase
    ns_per_load: float | None  # of its first cycle afterwards; None where that is too short to be timed


class Subject(Protocol):
    """A chase and an evictor."""

    def after(self, passes: int) -> Left:
        """Let the chase fill its lines, freeze it, let the evictor pass, read, and time the next cycle."""


@dataclass(frozen=True)
class Emptying:
    """All windows by number of passes, and the size of the cache."""

    windows: Mapping[int, Sequence[Left]]
    size: int

    def left(self, passes: int) -> list[float] | None:
        """The shares of the cache that the chase held afterwards; None where fewer than half were read."""
        read = [each.occupied / self.size for each in self.windows[passes] if each.occupied is not None]
        return read if 2 * len(read) >= max(len(self.windows[passes]), 4) else None

    def slower(self, passes: int) -> Numbers | None:
        """The logarithms of how much slower first cycles are than without a pass; None where they are not timed."""
        times = [[each.ns_per_load for each in self.windows[number] if each.ns_per_load] for number in (passes, 0)]
        if any(len(each) < len(self.windows[0]) for each in times):
            return None
        return logs(times[0]) - logs(times[1])


def tried(subject: Subject, size: int, seed: int = SEED) -> Emptying:
    """Measure rounds of 0 to 4 passes in random order until a look decides."""

    def decided(found: Mapping[int, Sequence[Left]]) -> bool:
        return judge(Emptying(found, size)) != UNDECIDED

    return Emptying(windows(range(PASSES + 1), subject.after, RULE.looks, decided, seed), size)


def fewest_passes(found: Emptying) -> int | None:
    """Return after how many passes the cache was clean; None where that was not shown."""
    for passes in range(1, PASSES + 1):
        left = found.left(passes)
        if left is not None and RULE.looks.interval(left).high <= RULE.clean:
            return passes
    return None


def judge(found: Emptying) -> Eviction:
    """Return the verdict."""
    before, last = found.left(0), found.left(PASSES)
    if before is None or last is None:
        return NOT_READ
    if RULE.looks.interval(before).low <= RULE.clean:  # it shows nothing of what was there
        return UNDECIDED
    passes = fewest_passes(found)
    if passes is None:
        return NOT_EMPTIED if RULE.looks.interval(last).low > RULE.clean else UNDECIDED
    if (times := found.slower(passes)) is None:
        return EMPTIED
    slower = RULE.looks.interval(times)
    if slower.low > math.log(RULE.slower):
        return EMPTIED
    return CONTRADICTORY if slower.high < math.log(RULE.slower) else UNDECIDED


def in_words(found: Emptying) -> str:
    """Return the result, in one paragraph."""
    said = [SENTENCES[judge(found)]]
    shares = [found.left(passes) for passes in sorted(found.windows)]
    known = [f"{100 * fmean(share):.1f}" for share in shares if share is not None]
    if len(known) == len(shares):
        said.append(f"A chase holds {', '.join(known)} % of the cache after 0 to {PASSES} passes.")
    slower = [found.slower(passes) for passes in range(1, PASSES + 1)]
    times = [f"{math.exp(fmean(each)):.2f}" for each in slower if each is not None]
    if len(times) == PASSES:
        said.append(f"Its first cycle takes {', '.join(times)} times as long after 1 to {PASSES} passes as after none.")
    else:
        said.append("Its first cycle is too short to be timed here.")
    return " ".join(said)


def figures(found: Emptying) -> dict[str, Any]:
    """Return everything that was measured."""
    return {
        "verdict": judge(found),
        "said": in_words(found),
        "passes": fewest_passes(found),
        "rule": asdict(RULE),
        "windows": {str(passes): [list(each) for each in some] for passes, some in found.windows.items()},
    }
