"""Sensitivity times pressure: the losses of all pairs from those of some, by alternating least squares.

The logarithm of a pair's slowdown is taken for the sum of a few products, each of a sensitivity of the job and a
pressure of its antagonist. Everything here takes many sets of weights at once, because leaving out one mix after the
other is what shows how good it is.
"""

from dataclasses import dataclass

import numpy as np

from castmates.analysis.statistics.intervals import Floats

STEPS = 60
LEAST_MEAN = 0.05  # of the losses' size, so that a study of hardly any losses has a scale
BEGIN = 0.3  # how far from each other, of the losses' size, further factors begin


@dataclass(frozen=True)
class Shape:
    """How many factors there are, and how firmly each is held to what is usual."""

    rank: int
    common: float  # the first one to a sensitivity and a pressure that are alike for all
    further: float  # the others to none
    scatter: float  # of a logarithm: what no product explains


_HELD = ((1, 1.0, 1.0), (1, 0.3, 1.0), (2, 1.0, 1.0), (2, 0.3, 3.0), (2, 0.1, 1.0), (3, 0.3, 3.0))
SHAPES = tuple(Shape(*held, scatter) for held in _HELD for scatter in (0.02, 0.04))


def fitted_factors(logs: Floats, weights: Floats, shape: Shape) -> Floats:
    """All pairs' logarithms (row: job, column: antagonist) for each set of weights; what has no weight is not known."""
    known = np.where(weights.any(axis=0), logs, 0.0)
    total = np.maximum(weights.sum(axis=(1, 2)), 1e-12)
    size = np.sqrt(np.maximum((weights * known**2).sum(axis=(1, 2)) / total, 1e-8))
    usual = np.sqrt(np.maximum((weights * known).sum(axis=(1, 2)) / total, LEAST_MEAN * size))
    centre = np.zeros((len(weights), 1, shape.rank))
    centre[:, 0, 0] = usual
    held = np.array([shape.common, *[shape.further] * (shape.rank - 1)]) / size[:, None]
    rows, columns = (_begin(centre, size, count) for count in logs.shape)
    turned, weighed = weights.swapaxes(1, 2), weights * known
    for _ in range(STEPS):
        rows = _half(weights, weighed, columns, held, centre)
        columns = _half(turned, weighed.swapaxes(1, 2), rows, held, centre)
    return np.asarray(rows @ columns.swapaxes(1, 2))


def _half(weights: Floats, weighed: Floats, other: Floats, held: Floats, centre: Floats) -> Floats:
    """The best rows for these columns, or the other way round."""
    count, lines, rank = other.shape
    squares = (other[..., :, None] * other[..., None, :]).reshape(count, lines, rank * rank)
    normal = (weights @ squares).reshape(count, -1, rank, rank) + held[:, None, :, None] * np.eye(rank)
    target = weighed @ other + held[:, None] * centre
    return np.asarray(np.linalg.solve(normal, target[..., None])[..., 0])


def _begin(centre: Floats, size: Floats, count: int) -> Floats:
    """Factors that are alike in the first place, and different in the others: a fixed sequence, no chance."""
    ranks = centre.shape[2]
    places = np.arange(count)[:, None] * np.sqrt([2.0, 3.0, 5.0, 7.0][: ranks - 1])
    apart = np.zeros((count, ranks))
    apart[:, 1:] = np.sin(places + 1.0)
    return np.asarray(centre + BEGIN * np.sqrt(size)[:, None, None] * apart)
