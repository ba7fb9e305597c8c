"""Which pairs of a grid are measured, so that the others can be predicted: the same whenever it is asked."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush

from castmates.study.predict_keys import PredictKeys

Pair = tuple[str, str]  # lead, antagonist


@dataclass(frozen=True)
class Design:
    """What is measured for the prediction of a grid, each pair once."""

    profiles: tuple[Pair, ...]  # with a bubble or a reporter
    pairs: tuple[Pair, ...]  # of the grid, beyond those
    check: tuple[Pair, ...]  # of the grid, at random among those that none of the others shows; kept from the fit

    @property
    def fitted(self) -> tuple[Pair, ...]:
        """What the model is fitted to."""
        return (*self.profiles, *self.pairs)


def design(keys: PredictKeys, seed: int) -> Design:
    """Profiles first, then pairs of the grid up to the share that is measured, then those that check the fit."""
    return _design(keys.model_dump_json(), seed)


@cache  # a plan asks several times, and 10,000 pairs take seconds
def _design(text: str, seed: int) -> Design:
    keys = PredictKeys.model_validate_json(text)
    profiles = dict.fromkeys(_profiles(keys))
    draft = _Draft(keys, seed)
    for pair in profiles:
        draft.take(pair)
    whole = len(keys.leads) * len(keys.columns)
    pairs = [draft.next() for _ in range(max(0, min(int(keys.measure * whole + 1e-9) - len(profiles), draft.left)))]
    return Design(tuple(profiles), tuple(pairs), tuple(draft.fresh(keys.check)))


def _profiles(keys: PredictKeys) -> Iterator[Pair]:
    for bubble in keys.bubbles:
        yield from ((lead, bubble) for lead in dict.fromkeys([*keys.leads, *keys.reporters]))
    for reporter in keys.reporters:
        yield from ((reporter, name) for name in keys.columns)


class _Draft:
    """A design as it grows. A pair also shows what its antagonist loses beside its lead, if that is in the grid."""

    def __init__(self, keys: PredictKeys, seed: int) -> None:
        self._grid = [(lead, name) for lead in keys.leads for name in keys.columns]
        self._cells = frozenset(self._grid)
        self._seed = seed
        self._luck = {pair: _luck(seed, *pair) for pair in self._grid}
        self._taken: set[Pair] = set()
        self._known: set[Pair] = set()  # cells that some mix of the design shows
        self._rows, self._columns = Counter[str](), Counter[str]()
        self._heap = [(self._worth(pair), pair) for pair in self._grid]
        heapify(self._heap)

    @property
    def left(self) -> int:
        """Pairs that are not in it."""
        return len(self._cells - self._taken)

    def take(self, pair: Pair) -> Pair:
        """Put a pair into it."""
        self._taken.add(pair)
        for lead, name in self._shown(pair):
            self._known.add((lead, name))
            self._rows[lead] += 1
            self._columns[name] += 1
        return pair

    def next(self) -> Pair:
        """Take the pair that shows most of what is known least."""
        while True:
            worth, pair = heappop(self._heap)
            if pair in self._taken:
                continue
            if (now := self._worth(pair)) == worth:
                return self.take(pair)
            heappush(self._heap, (now, pair))  # a pair only ever becomes less worth taking

    def fresh(self, count: int) -> list[Pair]:
        """So many pairs at random among those of whose cells nothing is shown, or all that there are.

        The two pairs of the same programs are one, so that each of their cells is drawn as likely as any other. A
        larger part of the grid that is measured leaves fewer to draw from, in the same order.
        """
        mixes: dict[Pair, Pair] = {}
        for pair in sorted(self._cells - self._known, key=self._luck.__getitem__):
            mixes.setdefault((min(pair), max(pair)), pair)
        drawn = sorted(mixes, key=lambda mix: _luck(self._seed, "fresh", *mix))
        return [mixes[mix] for mix in drawn[:count]]

    def _shown(self, pair: Pair) -> list[Pair]:
        """The cells that this mix shows: its lead's loss and its antagonist's, as far as they are of the grid."""
        return [each for each in dict.fromkeys((pair, pair[::-1])) if each in self._cells or each == pair]

    def _worth(self, pair: Pair) -> tuple[int, int, bytes]:
        new = [cell for cell in self._shown(pair) if cell not in self._known]
        fewest = min((self._rows[lead] + self._columns[name] for lead, name in new), default=0)
        uncovered = sum((self._rows[lead] == 0) + (self._columns[name] == 0) for lead, name in new)
        return -uncovered if uncovered else 2 - len(new), fewest, self._luck[pair]


def _luck(seed: int, *words: str) -> bytes:
    """As good as random, and the same whenever it is asked."""
    return hashlib.sha256("\n".join([str(seed), *words]).encode()).digest()
