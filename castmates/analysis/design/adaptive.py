"""What is known of an adaptive study's mixes at a look -> which of them go on, and which cells of a curve are added.

Each mix has one question: on which side of an edge its loss lies (the limit, the knee, the margin), or which of several
partitions loses least. It stops some launches after the look that answered it; docs/methodology.md has the rule, why it
is made so, and the simulated coverage of the intervals that are printed afterwards. A mix is judged by how all mixes of
its lead scatter together: by its own scatter alone, those would stop first whose few launches agree by luck, and their
printed intervals, which are made of the same scatter, would be too narrow.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from castmates.analysis.core import LAUNCHES, Contrast
from castmates.analysis.design.pilot import against_alone
from castmates.analysis.effects.contrasts import partitions_of
from castmates.analysis.effects.pooling import pooled, without_hosts
from castmates.analysis.keys import ROW
from castmates.analysis.statistics.intervals import Floats, quantile
from castmates.study.budget_keys import FEWEST_AT_A_LOOK, FRESH
from castmates.study.curves import ORDER, Cell, Curve, Question
from castmates.study.spec import Plan

MORE, LESS = "more", "less"  # than the edge
BEST, WORSE, ALIKE = "best", "worse", "alike"  # in an order
NOTHING = "nothing"  # no launch gave anything: more of the same will not either
ENOUGH_LEFT = 4  # launches that a further cell can still get, or its own interval would be of no use
FEW_BETWEEN = 2  # cells between two that have different answers: so few are measured at once
CLEARLY = 2.0  # times as far from the edge as is certain: then it stops at once, as nearly every study would stop there
WIDE = 2.0  # margins between two neighbours, up to which nothing between them can be far from what is interpolated
SURELY = 0.99  # of the intervals by which mixes are judged
UNLIKE = 4.0  # times the common variance, beyond which a mix scatters otherwise and is judged by its own


@dataclass(frozen=True)
class MixEstimate:
    """What is known of a mix: its lead's slowdown against alone."""

    launches: int
    log: float
    half: float  # of the interval by which it is judged; infinite where there is none

    @property
    def low(self) -> float:
        """The lower end."""
        return self.log - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.log + self.half


@dataclass(frozen=True)
class MixAtLook:
    """A mix that is measured, at a look."""

    identity: str
    launches: int = 0
    answer: str = ""
    answered_after: int = 0  # launches; 0 without an answer
    clear: bool = False  # the answer, beyond what further launches could change
    goes_on: bool = True
    why: str = ""  # it was added; "" for those of the first grid


@dataclass(frozen=True)
class Look:
    """What a look has to judge by."""

    questions: Mapping[str, Question]  # by identity
    curves: Sequence[Curve]
    margin: float  # log
    left: int  # launches that later looks may add


def decide(look: Look, known: Mapping[str, MixEstimate], before: Sequence[MixAtLook]) -> list[MixAtLook]:
    """Judge the mixes that are measured, and add those that decide something; `before` is what the last look left.

    Mixes that are not in `known` had no launch yet: those that were to have one were measured by an earlier design.
    """
    judged = [_judged(asked, look, known, before) for asked in before]
    there = {asked.identity: asked for asked in judged}
    added = dict[str, MixAtLook]()
    if look.left >= ENOUGH_LEFT:
        for curve in look.curves:
            for cell, why in _wanted(curve, look, known, there):
                if cell.identity not in there:
                    added.setdefault(cell.identity, MixAtLook(cell.identity, why=why))
    return [*judged, *added.values()]


def _judged(asked: MixAtLook, look: Look, known: Mapping[str, MixEstimate], before: Sequence[MixAtLook]) -> MixAtLook:
    if (now := known.get(asked.identity)) is None:
        return replace(asked, launches=0, goes_on=look.left > 0)
    answer, after, clear = asked.answer, asked.answered_after, asked.clear
    if not answer:
        question = look.questions[asked.identity]
        answer = _answer(asked.identity, now, known, look, before)
        after = now.launches if answer else 0
        clear = answer == NOTHING or _is_clear(now, question)
    stops = clear or bool(answer and now.launches >= after + FRESH)
    return MixAtLook(asked.identity, now.launches, answer, after, clear, look.left > 0 and not stops, asked.why)


def _is_clear(now: MixEstimate, question: Question) -> bool:
    """Whether it lies far beyond the edge, after so many launches that it has an interval to be printed."""
    return now.launches >= FEWEST_AT_A_LOOK and abs(now.log - question.edge) > CLEARLY * now.half


def _answer(
    identity: str, now: MixEstimate, known: Mapping[str, MixEstimate], look: Look, before: Sequence[MixAtLook]
) -> str:
    question = look.questions[identity]
    if not now.launches:
        return NOTHING
    if question.kind == ORDER:
        others = [each.identity for each in before if each.identity != identity and each.identity in known]
        rivals = [known[each] for each in others if _compete(look.questions[each], question)]
        return _place(now, [rival for rival in rivals if rival.launches], look.margin)
    return side(now, question.edge)


def _compete(one: Question, other: Question) -> bool:
    """Whether both are of partitions of one mix in an order, whose edge is NaN and equals none."""
    return (one.kind, one.mix) == (ORDER, other.mix)


def side(known: MixEstimate, edge: float) -> str:
    """On which side of the edge it lies for certain; "" where that is open."""
    return MORE if known.low > edge else LESS if known.high < edge else ""


def _place(now: MixEstimate, rivals: Sequence[MixEstimate], margin: float) -> str:
    """Its place among all partitions that compete with it; "" while it may be the best one or not."""
    best = min(rivals, key=lambda each: each.log, default=None)
    if best is None or all(now.high < each.low for each in rivals):
        return BEST
    if now.low > best.high:
        return WORSE
    together = math.hypot(now.half, best.half)
    return ALIKE if abs(now.log - best.log) + together < margin else ""


def _wanted(
    curve: Curve, look: Look, known: Mapping[str, MixEstimate], there: Mapping[str, MixAtLook]
) -> Iterator[tuple[Cell, str]]:
    """Cells of a curve that may change an answer, or where it bends between neighbours far apart; with the reason."""
    places = [place for place, cell in enumerate(curve.cells) if cell.identity in there]
    seen = [place for place in places if known.get(curve.cells[place].identity, MixEstimate(0, 0, math.inf)).launches]
    if contradicted([known.get(cell.identity) for cell in curve.cells]):
        yield from ((cell, f"{curve.family} does not only rise, or only fall: all of it is measured")
                    for cell in curve.cells)  # fmt: skip
        return
    bend = _bends(curve, known, seen)
    for left, right in pairwise(places):
        between = curve.cells[left + 1 : right]
        if not between or left not in seen or right not in seen:
            continue
        ends = curve.cells[left], curve.cells[right]
        slow, quick = known[ends[0].identity], known[ends[1].identity]
        edges = {look.questions[cell.identity].edge for cell in between}
        middle = between[(len(between) - 1) // 2 : len(between) // 2 + 1][:1]
        names = f"{ends[0].partition} and {ends[1].partition}"
        if any(slow.log > edge >= quick.log for edge in edges):
            few = between if len(between) <= FEW_BETWEEN else middle
            yield from ((cell, f"the answer changes between {names}") for cell in few)
        elif slow.log - quick.log > WIDE * look.margin and bend.get(left, 0.0) + bend.get(right, 0.0) > look.margin:
            yield from ((cell, f"the curve bends near {names}") for cell in middle)


def _bends(curve: Curve, known: Mapping[str, MixEstimate], seen: Sequence[int]) -> dict[int, float]:
    """By place: how far a measured cell lies from the straight line between its measured neighbours."""
    found: dict[int, float] = {}
    for before, place, after in zip(seen, seen[1:], seen[2:], strict=False):
        cells = [curve.cells[each] for each in (before, place, after)]
        first, own, last = (known[cell.identity].log for cell in cells)
        share = (cells[1].amount - cells[0].amount) / (cells[2].amount - cells[0].amount)
        found[place] = abs(own - (first + share * (last - first)))
    return found


def contradicted(known: Collection[MixEstimate | None]) -> bool:
    """Whether the lead is, for certain, slower in a cell of a curve than in one before it."""
    before: list[MixEstimate] = []
    for each in known:
        if each is None or not each.launches or math.isinf(each.half):
            continue
        if any(each.log - other.log > math.hypot(each.half, other.half) for other in before):
            return True
        before.append(each)
    return False


def mix_estimates(plan: Plan, windows: pd.DataFrame) -> dict[str, MixEstimate]:
    """By identity; on the worse of several platforms."""
    found: dict[str, MixEstimate] = {}
    for part in reversed(pooled(without_hosts(plan, windows, plan.ignored_hosts), windows)):
        # A processor that measured nothing of a mix does not hide what another one measured.
        own = _of_part(part, windows)
        found |= {identity: each for identity, each in own.items() if each.launches or identity not in found}
    return found


def _of_part(plan: Plan, windows: pd.DataFrame) -> dict[str, MixEstimate]:
    contrast = Contrast.of(plan, windows, against_alone(plan))
    table = contrast.rows_over_levels()
    spreads = contrast.launches.groupby(ROW, observed=True)["value"].std()
    spread = np.asarray(spreads.reindex(pd.MultiIndex.from_frame(table[ROW])), dtype=float)
    launches = table["launches"].to_numpy(dtype=float)
    groups = pd.factorize(table["lead"].astype(str) + " " + table["platform"].astype(str))[0]
    half = halves(launches, spread, groups)
    several = (table["over"] != LAUNCHES).to_numpy(dtype=bool)
    half = np.where(several, _wider(table), half)
    identities = {(mix.name, partitions_of(mix)[0]): mix.identity for mix in plan.mixes}
    found: dict[str, MixEstimate] = {}
    rows = zip(table["mix"], table["partition"], launches, table["mean"].to_numpy(dtype=float), half, strict=True)
    for mix, partition, count, log, width in rows:
        each = MixEstimate(int(count), float(log), float(width) if not math.isnan(width) else math.inf)
        before = found.get(identities[mix, partition])
        if before is None or before.half < each.half:
            found[identities[mix, partition]] = each
    return found


def halves(launches: Floats, spread: Floats, groups: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> Floats:
    """Half-widths of the intervals by which mixes are judged, from their launches' standard deviations."""
    freedom = np.where(launches > 1, launches - 1, 0.0)
    own = np.where(freedom > 0, np.nan_to_num(spread) ** 2, 0.0)
    count = int(groups.max()) + 1 if len(groups) else 0
    of_group = np.bincount(groups, weights=freedom, minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        common = (np.bincount(groups, weights=freedom * own, minlength=count) / of_group)[groups]
        others = (of_group[groups] * common - freedom * own) / (of_group[groups] - freedom)
    alone = own > UNLIKE * others
    variance, degrees = np.where(alone, own, common), np.where(alone, freedom, of_group[groups])
    factor = quantile(np.where(degrees > 0, degrees, np.nan), (1 + SURELY) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(factor * np.sqrt(variance / launches), dtype=float)


def _wider(table: pd.DataFrame) -> Floats:
    """The interval over several nodes or sessions, at the confidence by which mixes are judged."""
    freedom = table["freedom"].to_numpy(dtype=float)
    half = (table["high"] - table["mean"]).to_numpy(dtype=float)
    return np.asarray(half * quantile(freedom, (1 + SURELY) / 2) / quantile(freedom), dtype=float)
