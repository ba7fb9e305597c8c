"""The best groupings of a problem: by trying all where they are few, else by an integer programme (HiGHS, by scipy).

Jobs of one kind are not distinguished where all groupings are tried, and neither are domains. In the programme every
group has a variable for each time that it can be used. What is beyond limits is minimised first, then the domains in
use where they count, then the losses; each minimum is a bound of the next programme. The second best is the best of all
that lack one of the first one's groups: each job is in one group, so that all of them make it whole.
"""

import heapq
import operator
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from castmates.analysis.grouping.problem import (
    Cost,
    FoundGroups,
    Group,
    Grouping,
    Groups,
    Problem,
    cost_of,
    summed_cost,
)
from castmates.errors import CastmatesError

CLOSE = 1e-6  # of a minimum that bounds the next programme
TIME_LIMIT = 60.0  # seconds for each of the best groupings
OUT_OF_TIME = 1  # scipy's
MOST_SEEN = 20_000  # groupings, beyond which trying all takes longer than solving
BEST = 3  # groupings that are shown and confirmed
MOST_GROUPS = 2000  # of which all groupings are tried by itself: more make too many
Solver = Literal["auto", "exhaustive", "milp"]


@dataclass
class Programme:
    """The variables and what holds for all groupings."""

    problem: Problem
    groups: Sequence[Group]
    forbidden: list[list[int]] = field(default_factory=list)  # variables that may not all be used again

    def __post_init__(self) -> None:
        """A variable for each time that a group can be used."""
        jobs, domains = self.problem.by_name, len(self.problem.domains)
        times = [
            min(domains, *(jobs[name].count // many for name, many in group.counts.items())) for group in self.groups
        ]
        self.of = [number for number, count in enumerate(times) for _ in range(count)]
        chosen = [self.groups[number] for number in self.of]
        self.excess = np.array([group.excess for group in chosen])
        self.points = np.array([group.points for group in chosen])
        self._fixed = [self._each_job(chosen), *self._room(chosen), *self._in_turn()]

    def _each_job(self, chosen: Sequence[Group]) -> LinearConstraint:
        """Every job is in one group."""
        rows = {job.name: row for row, job in enumerate(self.problem.jobs)}
        cells = [(rows[name], place, many) for place, group in enumerate(chosen) for name, many in group.counts.items()]
        at, places, values = zip(*cells, strict=True)
        matrix = sparse.csr_array((values, (at, places)), shape=(len(rows), len(chosen)))
        counts = [job.count for job in self.problem.jobs]
        return LinearConstraint(matrix, counts, counts)

    def _room(self, chosen: Sequence[Group]) -> list[LinearConstraint]:
        """Of the groups that need more than so many cores there are no more than domains that have them."""
        sizes = np.array([group.cores for group in chosen])
        domains = np.array(self.problem.domains)
        return [
            LinearConstraint((sizes > cores).astype(float)[None, :], -np.inf, int((domains > cores).sum()))
            for cores in sorted({0, *self.problem.domains})
            if (sizes > cores).any()
        ]

    def _in_turn(self) -> list[LinearConstraint]:
        """Of a group that can be used several times the first variable is used first: each grouping is one solution."""
        later = [place for place in range(1, len(self.of)) if self.of[place] == self.of[place - 1]]
        if not later:
            return []
        rows = np.arange(len(later))
        cells = (np.repeat([1.0, -1.0], len(later)), (np.tile(rows, 2), [place - 1 for place in later] + later))
        return [LinearConstraint(sparse.csr_array(cells, shape=(len(later), len(self.of))), 0, np.inf)]

    def best(self, seconds: float) -> tuple[Grouping, float] | None:
        """The best grouping that is not forbidden, and by how many points a better one could be better; None: none."""
        until = time.monotonic() + seconds
        stages = [self.excess, *([np.ones(len(self.of))] if self.problem.aim == "domains" else []), self.points]
        bounds: list[LinearConstraint] = [
            LinearConstraint(_row(places, len(self.of)), -np.inf, len(places) - 1) for places in self.forbidden
        ]
        used, gap = np.zeros(len(self.of)), 0.0
        for number, costs in enumerate(stages):
            if number == 0 and not costs.any():
                continue
            solved = milp(
                costs,
                constraints=[*self._fixed, *bounds],
                integrality=np.ones(len(self.of), dtype=int),
                bounds=Bounds(0, 1),
                options={"time_limit": max(1.0, until - time.monotonic()), "mip_rel_gap": 0.0},
            )
            if solved.x is None:
                if solved.status == OUT_OF_TIME:
                    raise CastmatesError(
                        f"no grouping was found in {seconds:g} s; give more with --seconds, or write a smaller 'most'."
                    )
                return None
            used, least = np.round(solved.x), float(costs @ np.round(solved.x))
            gap = max(0.0, least - float(solved.mip_dual_bound)) if solved.status == OUT_OF_TIME else 0.0
            bounds.append(LinearConstraint(costs[None, :], -np.inf, least + CLOSE))
        places = np.flatnonzero(used)
        self.forbidden.append([int(place) for place in places])
        return Grouping(tuple(self.groups[self.of[place]] for place in places), self.problem.aim), gap


def _row(places: Sequence[int], length: int) -> np.ndarray:
    row = np.zeros((1, length))
    row[0, list(places)] = 1
    return row


def solve(
    problem: Problem, groups: Sequence[Group], best: int, seconds: float = TIME_LIMIT
) -> tuple[list[Grouping], float]:
    """The best groupings, the best first, and by how many points a better one than the first could be better."""
    if not groups:
        return [], 0.0
    programme, found = Programme(problem, groups), list[tuple[Grouping, float]]()
    for _ in range(best):
        if (one := programme.best(seconds)) is None:
            break
        found.append(one)
    return [grouping for grouping, _ in found], found[0][1] if found else 0.0


def room_for(sizes: Sequence[int], domains: Sequence[int]) -> bool:
    """Whether groups of so many cores find domains: the largest around the largest, and so on."""
    if len(sizes) > len(domains):
        return False
    largest = zip(sorted(sizes, reverse=True), sorted(domains, reverse=True), strict=False)
    return all(size <= room for size, room in largest)


def all_groupings(problem: Problem, groups: Sequence[Group]) -> Iterator[tuple[Group, ...]]:
    """Every way to divide all jobs into these groups, each once.

    The first job that is left is in the next group. Where two groups in a row begin with a job of the same kind, the
    later one does not come earlier in the list, so that no grouping comes twice.
    """
    kinds = range(len(problem.jobs))
    counts = [tuple(group.counts[job.name] for job in problem.jobs) for group in groups]
    first = [next(kind for kind in kinds if own[kind]) for own in counts]
    begin = [[number for number, kind in enumerate(first) if kind == own] for own in kinds]
    jobs, most = [job.cores for job in problem.jobs], problem.most or len(problem.everybody)
    domains, largest = len(problem.domains), max(problem.domains)

    def go_on(left: tuple[int, ...], chosen: tuple[int, ...]) -> Iterator[tuple[Group, ...]]:
        if not any(left):
            yield tuple(groups[number] for number in chosen)
            return
        more = domains - len(chosen)  # groups that there may still be
        if sum(left) > more * most or sum(map(operator.mul, left, jobs)) > more * largest:
            return
        kind = next(kind for kind in kinds if left[kind])
        last = chosen[-1] if chosen and first[chosen[-1]] == kind else -1
        for number in begin[kind]:
            own = counts[number]
            if number < last or any(map(operator.gt, own, left)):
                continue
            sizes = [groups[each].cores for each in (*chosen, number)]
            if room_for(sizes, problem.domains):
                yield from go_on(tuple(map(operator.sub, left, own)), (*chosen, number))

    yield from go_on(tuple(job.count for job in problem.jobs), ())


def try_all(
    problem: Problem, groups: Sequence[Group], best: int, most_seen: int = MOST_SEEN
) -> tuple[list[Grouping], int] | None:
    """The best groupings, the best first, and how many there are; None where there are more than can be tried."""
    seen = 0
    kept: list[tuple[tuple[float, ...], int, tuple[Group, ...]]] = []  # a heap, the worst of the best on top
    for chosen in all_groupings(problem, groups):
        seen += 1
        if seen > most_seen:
            return None
        cost = rounded(summed_cost([cost_of(group, problem.aim) for group in chosen]))
        entry = (tuple(-each for each in cost), -seen, chosen)
        if len(kept) < best:
            heapq.heappush(kept, entry)
        elif entry[:2] > kept[0][:2]:
            heapq.heapreplace(kept, entry)
    ordered = sorted(kept, key=lambda entry: entry[:2], reverse=True)
    return [Grouping(chosen, problem.aim) for _, _, chosen in ordered], seen


def rounded(cost: Cost) -> Cost:
    """Without the differences that adding in another order makes."""
    excess, domains, points = (round(each, 9) for each in cost)
    return excess, domains, points


def search(
    groups: Groups, solver: Solver = "auto", best: int = BEST, seconds: float = TIME_LIMIT, most_seen: int | None = None
) -> FoundGroups:
    """The best groupings; none where losses are not known well enough for any."""
    begun, problem, every = time.monotonic(), groups.problem, groups.every()
    if solver == "exhaustive" or (solver == "auto" and len(every) <= MOST_GROUPS):
        tried = try_all(problem, every, best, most_seen or MOST_SEEN)
        if tried is not None:
            found, seen = tried
            return FoundGroups(tuple(found), "exhaustive", len(every), seen, seconds=time.monotonic() - begun)
        if solver == "exhaustive":
            raise CastmatesError(
                f"these jobs can be grouped in more than {most_seen or MOST_SEEN} ways, too many to try all of them; "
                "use the solver 'milp'."
            )
    solved, gap = solve(problem, every, best, seconds)
    return FoundGroups(tuple(solved), "milp", len(every), gap=gap, seconds=time.monotonic() - begun)
