"""Does a neighbour with other ways stay out of ours? The rule stands here, and results do not change it.

A chase runs in its ways alone, beside a stream in other ways (apart), and beside the stream in the same ways (shared).
Where the stream takes nothing in the same ways, the trial would see no leak either, and shows nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol

from castmates.study.cache import Cache
from castmates.study.rdt_trial import ISOLATED, NOT_TRIED, UNDECIDED, Isolation
from castmates.trials.rdt.looks import SEED, Interval, Looks, Numbers, logs, numbers, windows
from castmates.trials.rdt.masks import fewest, io_masks

NOT_ISOLATED: Final = "not isolated"
SLOWED: Final = "slowed by traffic"
CONTRADICTORY: Final = "contradictory"
SHOWS_NOTHING: Final = "shows nothing"

SENTENCES: Mapping[Isolation, str] = {
    ISOLATED: "A neighbour with other ways takes neither lines nor much time.",
    NOT_ISOLATED: "A neighbour with other ways takes what it should not: masks do not keep it out.",
    SLOWED: "Beside a neighbour with other ways a program keeps its lines and is slower all the same: traffic slows "
    "loads that hit, so masks alone do not isolate.",
    CONTRADICTORY: "Time and occupancy contradict each other, so one of them does not show what the cache holds.",
    SHOWS_NOTHING: "Even a neighbour in the same ways cost it no time, so that a leak would not have been seen.",
    UNDECIDED: "Whether a neighbour with other ways stays out was not decided: windows differ too much; try again when "
    "nothing else runs.",
    NOT_TRIED: "That takes two cores of one cache, two groups, and room for two masks.",
}
SLOWER = (
    "A neighbour with other ways costs more time than its traffic may: lines are taken or loads wait, which only "
    "occupancy could tell apart."
)

LOOKS = Looks((8, 16, 32), comparisons=6)  # triples of windows after which it may be decided


@dataclass(frozen=True, slots=True)
class Rule:
    """How the trial is made and judged."""

    looks: Looks = LOOKS
    least_loss: float = 1.1  # times that a load takes at least, beside a stream in the same ways
    traffic: float = 1.5  # times that it may take beside a stream in other ways, for the traffic of the stream
    least_lost: float = 0.05  # of what it holds alone, that it loses at least to a stream in the same ways
    kept: float = 0.8  # of what it holds alone, that it must keep beside a stream in other ways
    nearer: float = 0.5  # of the loss in the same ways: what is lost in other ways must be less


RULE = Rule()


class Ways(NamedTuple):
    """The ways of the chase, and those of the stream."""

    own: int
    other: int


class Beside(NamedTuple):
    """One window of the chase."""

    ns_per_load: float
    occupied: float | None  # bytes at its end; None where the machine does not show it


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows; those of one triple stand at the same place."""

    alone: tuple[Beside, ...]
    apart: tuple[Beside, ...]
    shared: tuple[Beside, ...]


class Subject(Protocol):
    """A chase, and a stream on another core of the same cache."""

    def beside(self, own: int, other: int | None) -> Beside:
        """Let the chase run in its ways for one window, beside the stream in others; alone with None."""


def pairs_of_ways(cache: Cache) -> Ways | None:
    """Give the chase the lower three quarters, and the stream the rest, with all the ways that I/O fills."""
    few = fewest(cache)
    lowest = (cache.shareable & -cache.shareable).bit_length() - 1 if cache.shareable else cache.ways
    own = min(3 * cache.ways // 4, cache.ways - few, lowest)
    if own <= cache.ways // 2:  # I/O's ways are not the uppermost few, and are shared out like the others
        own = min(3 * cache.ways // 4, cache.ways - few)
    if own < few:
        return None
    return Ways((1 << own) - 1, cache.full & ~((1 << own) - 1))


def ways_beside_io(cache: Cache) -> Ways | None:
    """Give the stream some of I/O's ways, and the chase others of them; None where no mask can cut through them."""
    if (masks := io_masks(cache)) is None:
        return None
    lowest = (masks.io & -masks.io).bit_length() - 1
    width = masks.joined.bit_count()
    own = ((1 << width) - 1) << (lowest - width) if lowest >= width else 0
    return Ways(own, masks.io) if own & cache.shareable else None


def tried(subject: Subject, ways: Ways, seed: int = SEED) -> Windows:
    """Measure triples in random order until a look decides."""
    others = {"alone": None, "apart": ways.other, "shared": ways.own}

    def so_far(found: Mapping[str, Sequence[Beside]]) -> Windows:
        return Windows(*(tuple(found[name]) for name in others))

    def decided(found: Mapping[str, Sequence[Beside]]) -> bool:
        return judge(so_far(found)) != UNDECIDED

    def window(name: str) -> Beside:
        return subject.beside(ways.own, others[name])

    return so_far(windows(list(others), window, RULE.looks, decided, seed))


def judge(found: Windows) -> Isolation:
    """Return the verdict; occupancy shows lines, and only it can tell a leak from the traffic of the stream."""
    time, lines = judge_times(found), judge_lines(found)
    if lines == "lost" or (time == "slower" and lines in ("not read", SHOWS_NOTHING)):
        return NOT_ISOLATED
    if time == SHOWS_NOTHING:
        return SHOWS_NOTHING
    if time == "slower" and lines == "kept":
        return SLOWED
    if time == "kept" and lines in ("kept", "not read"):
        return ISOLATED
    return CONTRADICTORY if time == "kept" and lines == SHOWS_NOTHING else UNDECIDED


def slowdown(windows: Sequence[Beside], alone: Sequence[Beside]) -> Interval:
    """Return the logarithm of how many times as long a load takes as alone."""
    return RULE.looks.interval(_logs(windows) - _logs(alone))


def _logs(windows: Sequence[Beside]) -> Numbers:
    return logs([each.ns_per_load for each in windows])


def judge_times(found: Windows) -> Literal["kept", "slower", "shows nothing", "undecided"]:
    """Return what time shows: slower is more than traffic may cost, or more than half of what the same ways cost."""
    own, loss = slowdown(found.apart, found.alone), slowdown(found.shared, found.alone)
    nearer = RULE.looks.interval(_place(*map(_logs, _each(found))))
    if loss.high < math.log(RULE.least_loss):
        return SHOWS_NOTHING
    if loss.low < math.log(RULE.least_loss):
        return UNDECIDED
    if own.low > math.log(RULE.traffic) or nearer.low > 0:
        return "slower"
    return "kept" if own.high < math.log(RULE.traffic) and nearer.high < 0 else UNDECIDED


def judge_lines(found: Windows) -> Literal["kept", "lost", "shows nothing", "undecided", "not read"]:
    """Return what occupancy shows."""
    if (read := _read(found)) is None:
        return "not read"
    whole = read[0].mean()
    if whole <= 0:
        return SHOWS_NOTHING
    alone, apart, shared = (some / whole for some in read)
    interval = RULE.looks.interval
    loss = interval(alone - shared)
    if loss.high < RULE.least_lost:
        return SHOWS_NOTHING
    if loss.low < RULE.least_lost:
        return UNDECIDED
    own, nearer = interval(apart - RULE.kept * alone), interval(-_place(alone, apart, shared))
    if own.high < 0 or nearer.low > 0:
        return "lost"
    return "kept" if own.low > 0 and nearer.high < 0 else UNDECIDED


def _read(found: Windows) -> list[Numbers] | None:
    """The occupancies of the triples of which all were read; None where that is fewer than half."""
    occupied = zip(*([each.occupied for each in some] for some in _each(found)), strict=True)
    read = [[one for one in triple if one is not None] for triple in occupied if None not in triple]
    return [numbers(some) for some in zip(*read, strict=True)] if 2 * len(read) >= max(len(found.alone), 4) else None


def _each(found: Windows) -> tuple[tuple[Beside, ...], ...]:
    return found.alone, found.apart, found.shared


def _place(alone: Numbers, apart: Numbers, shared: Numbers) -> Numbers:
    """Return how much farther from alone it is than the part of the way to shared that is allowed."""
    return apart - alone - RULE.nearer * (shared - alone)


def in_words(found: Windows) -> str:
    """Return the result, in one paragraph."""
    own, loss = slowdown(found.apart, found.alone), slowdown(found.shared, found.alone)
    time = (
        f"A load takes {math.exp(own.mean):.2f} times as long as alone beside a stream in other ways "
        f"({100 * RULE.looks.level:g} % interval {math.exp(own.low):.2f} to {math.exp(own.high):.2f}; up to "
        f"{RULE.traffic:g} is allowed for traffic), and {math.exp(loss.mean):.2f} times beside one in the same ways "
        f"({len(found.alone)} triples of windows in random order)."
    )
    verdict, blind = judge(found), judge_lines(found) in ("not read", SHOWS_NOTHING)
    said = SLOWER if verdict == NOT_ISOLATED and blind else SENTENCES[verdict]
    return f"{said} {time} {_lines(found)}"


def _lines(found: Windows) -> str:
    if (read := _read(found)) is None:
        return "Occupancy was not read, so time alone was judged."
    whole, apart, shared = (some.sum() for some in read)
    if whole <= 0:
        return "It holds nothing by the occupancy that the machine shows."
    kept = (f"{100 * lines / whole:.0f} %" for lines in (apart, shared))
    return "It keeps {} of its lines beside the former, and {} beside the latter.".format(*kept)


def figures(found: Windows, ways: Ways) -> dict[str, Any]:
    """Return everything that was measured."""
    return {
        "verdict": judge(found),
        "said": in_words(found),
        "ways": {"own": f"{ways.own:x}", "other": f"{ways.other:x}"},
        "rule": asdict(RULE),
        "by_time": judge_times(found),
        "by_occupancy": judge_lines(found),
        "windows": {name: [list(each) for each in some] for name, some in asdict(found).items()},
    }
