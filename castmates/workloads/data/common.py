"""What the generators share: their command line, numbers that are the same everywhere, and a texture."""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path


def arguments(does: str, **sizes: int) -> argparse.Namespace:
    """Read `--into FOLDER` and the sizes that a generator has; `folder` is the folder, which is made."""
    parser = argparse.ArgumentParser(description=does)
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER", dest="folder")
    for name, usual in sizes.items():
        parser.add_argument(f"--{name}", type=_positive, default=usual, help=f"{usual} if left out")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    return given


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"a whole number from 1 on, but it is {text!r}")
    return int(text)


_Layer = tuple[list[list[float]], list[tuple[int, int, float]]]  # a grid, and where each place lies between its lines


class Numbers:
    """Random numbers made of `random()` alone, whose sequence Python promises to keep for a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1."""
        return int(self._random() * bound)

    def between(self, low: float, high: float) -> float:
        """A number from low to high."""
        return low + (high - low) * self._random()

    def skewed(self, bound: int) -> int:
        """A whole number below bound, small ones far more often, as words in a language are."""
        low = 1 << self.below(bound.bit_length())  # whole numbers alone: a power may differ in its last bit
        return low + self.below(min(low, bound + 1 - low)) - 1

    def pick(self, choices: Sequence[str]) -> str:
        """One of them."""
        return choices[self.below(len(choices))]


def texture(side: int, seed: int) -> list[bytes]:
    """A square of grey with soft large shapes and a little noise, as rows; it goes on at the opposite edge."""
    numbers = Numbers(seed)
    layers = []
    for cells, weight in ((8, 120), (32, 60), (128, 30)):
        grid = [[numbers.between(0, weight) for _ in range(cells)] for _ in range(cells)]
        steps = [divmod(place * cells / side, 1) for place in range(side)]
        layers.append((grid, [(int(cell), (int(cell) + 1) % cells, share) for cell, share in steps]))
    return [_row(layers, y, side, numbers) for y in range(side)]


def _row(layers: list[_Layer], y: int, side: int, numbers: Numbers) -> bytes:
    total = [numbers.between(0, 24) for _ in range(side)]
    for grid, steps in layers:
        above, below, down = steps[y]
        line = [top + (bottom - top) * down for top, bottom in zip(grid[above], grid[below], strict=True)]
        total = [
            sum_ + line[left] + (line[right] - line[left]) * share
            for sum_, (left, right, share) in zip(total, steps, strict=True)
        ]
    return bytes(map(int, total))
