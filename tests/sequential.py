"""Simulations that stop as soon as their answer is certain: Wald's sequential test of a share."""

from collections.abc import Callable
from math import log

ERROR = 0.001  # of each wrong answer: a share as promised is refused, or one that is refused is taken for it


def holds(
    batch: Callable[[int], tuple[int, int]], promised: float, refused: float, most: int, error: float = ERROR
) -> bool:
    """Return whether the share of successes is the promised one rather than the refused one.

    `batch(number)` simulates and returns its successes and its trials. Where `most` batches leave it open, the
    likelier of the two is the answer.
    """
    success, failure = log(promised / refused), log((1 - promised) / (1 - refused))
    enough = log((1 - error) / error)
    evidence = 0.0  # the log of how much likelier the promised share is
    for number in range(most):
        successes, trials = batch(number)
        evidence += successes * success + (trials - successes) * failure
        if abs(evidence) >= enough:
            break
    return evidence > 0


def covers(batch: Callable[[int], tuple[int, int]], most: int, promised: float = 0.95) -> bool:
    """Return whether intervals cover as often as promised: neither ten times in a hundred too seldom nor always."""
    seen: dict[int, tuple[int, int]] = {}

    def once(number: int) -> tuple[int, int]:
        if number not in seen:
            seen[number] = batch(number)
        return seen[number]

    return holds(once, promised, promised - 0.05, most) and holds(once, promised, 1 - (1 - promised) / 5, most)
