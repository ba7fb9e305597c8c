"""What jobs lose where nobody knows their losses: at random, and each where most cores are free."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from castmates.analysis.grouping.groups import Groups
from castmates.analysis.grouping.problem import Grouping, Problem

TRIED = 1000
TIMES = 1000  # that a way is begun again because a job finds no cores, at most
Way = Literal["random", "spreading"]


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


_Choose = Callable[[Sequence[int], random.Random], int]  # among the domains with room, by their free cores


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
