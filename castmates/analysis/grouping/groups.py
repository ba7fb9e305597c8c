"""Every group that jobs can form around one last-level cache, with what its members lose.

And what jobs lose where nobody knows their losses: placed at random, and each where most cores are free.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from castmates.analysis.grouping.problem import Group, Grouping, Problem
from castmates.analysis.prediction.losses import Loss, Losses
from castmates.errors import CastmatesError

MOST_GROUPS = 200_000
SAME = 1e-9  # points
ALONE = Loss(0.0, 0.0, 0.0, "measured")  # by definition
_Split = tuple[float, float, tuple[int, ...], tuple[Loss, ...]]  # what is beyond limits, losses, ways
TRIED = 1000
TIMES = 1000  # that a way is begun again because a job finds no cores, at most
Way = Literal["random", "spreading"]
_Choose = Callable[[Sequence[int], random.Random], int]  # among the domains with room, by their free cores


@dataclass
class Groups:
    """Makes groups, each once."""

    problem: Problem
    losses: Losses
    _known: dict[tuple[str, ...], Group | None] = field(default_factory=dict)

    def of(self, members: Sequence[str], masks: bool = True) -> Group | None:
        """These jobs together, under way masks where these are better; None where a loss is not known."""
        key = tuple(sorted(members))
        if not masks:
            return self._sharing(key)
        if key not in self._known:
            sharing, divided = self._sharing(key), self._divided(key)
            self._known[key] = divided if divided is not None and self._is_worth(divided, sharing) else sharing
        return self._known[key]

    def _is_worth(self, divided: Group, sharing: Group | None) -> bool:
        """Whether separate ways change enough: the best of many masks is a little better by luck alone."""
        if sharing is None or divided.excess < sharing.excess - SAME:
            return True
        saved = (sharing.points - divided.points) / len(divided.members)
        return divided.excess <= sharing.excess + SAME and saved > self.problem.worth

    def every(self) -> list[Group]:
        """All groups whose losses are known, of those that fit around the largest cache; too many are refused first."""
        found = [group for members in list(self._fitting()) if (group := self.of(members)) is not None]
        return sorted(found, key=lambda group: group.members)

    def pairs(self) -> dict[tuple[str, str], Loss | None]:
        """What each job loses beside each other, without masks; None where that is not known well enough."""
        names = [(job.name, job.count) for job in self.problem.jobs]
        pairs = [(a, b) for a, many in names for b, _ in names if a != b or many > 1]
        return {(a, b): self._loss((a, b), a, None) for a, b in pairs}

    def _fitting(self) -> Iterator[tuple[str, ...]]:
        """Every collection of jobs that finds cores around one cache."""
        jobs, room = self.problem.jobs, max(self.problem.domains)
        most, made = self.problem.most or len(self.problem.everybody), 0
        waiting: list[tuple[int, tuple[str, ...], int]] = [(0, (), room)]
        while waiting:
            place, members, left = waiting.pop()
            if place == len(jobs):
                if members:
                    made += 1
                    yield members
                continue
            if made + len(waiting) > MOST_GROUPS:
                raise CastmatesError(
                    f"these jobs can form more than {MOST_GROUPS} groups around one cache; write a smaller 'most', the "
                    "number of jobs that may share one."
                )
            job = jobs[place]
            for count in range(min(job.count, most - len(members), left // job.cores) + 1):
                waiting.append((place + 1, (*members, *[job.name] * count), left - count * job.cores))

    def _sharing(self, members: tuple[str, ...]) -> Group | None:
        losses = self._losses(members)
        return None if losses is None else self._group(members, losses, ())

    def _losses(self, members: tuple[str, ...]) -> tuple[Loss, ...] | None:
        """Everybody's loss, asked once for those of the same name."""
        known: dict[str, Loss] = {}
        for name in dict.fromkeys(members):
            loss = self._loss(members, name, None)
            if loss is None:
                return None
            known[name] = loss
        return tuple(known[name] for name in members)

    def _loss(self, members: tuple[str, ...], name: str, ways: int | None) -> Loss | None:
        """What it loses beside the others; None where that is not known well enough for its limit."""
        beside = list(members)
        beside.remove(name)
        if not beside:
            return ALONE
        loss = self.losses.of(name, beside, ways)
        return loss if self._usable(name, loss) else None

    def _usable(self, name: str, loss: Loss | None) -> bool:
        """Whether a loss can be used: a limit takes an interval."""
        return loss is not None and (self.problem.by_name[name].limit is None or loss.high == loss.high)

    def _group(self, members: tuple[str, ...], losses: tuple[Loss, ...], ways: tuple[int, ...]) -> Group:
        excess = sum(self._beyond(name, loss) for name, loss in zip(members, losses, strict=True))
        return Group(members, losses, self.problem.cores_of(members), ways, excess)

    def _beyond(self, name: str, loss: Loss) -> float:
        """Points by which the upper end of a loss is above the job's limit."""
        limit = self.problem.by_name[name].limit
        return 0.0 if limit is None else max(0.0, loss.high - limit)

    def _divided(self, members: tuple[str, ...]) -> Group | None:
        """The best way to give all ways of the cache out, some to each member for itself, as far as that is known."""
        whole, least = self.problem.ways, max(1, self.problem.least_ways)
        if len(members) < 2 or whole < least * len(members):
            return None
        best: dict[int, _Split] = {0: (0.0, 0.0, (), ())}  # by ways that are given out
        for name in members:
            curve = {ways: loss for ways in range(least, whole) if (loss := self._loss(members, name, ways))}
            after: dict[int, _Split] = {}
            for given, (excess, points, ways, losses) in best.items():
                for own, loss in curve.items():
                    total = given + own
                    split = (excess + self._beyond(name, loss), points + loss.pct, (*ways, own), (*losses, loss))
                    if total <= whole and (total not in after or split[:2] < after[total][:2]):
                        after[total] = split
            best = after
        if whole not in best:
            return None
        _, _, ways, losses = best[whole]
        return self._group(members, losses, ways)


@dataclass(frozen=True)
class Usual:
    """Many groupings that come about in one way."""

    way: Way
    tried: int
    groupings: tuple[Grouping, ...]  # those in which all jobs found cores, and of which every loss is known


def usual_groups(groups: Groups, way: Way, seed: int, tried: int = TRIED) -> Usual:
    """The jobs arrive in random order, and nobody uses way masks."""
    chance = random.Random(f"{seed}/{way}")
    choose = _at_random if way == "random" else _where_most_is_free
    placed = (_placed(groups.problem, chance, choose) for _ in range(tried))
    made = (_grouping(groups, members) for members in placed if members is not None)
    return Usual(way, tried, tuple(each for each in made if each is not None))


def _grouping(groups: Groups, placed: Sequence[Sequence[str]]) -> Grouping | None:
    """The grouping that these jobs by domain are; None where a loss is not known."""
    known = [groups.of(members, masks=False) for members in placed if members]
    whole = [group for group in known if group is not None]
    return Grouping(tuple(whole), groups.problem.aim) if len(whole) == len(known) else None


def _at_random(free: Sequence[int], chance: random.Random) -> int:
    return chance.randrange(len(free))


def _where_most_is_free(free: Sequence[int], chance: random.Random) -> int:  # noqa: ARG001 (another way needs it)
    return free.index(max(free))


def _placed(problem: Problem, chance: random.Random, choose: _Choose) -> list[list[str]] | None:
    """The jobs by domain; None where some job finds no cores, however often this is begun again."""
    for _ in range(TIMES):
        free, members = list(problem.domains), [list[str]() for _ in problem.domains]
        for name in chance.sample(problem.everybody, len(problem.everybody)):
            cores = problem.by_name[name].cores
            able = [place for place, left in enumerate(free) if left >= cores]
            if not able:
                break
            place = able[choose([free[each] for each in able], chance)]
            free[place] -= cores
            members[place].append(name)
        else:
            return members
    return None
