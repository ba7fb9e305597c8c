"""Jobs and last-level caches: what is to be divided into groups, and what a group is."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from castmates.analysis.prediction.predicted import Loss, Losses
from castmates.errors import CastmatesError

Aim = Literal["losses", "domains"]


@dataclass(frozen=True)
class Job:
    """A kind of job, several of which may run."""

    name: str
    count: int
    cores: int  # that each of them takes
    limit: float | None = None  # per cent of its rate when alone that each of them may lose


@dataclass(frozen=True)
class Problem:
    """Which jobs are to be divided among which domains, and what counts as good."""

    jobs: tuple[Job, ...]
    domains: tuple[int, ...]  # cores around each last-level cache
    aim: Aim = "losses"
    most: int | None = None  # jobs in one domain
    ways: int = 0  # of each cache; 0 where no way masks may be used
    least_ways: int = 1  # that a mask must have
    worth: float = 0.0  # points that separate ways must save each job on average, where they save no limit

    @cached_property
    def by_name(self) -> dict[str, Job]:
        """Every kind by its name."""
        return {job.name: job for job in self.jobs}

    @cached_property
    def everybody(self) -> tuple[str, ...]:
        """The name of every single job, in the order in which they are written."""
        return tuple(job.name for job in self.jobs for _ in range(job.count))

    def cores_of(self, members: Sequence[str]) -> int:
        """Cores that these take together."""
        return sum(self.by_name[name].cores for name in members)

    def misfit(self) -> str:
        """Why the jobs cannot be placed at all, whatever they lose; "" where nothing speaks against it."""
        largest = max(self.domains)
        for job in self.jobs:
            if job.cores > largest:
                return f"'{job.name}' takes {job.cores} cores, and no domain has more than {largest}"
        if (needed := self.cores_of(self.everybody)) > sum(self.domains):
            return f"the jobs take {needed} cores, and the {len(self.domains)} domains have {sum(self.domains)}"
        if self.most and len(self.everybody) > self.most * len(self.domains):
            return f"{len(self.everybody)} jobs do not fit into {len(self.domains)} domains of {self.most} jobs at most"
        return ""


@dataclass(frozen=True)
class Group:
    """The jobs around one last-level cache, and what each of them loses there."""

    members: tuple[str, ...]  # in order of their names
    losses: tuple[Loss, ...]
    cores: int
    ways: tuple[int, ...] = ()  # of each member for itself; () where they share all ways
    excess: float = 0.0  # points by which upper ends of losses are above limits, over all members

    @cached_property
    def points(self) -> float:
        """The sum of the losses."""
        return sum(loss.pct for loss in self.losses)

    @cached_property
    def counts(self) -> Counter[str]:
        """How many of each kind there are."""
        return Counter(self.members)

    @property
    def predicted(self) -> bool:
        """Whether something of it is not measured."""
        return any(loss.source == "predicted" for loss in self.losses)


Cost = tuple[float, float, float]  # what is beyond limits; domains in use, where they count; losses


@dataclass(frozen=True)
class Grouping:
    """All jobs in groups, a group for each domain that is used."""

    groups: tuple[Group, ...]
    aim: Aim = "losses"

    @cached_property
    def cost(self) -> Cost:
        """What decides between groupings, the most important first."""
        return summed_cost([cost_of(group, self.aim) for group in self.groups])

    @cached_property
    def losses(self) -> list[tuple[str, Loss]]:
        """Every single job with its loss."""
        return [pair for group in self.groups for pair in zip(group.members, group.losses, strict=True)]

    @property
    def mean_loss(self) -> float:
        """Of all jobs, in per cent."""
        return sum(loss.pct for _, loss in self.losses) / len(self.losses)

    @property
    def stp(self) -> float:
        """What all jobs get done, in jobs that are alone (system throughput)."""
        return sum(1 - loss.pct / 100 for _, loss in self.losses)


def cost_of(group: Group, aim: Aim) -> Cost:
    """What a group adds to the cost of a grouping."""
    return group.excess, float(aim == "domains"), group.points


def summed_cost(costs: Sequence[Cost]) -> Cost:
    """The cost of all together."""
    excess, domains, points = (sum(each) for each in zip(*costs, strict=True)) if costs else (0.0, 0.0, 0.0)
    return excess, domains, points


@dataclass(frozen=True)
class FoundGroups:
    """What a search has found."""

    best: tuple[Grouping, ...]  # the best first
    how: Literal["exhaustive", "milp"]
    groups: int  # that could be formed of the jobs and whose losses are known
    seen: int = 0  # groupings that an exhaustive search has compared
    gap: float = 0.0  # of the best: what a better one could be better by, in points of the sum of losses
    seconds: float = field(default=0.0, compare=False)


# Every group that jobs can form around one last-level cache, with what its members lose.
#
# And what jobs lose where nobody knows their losses: placed at random, and each where most cores are free.

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
