"""Data sets that are made in memory from a seed, and the pipelines that put batches together from them (numpy alone).

A fifth of all answers are drawn at random, anew in each batch, so that training never comes to its end: gradients
that fade into denormal numbers would change how long a step takes.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

NOISE = 0.2  # share of the answers that are drawn at random
IMAGES, CLASSES, BORDER = 512, 10, 4
TOKENS = 1 << 20
CLICKS, DENSE, TABLES = 1 << 16, 13, 26

Batch = tuple[npt.NDArray[np.generic], ...]
Draw = Callable[[], Batch]


def batches(draw: Draw, source: str, count: int) -> Iterator[Batch]:
    """Give batches for ever: each drawn anew, or a few of them in turn."""
    if source == "memory":
        return itertools.cycle([draw() for _ in range(count)])
    return iter(draw, None)


def images(details: Mapping[str, int], batch: int, seed: int) -> Draw:
    """Images with a pattern of their class below noise: cut out at random, mirrored at random, scaled."""
    rng = np.random.default_rng(seed)
    side = details["side"]
    whole = side + 2 * BORDER
    answers = rng.integers(0, CLASSES, IMAGES)
    patterns = rng.integers(0, 128, (CLASSES, 3, whole, whole), dtype=np.uint8)
    pixels = patterns[answers] + rng.integers(0, 128, (IMAGES, 3, whole, whole), dtype=np.uint8)

    def draw() -> Batch:
        chosen = rng.integers(0, IMAGES, batch)
        corners = rng.integers(0, 2 * BORDER + 1, (batch, 2))
        mirrored = rng.random(batch) < 0.5
        inputs = np.empty((batch, 3, side, side), np.float32)
        for place, (image, (top, left), mirror) in enumerate(zip(chosen, corners, mirrored, strict=True)):
            cut = pixels[image, :, top : top + side, left : left + side]
            inputs[place] = cut[:, :, ::-1] if mirror else cut
        inputs -= np.float32(127)
        inputs /= np.float32(64)
        return inputs, np.where(rng.random(batch) < NOISE, rng.integers(0, CLASSES, batch), answers[chosen])

    return draw


def tokens(details: Mapping[str, int], batch: int, seed: int) -> Draw:
    """A text in which each token follows from the one before, but for noise; batches are windows of it."""
    rng = np.random.default_rng(seed)
    vocabulary, sequence = details["vocabulary"], details["sequence"]
    follows = rng.permutation(vocabulary)
    random = rng.integers(0, vocabulary, TOKENS)
    text = random.copy()
    steady = rng.random(TOKENS) >= NOISE
    for place in range(1, TOKENS):
        if steady[place]:
            text[place] = follows[text[place - 1]]
    window = np.arange(sequence + 1)

    def draw() -> Batch:
        begins = rng.integers(0, TOKENS - sequence - 1, batch)
        both = text[begins[:, None] + window]
        return both[:, :-1], both[:, 1:]

    return draw


def clicks(details: Mapping[str, int], batch: int, seed: int) -> Draw:
    """Lines of a log: counts, a row of each table, and whether it was clicked, which the counts decide."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 1000, (CLICKS, DENSE))
    rows = rng.integers(0, details["rows"], (CLICKS, TABLES))
    clicked = counts[:, 0] > counts[:, 1]

    def draw() -> Batch:
        chosen = rng.integers(0, CLICKS, batch)
        answers = np.where(rng.random(batch) < NOISE, rng.random(batch) < 0.5, clicked[chosen])
        return np.log1p(counts[chosen]).astype(np.float32), rows[chosen], answers.astype(np.float32)

    return draw
