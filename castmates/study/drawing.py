"""Random mixes: which are drawn next, after those that are drawn already.

A mix depends on the seed, the terms and the mixes before it, and on nothing else. So the first mixes of a longer list
are those of a shorter one, and a list goes on where it ended, also after the terms have changed. Each mix takes those
who have met least, and the seed breaks ties: every workload leads, and meets each other, about equally often.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

from castmates.study.spec import DrawnMix

Pair = frozenset[str]


@dataclass(frozen=True)
class Terms:
    """What mixes are drawn from."""

    seed: int
    leads: Sequence[str]
    pool: Sequence[str]  # of the antagonists
    sizes: range  # how many antagonists a mix has

    def allow(self, mix: DrawnMix) -> bool:
        """Whether a mix that was drawn could still be drawn."""
        return mix.lead in self.leads and len(mix.antagonists) in self.sizes and set(mix.antagonists) <= set(self.pool)

    def beside(self, lead: str) -> list[str]:
        """Who can run beside a lead: everybody else."""
        return [name for name in self.pool if name != lead]

    def possible(self, size: int) -> int:
        """How many different mixes of so many antagonists there are."""
        return sum(self.possible_of(lead, size) for lead in self.leads)

    def possible_of(self, lead: str, size: int) -> int:
        """How many of them a lead has."""
        return comb(len(self.beside(lead)), size)

    @property
    def most(self) -> int:
        """How many different mixes there are."""
        return sum(map(self.possible, self.sizes))


@dataclass
class Tally:
    """Who was drawn, how often, and with whom."""

    leads: Counter[str] = field(default_factory=Counter)
    played: Counter[str] = field(default_factory=Counter)
    met: Counter[Pair] = field(default_factory=Counter)  # two in one mix, whoever of them leads
    beside: Counter[tuple[str, str]] = field(default_factory=Counter)  # lead and antagonist
    sizes: Counter[int] = field(default_factory=Counter)
    led: Counter[tuple[str, int]] = field(default_factory=Counter)  # mixes of so many antagonists, by lead
    known: set[tuple[str, Pair]] = field(default_factory=set)

    @classmethod
    def of(cls, mixes: Iterable[DrawnMix]) -> "Tally":
        """The tally of these mixes."""
        tally = cls()
        for mix in mixes:
            tally.add(mix)
        return tally

    def add(self, mix: DrawnMix) -> None:
        """Count one more mix."""
        everyone = (mix.lead, *mix.antagonists)
        self.leads[mix.lead] += 1
        self.played.update(everyone)
        self.met.update(map(frozenset, combinations(everyone, 2)))
        self.beside.update((mix.lead, name) for name in mix.antagonists)
        self.sizes[len(mix.antagonists)] += 1
        self.led[mix.lead, len(mix.antagonists)] += 1
        self.known.add((mix.lead, frozenset(mix.antagonists)))


def drawn_on(terms: Terms, before: Sequence[DrawnMix], count: int) -> list[DrawnMix]:
    """The list with so many more mixes that it has `count` which the terms allow; it may have that many already."""
    mixes = list(before)
    allowed = [mix for mix in mixes if terms.allow(mix)]
    tally = Tally.of(allowed)
    for _ in range(min(count, terms.most) - len(allowed)):
        mix = _next(terms, tally, len(mixes))
        mixes.append(mix)
        tally.add(mix)
    return mixes


def _next(terms: Terms, tally: Tally, number: int) -> DrawnMix:
    def chance(*words: object) -> bytes:
        """What breaks a tie; random, and the same on every machine and in every version of Python."""
        return hashlib.sha256("/".join(map(str, (terms.seed, number, *words))).encode()).digest()

    sizes = [size for size in terms.sizes if tally.sizes[size] < terms.possible(size)]
    size = min(sizes, key=lambda each: (tally.sizes[each], chance("size", each)))
    leads = [lead for lead in terms.leads if tally.led[lead, size] < terms.possible_of(lead, size)]
    lead = min(leads, key=lambda each: (tally.leads[each], tally.led[each, size], chance("lead", each)))

    def need(chosen: Sequence[str], name: str) -> tuple[int, int, bytes]:
        """How little a workload has met those chosen; squares make one pair that met often worse than two."""
        often = [tally.met[frozenset((other, name))] for other in chosen]
        cost = sum(2 * each + 1 for each in often) + 2 * tally.beside[lead, name] + 1
        return cost, tally.played[name], chance("beside", name)

    def filled(chosen: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if len(chosen) > size:
            yield chosen
            return
        others = [name for name in terms.beside(lead) if name not in chosen]
        for name in sorted(others, key=lambda each: need(chosen, each)):
            yield from filled((*chosen, name))

    everyone = next(each for each in filled((lead,)) if (lead, frozenset(each[1:])) not in tally.known)
    return DrawnMix(lead=lead, antagonists=tuple(sorted(everyone[1:])))
