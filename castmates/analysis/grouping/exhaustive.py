"""The best groupings by trying all of them; jobs of one kind are not distinguished, and neither are domains."""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence

from castmates.analysis.grouping.problem import Cost, Group, Grouping, Problem, added, cost_of

MOST_SEEN = 100_000  # groupings, beyond which trying all takes longer than solving


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
    order = [job.name for job in problem.jobs]
    begin: dict[str, list[int]] = {name: [] for name in order}
    for number, group in enumerate(groups):
        begin[next(name for name in order if name in group.counts)].append(number)

    def go_on(left: Counter[str], chosen: tuple[int, ...]) -> Iterator[tuple[Group, ...]]:
        first = next((name for name in order if left[name]), None)
        if first is None:
            yield tuple(groups[number] for number in chosen)
            return
        for number in begin[first]:
            group = groups[number]
            # Groups that begin with another kind have smaller or larger numbers; only their own order counts.
            repeated = chosen and chosen[-1] in set_of[first] and number < chosen[-1]
            if repeated or not group.counts <= left:
                continue
            sizes = [groups[each].cores for each in chosen]
            if room_for([*sizes, group.cores], problem.domains):
                yield from go_on(left - group.counts, (*chosen, number))

    set_of = {name: set(numbers) for name, numbers in begin.items()}
    yield from go_on(Counter(problem.everybody), ())


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
        cost = rounded(added([cost_of(group, problem.aim) for group in chosen]))
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
