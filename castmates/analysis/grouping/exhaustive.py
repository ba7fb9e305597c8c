"""The best groupings by trying all of them; jobs of one kind are not distinguished, and neither are domains."""

import heapq
import operator
from collections.abc import Iterator, Sequence

from castmates.analysis.grouping.problem import Cost, Group, Grouping, Problem, cost_of, summed_cost

MOST_SEEN = 20_000  # groupings, beyond which trying all takes longer than solving


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
