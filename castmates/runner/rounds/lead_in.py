"""Runs the scenes of a stretch unmeasured before its first slices, so that these begin as all later ones do.

Once where masks were changed. Where the caches were emptied they also have to fill again: a pointer chase over half
of a cache of 480 MiB is four times slower in its first cycle than later. So there the scenes run again, until little
is still to come of any member's rate and of what it holds of the caches. The rule looks at each member by itself,
over all of its scenes, and never at a difference between scenes.

How much is still to come: passes are taken in thirds, early, middle and late. What approaches its end exponentially
changes from the middle to the late third by the same factor less than from the early to the middle one, so the rest is
the last change times q / (1 - q). A slow approach has a q near 1, and much still to come, however small its steps are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from castmates.runner.rounds import stage as eviction
from castmates.runner.rounds.pace import Pace
from castmates.runner.rounds.slices import who_runs
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import Scene

FEWEST_PASSES, PASSES = 6, 16
LONGEST_S = 60.0  # of passes that are made longer, all together
RATE = 0.02  # on the log scale; what of a member's rate may be still to come
CACHE = 0.01  # of the caches; the same of what a member holds
FEWEST_RECORDS = 3  # of a member in a turn, to know its rate
SIGNIFICANT = 3.0  # times its scatter that a change is seen
OF_BENDS = 0.6745 * math.sqrt(6)  # the median size of second differences, in standard deviations of their values

Seen = dict[tuple[str, str], float]  # what was looked at and whose, in multiples of what may be still to come


@dataclass(frozen=True, slots=True)
class LeadIn:
    """How a stretch was led into."""

    passes: int = 0
    steady: bool | None = None  # None where it was not looked for, because nothing was emptied
    why: str = ""  # it is not steady

    @property
    def not_steady(self) -> bool:
        """Whether something still changed, or is not known."""
        return self.steady is False


def lead_in(stage: Stage, scenes: Sequence[Scene], pace: Pace, emptied: bool, times: int = 1) -> LeadIn:
    """Run every scene once; where caches were emptied again and again, for so many times as long, until it is steady.

    At the last pass, what does not stand out from the scatter of passes counts as steady: else no noisy member would.
    """
    if not emptied:
        _pass(stage, scenes, pace.length_ns)
        return LeadIn(1)
    beating = {name for scene in scenes for name in scene.active} - pace.slow
    length_ns, passes = _turn_ns(scenes, pace, beating, times), list[Seen]()
    while True:
        passes.append(_pass(stage, scenes, length_ns))
        why = _still_changing(passes, beating)
        if not why or len(passes) == PASSES:
            return LeadIn(len(passes), not why, why)
        stage.look_after()


def reached(lead_ins: Sequence[LeadIn]) -> dict[str, object]:
    """Return what launch.json has of those after emptied caches; nothing where there was none."""
    if not lead_ins:
        return {}
    return {
        "lead_in_passes": sum(each.passes for each in lead_ins),
        "not_steady": sum(each.not_steady for each in lead_ins),
    }


def _turn_ns(scenes: Sequence[Scene], pace: Pace, beating: set[str], times: int) -> int:
    """How long a scene runs in a pass: as in a slice, or longer, so that all who report often show their rates."""
    steps = [pace.steps.of_member.get(name, 0.0) for name in beating]
    known = [(FEWEST_RECORDS + 1) * step for step in steps if math.isfinite(step)]
    usual_ns = max(pace.length_ns, int(1e9 * max(known, default=0.0)))
    return max(usual_ns, min(times * usual_ns, int(1e9 * LONGEST_S / PASSES / len(scenes))))


def _pass(stage: Stage, scenes: Sequence[Scene], length_ns: int) -> Seen:
    """Run every scene once; return the mean rate of each member that showed it in all, and what it holds at the end."""
    rates: dict[str, list[float]] = {}
    for scene in scenes:
        stage.exchange(who_runs(scene))
        stage.forget_beats()
        stage.rest_until(stage.now_ns() + length_ns)
        stage.read_beats()
        for name in scene.active:
            rate = _rate(stage.cast[name].records)
            rates.setdefault(name, []).append(math.log(rate) if rate else math.nan)
    caches = eviction.size_of_caches(stage)
    held = stage.hardware.occupancies() if caches else {}
    seen = {("rate", name): mean / RATE for name, each in rates.items() if not math.isnan(mean := fmean(each))}
    return seen | {("cache", name): amount / caches / CACHE for name, amount in held.items() if amount is not None}


def _still_changing(passes: Sequence[Seen], beating: set[str]) -> str:
    """What has more to come than it may have, or is not known; "" where nothing does."""
    for key in sorted(passes[-1].keys() | {("rate", name) for name in beating}):
        what, name = key
        subject = f"the rate of {name}" if what == "rate" else f"what {name} holds of the caches"
        values = [each.get(key, math.nan) for each in passes]
        known = values[max((at for at, value in enumerate(values, start=1) if math.isnan(value)), default=0) :]
        if len(known) < FEWEST_PASSES:
            return f"{subject} is not known"
        if not _is_steady(known, last=len(passes) == PASSES):
            return f"{subject} still changed"
    return ""


def _is_steady(values: Sequence[float], last: bool) -> bool:
    """Check that at most 1 is still to come; in the `last` pass also where nothing stands out from the scatter."""
    early, middle, late, scatter = _thirds(values)
    drift = abs(late - early)
    if drift <= SIGNIFICANT * scatter and (last or drift + scatter <= 1):
        return True
    # A cache may fill evenly and then be full: what was before tells little.
    begun, _, ended, doubt = _thirds(values[-max(FEWEST_PASSES, len(values) // 2) :])
    if abs(ended - begun) <= min(SIGNIFICANT * doubt, 1 - 2 * doubt):
        return True
    before, change = abs(middle - early) - scatter, abs(late - middle) + scatter
    if change >= before:
        return False
    ratio, third = change / before, len(values) // 3
    to_come: float = change * ratio / (1 - ratio) * ratio ** ((third - 1) / 2 / third)  # after the last pass
    return to_come <= 1


def _thirds(values: Sequence[float]) -> tuple[float, float, float, float]:
    """The means of the early, the middle and the late third, and how far two of them scatter about their difference."""
    third = len(values) // 3
    early, middle, late = (fmean(values[len(values) - n * third :][:third]) for n in (3, 2, 1))
    # Of a trend, however steep, second differences see little.
    bends = [abs(a - 2 * b + c) for a, b, c in zip(values, values[1:], values[2:], strict=False)]
    return early, middle, late, median(bends) / OF_BENDS * math.sqrt(2 / third)


def _rate(records: Sequence[tuple[int, int]]) -> float:
    """Units a second between the first heartbeat of a turn and its last; 0 where too few show it."""
    if len(records) < FEWEST_RECORDS or records[-1][0] == records[0][0]:
        return 0.0
    return (records[-1][1] - records[0][1]) / (records[-1][0] - records[0][0]) * 1e9
