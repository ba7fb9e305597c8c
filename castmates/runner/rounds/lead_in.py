"""Runs the scenes of a stretch unmeasured before its first slices, so that these begin as all later ones do.

Once where masks were changed. Where the caches were emptied they also have to fill again: a pointer chase over half
of a cache of 480 MiB is four times slower in its first cycle than later. So there the scenes run again, until a pass
shows nothing that the passes before it did not: no member faster or slower, none with more or less of the caches. The
rule looks at each member by itself, over all of its scenes, and never at a difference between scenes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from castmates.runner.rounds import eviction
from castmates.runner.rounds.slices import who_runs
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import Scene

PASSES = 8  # at most
RATE = 0.02  # on the log scale; what a member's rate may lie outside of those before
CACHE = 0.01  # of the caches; the same of what a member holds
FEWEST_RECORDS = 3  # of a member in a turn, to know its rate

Seen = dict[tuple[str, str], float]  # what was looked at and whose, in multiples of what it may change by


@dataclass(frozen=True, slots=True)
class LeadIn:
    """How a stretch was led into."""

    passes: int = 0
    steady: bool | None = None  # None where it was not looked for, because nothing was emptied

    @property
    def not_steady(self) -> bool:
        """Whether something still changed in the last pass."""
        return self.steady is False


def lead_in(stage: Stage, scenes: Sequence[Scene], length_ns: int, emptied: bool) -> LeadIn:
    """Run every scene for so long; where caches were emptied again and again, until nothing changes any more."""
    passes = [_pass(stage, scenes, length_ns)]
    if not emptied:
        return LeadIn(len(passes))
    while len(passes) < PASSES and not _is_steady(passes):
        stage.look_after()
        passes.append(_pass(stage, scenes, length_ns))
    return LeadIn(len(passes), _is_steady(passes))


def reached(lead_ins: Sequence[LeadIn]) -> dict[str, object]:
    """Return what block.json has of those after emptied caches; nothing where there was none."""
    if not lead_ins:
        return {}
    return {
        "lead_in_passes": sum(each.passes for each in lead_ins),
        "not_steady": sum(each.not_steady for each in lead_ins),
    }


def _pass(stage: Stage, scenes: Sequence[Scene], length_ns: int) -> Seen:
    """Run every scene once; return each member's mean rate, and what it holds at the end where that can be read."""
    rates: dict[str, list[float]] = {}
    for scene in scenes:
        stage.exchange(who_runs(scene))
        stage.forget_beats()
        stage.rest_until(stage.now_ns() + length_ns)
        stage.read_beats()
        for name in scene.active:
            if rate := _rate(stage.cast[name].records):
                rates.setdefault(name, []).append(math.log(rate))
    caches = eviction.size_of_caches(stage)
    held = stage.hardware.occupancies() if caches else {}
    seen = {("rate", name): fmean(each) / RATE for name, each in rates.items()}
    return seen | {("cache", name): amount / caches / CACHE for name, amount in held.items() if amount is not None}


def _is_steady(passes: Sequence[Seen]) -> bool:
    """Check whether the last pass is within what the passes before it showed; where these are none, it is not known."""
    *before, last = passes
    return bool(before) and all(
        _is_within(value, [each[what] for each in before if what in each]) for what, value in last.items()
    )


def _is_within(value: float, known: Sequence[float]) -> bool:
    return bool(known) and min(known) - 1 <= value <= max(known) + 1


def _rate(records: Sequence[tuple[int, int]]) -> float:
    """Units a second between the first heartbeat of a turn and its last; 0 where too few show it."""
    if len(records) < FEWEST_RECORDS or records[-1][0] == records[0][0]:
        return 0.0
    return (records[-1][1] - records[0][1]) / (records[-1][0] - records[0][0]) * 1e9
