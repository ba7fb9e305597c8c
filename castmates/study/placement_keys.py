"""The key `place` of a study, and the file of `castmates advice --place --jobs`: which jobs share which caches."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from castmates.errors import CastmatesError
from castmates.study.placement.layout import Layout
from castmates.study.written import LossPercent, Name, PositivePercentage, Written

MOST_JOBS = 256
COUNT_EXPECTED = f"a whole number from 1 to {MOST_JOBS}, or the keys count and limit"


class JobKeys(Written):
    """So many jobs of one workload."""

    count: int = Field(default=1, ge=1, le=MOST_JOBS, description="how many of them there are")
    limit: LossPercent | None = Field(
        default=None, description="what each of them may lose of its rate when alone, at most, such as 5%"
    )


def _count_alone(value: object) -> object:
    """`stream: 2` is short for `stream: {count: 2}`."""
    if isinstance(value, bool) or not isinstance(value, int | dict | JobKeys):
        raise ValueError(COUNT_EXPECTED)
    if type(value) is int:
        if not 1 <= value <= MOST_JOBS:
            raise ValueError(COUNT_EXPECTED)
        return {"count": value}
    return value


JOB_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_JOBS},
        {
            "type": "object",
            "properties": JobKeys.model_json_schema()["properties"],
            "additionalProperties": False,
        },
    ]
}
JobOf = Annotated[JobKeys, BeforeValidator(_count_alone), WithJsonSchema(JOB_SCHEMA)]


class PlaceKeys(Written):
    """Jobs that are to be divided among the last-level caches of a machine (docs/place.md)."""

    jobs: dict[Name, JobOf] = Field(
        default_factory=dict,
        description="by workload: how many there are, and what each may lose, such as {count: 2, limit: 5%}; a number "
        "alone is the count",
    )
    domains: int | None = Field(
        default=None, ge=1, le=64, description="last-level caches to use; those of the machine if left out"
    )
    cores: int | None = Field(
        default=None, ge=1, le=1024, description="cores around each of them; those of the machine if left out"
    )
    aim: Literal["losses", "domains"] = Field(
        default="losses",
        description="what is best among groupings that keep all limits: losses (the smallest sum of them, which is the "
        "highest system throughput), or domains (the fewest caches in use, and then the losses)",
    )
    masks: bool = Field(
        default=True,
        description="whether jobs around one cache may have separate ways, where losses under them are known",
    )
    most: int | None = Field(default=None, ge=1, le=64, description="jobs that may share one cache")
    machine: Name | None = Field(
        default=None, description="the class of nodes, in a study with 'machines', whose losses and caches are meant"
    )

    @field_validator("jobs")
    @classmethod
    def _not_too_many(cls, jobs: dict[str, JobKeys]) -> dict[str, JobKeys]:
        if sum(job.count for job in jobs.values()) > MOST_JOBS:
            raise ValueError(f"{MOST_JOBS} jobs at most, all kinds together")
        return jobs


# The key `predict` of a study: a grid of pairs of which a part is measured, and the rest predicted.

MEASURED = 0.4  # of the grid
FEWEST_PAIRS = 6  # measured mixes of two, below which nothing is predicted
Names = Annotated[list[Name], Field(min_length=2)]


class PredictKeys(Written):
    """Which pairs are predicted, and what is measured for that."""

    leads: Names = Field(description="the rows of the grid: each beside each of the antagonists")
    antagonists: Names | None = Field(default=None, description="its columns; the leads if left out")
    bubbles: list[Name] = Field(
        default=[],
        description="dials, such as capacity-half-llc and bandwidth-2gbs, beside which every lead is measured: its "
        "sensitivity (castmates help prediction)",
    )
    reporters: list[Name] = Field(
        default=[], description="leads that are measured beside every antagonist and bubble: the pressure of each"
    )
    measure: PositivePercentage = Field(
        default=MEASURED,
        description="how much is measured, as a share of the grid's pairs, the mixes with bubbles and reporters "
        "included; raising it adds pairs and takes none away",
    )
    check: int = Field(
        default=0,
        ge=0,
        description="further pairs, at random among those that no other mix shows, that are measured and kept from the "
        "fit: they show its error",
    )

    @property
    def columns(self) -> list[str]:
        """The antagonists of the grid."""
        return self.leads if self.antagonists is None else self.antagonists

    @property
    def named(self) -> dict[str, list[str]]:
        """The workloads of each of its keys."""
        return {
            "leads": self.leads,
            "antagonists": self.antagonists or [],
            "bubbles": self.bubbles,
            "reporters": self.reporters,
        }

    @field_validator("leads", "antagonists", "bubbles", "reporters")
    @classmethod
    def _each_once(cls, names: list[str] | None) -> list[str] | None:
        if len(set(names or ())) < len(names or ()):
            raise ValueError("each name once")
        return names

    @field_validator("bubbles")
    @classmethod
    def _beside_the_grid(cls, bubbles: list[str], info: ValidationInfo) -> list[str]:
        leads = info.data.get("leads") or ()
        columns = info.data.get("antagonists") or leads
        if both := next((name for name in bubbles if name in columns), None):
            raise ValueError(f"dials beside the grid's antagonists, which have '{both}' too")
        if lead := next((name for name in bubbles if name in leads), None):
            raise ValueError(f"no lead of the grid: '{lead}' is to hold its rate, so it has hardly a loss to show")
        return bubbles

    @field_validator("reporters")
    @classmethod
    def _no_dials(cls, reporters: list[str], info: ValidationInfo) -> list[str]:
        if both := next((name for name in reporters if name in info.data.get("bubbles", ())), None):
            raise ValueError(f"no dial: '{both}' is to hold its rate, so it has hardly a loss to show")
        return reporters

    @field_validator("measure")
    @classmethod
    def _can_be_fitted(cls, measure: float, info: ValidationInfo) -> float:
        if {"leads", "antagonists", "bubbles", "reporters"} <= set(info.data):
            leads, columns = info.data["leads"], info.data["antagonists"] or info.data["leads"]
            pairs = len(leads) * len(columns)
            least = _least(leads, columns, info.data["bubbles"], info.data["reporters"])
            if least > pairs:
                raise ValueError(
                    f"fewer 'bubbles' and 'reporters': they need {least} measured mixes, which is more than the grid's "
                    f"{pairs} pairs"
                )
            if int(measure * pairs + 1e-9) < least:
                raise ValueError(
                    f"at least {-(-100 * least // pairs)}%, because the other pairs of {len(leads)} leads and "
                    f"{len(columns)} antagonists need {least} measured mixes to be predicted from"
                )
        return measure


def _least(leads: list[str], columns: list[str], bubbles: list[str], reporters: list[str]) -> int:
    """The mixes with bubbles and reporters, and what is needed to have each lead and each antagonist in one."""
    rows = 0 if bubbles else len({*leads} - {*reporters})
    return (
        len({*leads, *reporters}) * len(bubbles)
        + len(reporters) * len(columns)
        + max(rows, 0 if reporters else len(columns))
    )


# Which pairs of a grid are measured, so that the others can be predicted: the same whenever it is asked.

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


# A machine and the keys of a placement -> the last-level caches that jobs are placed on.


def domains_of(layout: Layout, keys: PlaceKeys, origin: str) -> list[tuple[int, int]]:
    """The last-level caches to use, each with the cores around it."""
    if keys.domains and keys.cores:
        return [(number, keys.cores) for number in range(keys.domains)]
    there = Counter(core.llc for core in layout.cores)
    here = sorted((cache, cores) for cache, cores in there.items() if cache is not None)
    if not here:
        raise CastmatesError(
            f"{origin}: this machine does not show its last-level caches; write how many there are, and with how many "
            "cores each: `domains: 2` and `cores: 8`."
        )
    if keys.domains and keys.domains > len(here):
        raise CastmatesError(
            f"{origin}: 'domains' is {keys.domains}, but the machine has {len(here)}; for another machine give 'cores' "
            "too."
        )
    chosen = here[: keys.domains] if keys.domains else here
    if keys.cores and (small := min(cores for _, cores in chosen)) < keys.cores:
        raise CastmatesError(f"{origin}: 'cores' is {keys.cores}, but a cache of the machine has {small} around it.")
    return [(cache, keys.cores or cores) for cache, cores in chosen]
