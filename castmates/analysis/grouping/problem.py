"""Jobs and last-level caches: what is to be divided into groups, and what a group is."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from castmates.analysis.prediction.losses import Loss

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
