"""Groupings: the integer programme and trying all agree, and both are right; limits, ways, usual ways."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.grouping.advice import agreement, confirmation, keeps
from castmates.analysis.grouping.problem import Group, Groups, Job, Problem, cost_of, summed_cost, usual_groups
from castmates.analysis.grouping.search import room_for, search, solve, try_all
from castmates.analysis.prediction.predicted import Loss
from castmates.errors import CastmatesError

NAMES = "abcdef"


@dataclass(frozen=True)
class Drawn:
    """Losses that are random, and the same whenever they are asked for; some are not known."""

    seed: int
    unknown: float = 0.0
    ways: int = 0

    def of(self, job, beside, ways=None):
        """A loss that grows with the cohort, and falls with ways."""
        if ways is not None and (not self.ways or len(beside) > 1):
            return None
        chance = np.random.default_rng([self.seed, *map(ord, job), *(ord(name) for name in sorted(beside)), ways or 0])
        if ways is None and chance.random() < self.unknown:
            return None
        pct = float(chance.uniform(0, 12)) * len(beside) if ways is None else float(chance.uniform(0, 40)) / ways
        return Loss(pct, pct - 1, pct + 1, "measured")


@st.composite
def problems(draw):
    kinds = draw(st.integers(1, 4))
    jobs = tuple(
        Job(
            NAMES[number],
            draw(st.integers(1, 3)),
            draw(st.integers(1, 2)),
            draw(st.sampled_from([None, 3.0, 8.0, 15.0])),
        )
        for number in range(kinds)
    )
    domains = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    ways = draw(st.sampled_from([0, 4]))
    return Problem(jobs, domains, draw(st.sampled_from(["losses", "domains"])), draw(st.sampled_from([None, 2])), ways)


def least(problem, groups):
    """The cost of the best grouping, by assigning every single job to every domain: nothing of the searches in it."""
    known, best = {group.members: group for group in groups}, None
    for places in itertools.product(range(len(problem.domains)), repeat=len(problem.everybody)):
        members = [
            tuple(sorted(name for name, at in zip(problem.everybody, places, strict=True) if at == place))
            for place in range(len(problem.domains))
        ]
        fits = all(problem.cores_of(own) <= room for own, room in zip(members, problem.domains, strict=True))
        if not fits or any(own and own not in known for own in members):
            continue
        cost = summed_cost([cost_of(known[own], problem.aim) for own in members if own])
        best = cost if best is None else min(best, cost)
    return best


@given(problems(), st.integers(0, 10_000), st.sampled_from([0.0, 0.2]))
@settings(max_examples=60, deadline=None)
def test_both_searches_find_the_best_groupings_of_all(problem, seed, unknown):
    if problem.misfit() or len(problem.domains) ** len(problem.everybody) > 5000:
        return
    groups = Groups(problem, Drawn(seed, unknown, problem.ways)).every()
    every, _ = try_all(problem, groups, 3)
    solved, gap = solve(problem, groups, 3)
    best = least(problem, groups)
    assert (best is None) == (not every)
    assert len(every) == len(solved)
    assert np.allclose([each.cost for each in every], [each.cost for each in solved], atol=1e-4)
    if best is not None:
        assert every[0].cost == pytest.approx(best, abs=1e-6)
        assert gap == 0.0
    for found in (every, solved):
        for grouping in found:
            assert sum((group.counts for group in grouping.groups), Counter()) == Counter(problem.everybody)
            assert room_for([group.cores for group in grouping.groups], problem.domains)
        different = {tuple(sorted(group.members for group in each.groups)) for each in found}
        assert len(different) == len(found)


def test_a_larger_problem_is_solved_by_both_alike():
    jobs = tuple(Job(NAMES[number], 2, 1, 20.0 if number % 2 else None) for number in range(5))
    groups = Groups(Problem(jobs, (4, 4, 4), most=4), Drawn(3))
    every, solved = (search(groups, solver) for solver in ("exhaustive", "milp"))
    assert every.seen > 300
    assert np.allclose([each.cost for each in every.best], [each.cost for each in solved.best], atol=1e-4)
    assert search(groups, most_seen=100).how == "milp"
    with pytest.raises(CastmatesError, match="more than 100 ways, too many to try all of them; use the solver 'milp'"):
        search(groups, "exhaustive", most_seen=100)


def test_a_limit_is_kept_by_the_upper_end_and_needs_one():
    class One:
        def of(self, job, _beside, _ways=None):
            return {"a": Loss(4.0, 3.0, 5.0, "measured"), "b": Loss(1.0, math.nan, math.nan, "measured")}[job]

    for limit, excess in ((5.0, 0.0), (4.5, 0.5), (3.0, 2.0)):
        group = Groups(Problem((Job("a", 1, 1, limit), Job("b", 1, 1)), (2,)), One()).of(["a", "b"])
        assert group.excess == pytest.approx(excess)
        assert keeps(group.losses[0], limit) == {5.0: "kept", 4.5: "not shown", 3.0: "exceeded"}[limit]
    assert Groups(Problem((Job("a", 1, 1), Job("b", 1, 1, 50.0)), (2,)), One()).of(["a", "b"]) is None  # no interval
    assert Groups(Problem((Job("a", 1, 1, 1.0),), (2,)), One()).of(["a"]).points == 0.0  # a job that is alone


def test_ways_are_given_out_so_that_limits_are_kept_and_losses_are_least():
    class Curves:
        def of(self, job, _beside, ways=None):
            if ways is None:
                return Loss(30.0, 29.0, 31.0, "measured")
            pct = (24.0 if job == "a" else 6.0) / ways
            return Loss(pct, pct - 1, pct + 1, "measured")

    def ways(limit, whole=12):
        return Groups(Problem((Job("a", 1, 1, limit), Job("b", 1, 1)), (2,), ways=whole), Curves()).of(["a", "b"]).ways

    best = min(range(1, 12), key=lambda own: 24.0 / own + 6.0 / (12 - own))
    assert ways(None) == (best, 12 - best)
    assert ways(3.7) == (9, 3)  # 24/9 + 1 is just within the limit, 24/8 + 1 is above it
    assert ways(None, whole=0) == ()
    assert (
        Groups(Problem((Job("a", 1, 1), Job("b", 1, 1)), (2,), ways=12), Curves()).of(["a", "b"], masks=False).ways
        == ()
    )


def test_the_usual_ways_use_domains_as_they_are():
    """With losses that count antagonists, spreading has as many around each cache, and random placement loses more."""

    class Antagonists:
        def of(self, _job, beside, _ways=None):
            return Loss(float(len(beside)), 0.0, 99.0, "measured")

    groups = Groups(Problem((Job("a", 4, 1), Job("b", 4, 1)), (8, 8)), Antagonists())
    spread, drawn = (usual_groups(groups, way, 7, tried=200) for way in ("spreading", "random"))
    assert {each.mean_loss for each in spread.groupings} == {3.0}
    # Each of seven others is around the same cache with probability 1/2.
    assert np.mean([each.mean_loss for each in drawn.groupings]) == pytest.approx(3.5, abs=0.15)
    assert usual_groups(groups, "random", 7, tried=200).groupings == drawn.groupings
    tight = Groups(Problem((Job("a", 1, 3), Job("b", 3, 1)), (3, 3)), Antagonists())
    for way in ("spreading", "random"):
        assert all(
            sorted(g.members for g in each.groups) == [("a",), ("b", "b", "b")]
            for each in usual_groups(tight, way, 1, 50).groupings
        )


def test_what_stands_against_placing_jobs_at_all():
    assert "takes 3 cores, and no domain has more than 2" in Problem((Job("a", 1, 3),), (2, 2)).misfit()
    assert "take 5 cores, and the 2 domains have 4" in Problem((Job("a", 5, 1),), (2, 2)).misfit()
    assert "5 jobs do not fit into 2 domains of 2 jobs" in Problem((Job("a", 5, 1),), (4, 4), most=2).misfit()
    many = Problem(tuple(Job(name, 9, 1) for name in "abcdefghijkl"), (64, 64))
    with pytest.raises(CastmatesError, match="more than 200000 groups around one cache; write a smaller 'most'"):
        Groups(many, Drawn(1)).every()


@pytest.mark.parametrize(
    ("fresh", "agrees", "confirmed"),
    [
        (Loss(5.5, 4.5, 6.5, "measured"), "agrees", "unclear"),
        (Loss(9.0, 8.0, 10.0, "measured"), "loses more", "exceeded"),
        (Loss(1.0, 0.5, 1.5, "measured"), "loses less", "confirmed"),
        (Loss(5.0, math.nan, math.nan, "measured"), "too few launches", "too few launches"),
    ],
)
def test_fresh_launches_agree_within_both_intervals_and_confirm_limits_by_their_own(fresh, agrees, confirmed):
    assert agreement(Loss(5.0, 4.0, 6.0, "predicted"), fresh) == agrees
    assert confirmation(fresh, 6.0) == confirmed
    assert confirmation(fresh, None) == ""


def test_a_group_that_is_used_twice_is_two_groups():
    class Hate:
        def of(self, job, beside, _ways=None):
            return Loss(50.0 * sum(name != job for name in beside), 0, 0, "measured")

    problem = Problem((Job("a", 4, 1), Job("b", 4, 1)), (2, 2, 2, 2))
    groups = Groups(problem, Hate()).every()
    (best, *_), _ = solve(problem, groups, 3)
    assert sorted(group.members for group in best.groups) == [("a", "a")] * 2 + [("b", "b")] * 2
    assert isinstance(best.groups[0], Group)
