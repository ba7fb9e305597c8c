"""STP, ANTT and fairness over sets of mixes: random ones, pairs, groups; of these mixes, and of all like them.

Means are taken on the scale on which each metric is averaged over launches (`system.on_scale`).

The first interval of a mean is of these very mixes: launches are its units, and mixes that share a launch are not
independent. The second one also has the luck of the draw in it. In a balanced draw each workload is in about as many
mixes as any other, so what a workload does to all mixes that it is in is no luck: mixes differ as the residuals of a
regression on who is in a mix. docs/methodology.md has the formulas.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.effects.system import (
    METRICS,
    NO_MORE,
    Metric,
    biased_mixes,
    of_system,
    off_scale,
    on_scale,
    whole_launches,
)
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, Floats, quantile
from castmates.analysis.statistics.pairs import planned
from castmates.results.columns.mixes import SYSTEM_OVER_MIXES
from castmates.results.columns.study import frame
from castmates.study.class_names import without_class
from castmates.study.drawing import Terms
from castmates.study.spec import MixSet, Plan

FEWEST_MIXES = 3
FEWEST_FREEDOM = 3  # below, residuals show next to nothing of how mixes differ
Ints = npt.NDArray[np.int64]
NONE = (np.nan, np.nan)
BY_MEMBERS, BY_SIZE = "by members", "by size"
_SCALED = ("value", "low", "high"), ("all_value", "all_low", "all_high")
Row = dict[str, Any]


@dataclass(frozen=True)
class Estimate:
    """A mean and the ends of its interval."""

    mean: float
    low: float
    high: float
    freedom: float = np.nan

    @property
    def scaled(self) -> tuple[float, float, float]:
        """The mean and the ends."""
        return self.mean, self.low, self.high


class Cohort(NamedTuple):
    """The mixes that share launches, and these (rows)."""

    mixes: Ints
    shares: Floats  # what each launch adds to the error of each mix's mean
    parts: Floats  # the part that each launch has in each mix's mean

    def freedom(self, weights: Floats) -> float:
        """Degrees of freedom: less than launches, where an adaptive study stopped most mixes in the first of them."""
        of_launches = np.square(self.parts @ np.abs(weights))
        return max(float(of_launches.sum() ** 2 / np.square(of_launches).sum()) - 1, 1.0)


@dataclass(frozen=True)
class Launches:
    """A value per mix and launch; all three codes count from 0."""

    mix: Ints
    launch: Ints
    cohort: Ints
    value: Floats

    @cached_property
    def counts(self) -> Floats:
        """How many launches each mix has."""
        return np.bincount(self.mix).astype(float)

    @cached_property
    def means(self) -> Floats:
        """The mean of each mix."""
        return np.bincount(self.mix, self.value) / self.counts

    @cached_property
    def cohorts(self) -> list[Cohort]:
        """The launches of each cohort."""
        return list(self._cohorts())

    @property
    def enough(self) -> bool:
        """Whether every cohort has launches enough for an interval."""
        return all(len(each.shares) >= FEWEST_LAUNCHES for each in self.cohorts)

    def _cohorts(self) -> Iterator[Cohort]:
        shares = (self.value - self.means[self.mix]) / self.counts[self.mix]
        order = np.argsort(self.cohort, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(self.cohort[order])) + 1):
            mixes, columns = np.unique(self.mix[rows], return_inverse=True)
            launches, lines = np.unique(self.launch[rows], return_inverse=True)
            table, parts = np.zeros((2, len(launches), len(mixes)))
            table[lines, columns], parts[lines, columns] = shares[rows], 1 / self.counts[self.mix[rows]]
            table -= table.mean(axis=0)
            own = np.bincount(columns)  # in an adaptive study a mix may be in few of its cohort's launches
            yield Cohort(mixes, table * np.sqrt(own / np.maximum(own - 1, 1)), parts)

    def variance(self, weights: Floats) -> tuple[float, float]:
        """The variance between launches of a weighted sum of the mixes' means, and its degrees of freedom."""
        parts = np.array([np.square(each.shares @ weights[each.mixes]).sum() for each in self.cohorts])
        freedom = np.array([each.freedom(weights[each.mixes]) for each in self.cohorts])
        total = float(parts.sum())
        return total, float(total**2 / (parts**2 / freedom).sum()) if total > 0 else float(freedom.sum())


@dataclass(frozen=True)
class Population:
    """What the mixes were drawn from: who is in each mix (columns), and in all of them on average."""

    rows: Floats  # a row per mix
    average: Floats
    share: Floats  # of the possible mixes like each mix, those that were drawn

    @property
    def estimable(self) -> bool:
        """Whether the mixes show what the average would be, and how far they are from what is expected."""
        missed = np.square(self.average - self.rows.T @ self.weights).sum()  # a workload that no mix has
        return bool(missed < 1e-9) and len(self.rows) - int(np.linalg.matrix_rank(self.rows)) >= FEWEST_FREEDOM

    @cached_property
    def weights(self) -> Floats:
        """The weights of the mixes, with which they stand for the average; about equal after a balanced draw."""
        return np.asarray(np.linalg.pinv(self.rows).T @ self.average, dtype=float)


def of_these(launches: Launches) -> Estimate:
    """The mean of these mixes, with launches as units."""
    count = len(launches.counts)
    weights = np.full(count, 1 / count)
    mean = float(launches.means.mean())
    if not launches.enough or count < FEWEST_MIXES:
        return Estimate(mean, *NONE)
    variance, freedom = launches.variance(weights)
    return _interval(mean, variance, freedom)


def of_all(launches: Launches, population: Population) -> Estimate:
    """The mean of all mixes that could have been drawn, with mixes and launches as units."""
    weights, rows = population.weights, population.rows
    mean = float(weights @ launches.means)
    count, rank = len(rows), int(np.linalg.matrix_rank(rows))
    freedom = count - rank
    if not launches.enough or count < FEWEST_MIXES or freedom < 1:
        return Estimate(mean, *NONE)
    inverse = np.linalg.pinv(rows)
    residuals = launches.means - rows @ (inverse @ launches.means)
    spread = float(residuals @ residuals) / freedom
    noise = 0.0  # the part of it that launches explain
    for mixes, shares, _ in launches.cohorts:
        own = shares - shares @ rows[mixes] @ inverse[:, mixes]
        noise += float((own * shares).sum()) / freedom
    drawn = float((np.square(weights) * (1 - population.share)).sum())
    variance, of_launches = launches.variance(weights)
    total = variance + drawn * max(spread - noise, 0.0)
    parts = (drawn * spread) ** 2 / freedom + variance**2 / of_launches
    return _interval(mean, total, total**2 / parts if parts > 0 else of_launches)


def _interval(mean: float, variance: float, freedom: float) -> Estimate:
    half = float(quantile(np.array([freedom]))[0]) * float(np.sqrt(variance))
    return Estimate(mean, mean - half, mean + half, freedom)


NOTHING = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Draw:
    """Of what a set of random mixes is a sample."""

    leads: Sequence[str]
    pool: Sequence[str]

    def possible(self, size: int) -> int:
        """How many different mixes of so many antagonists there are."""
        return Terms(0, self.leads, self.pool, range(size, size + 1)).possible(size)

    def population(self, members: Sequence[Sequence[str]], by_members: bool) -> Population:
        """What mixes of these members, the lead first, were drawn from; each number of antagonists as often as here."""
        sizes = Counter(len(each) - 1 for each in members)
        rows = pd.DataFrame([{f"size {len(each) - 1}": 1.0} for each in members]).fillna(0.0)
        average = {f"size {size}": count / len(members) for size, count in sizes.items()}
        if by_members:
            names = list(dict.fromkeys((*self.leads, *self.pool)))
            rows = pd.concat([rows, pd.DataFrame([Counter(each) for each in members], columns=names)], axis=1)
            average |= {name: self._expected(name, sizes) for name in names}
        share = [sizes[len(each) - 1] / self.possible(len(each) - 1) for each in members]
        columns = rows.reindex(columns=list(average)).fillna(0.0).to_numpy(dtype=float)
        return Population(columns, np.array(list(average.values())), np.minimum(np.array(share), 1.0))

    def _expected(self, name: str, sizes: Mapping[int, int]) -> float:
        """How often a workload is in a mix."""
        leading = (name in self.leads) / len(self.leads)
        others = [len(set(self.pool) - {lead}) for lead in self.leads if lead != name] if name in self.pool else []
        per_antagonist = sum(1 / count for count in others) / len(self.leads)
        total = sum(sizes.values())
        return sum(count / total * (leading + size * per_antagonist) for size, count in sizes.items())


def system_over_mixes(plan: Plan, windows: pd.DataFrame, added: Mapping[str, Metric] = NO_MORE) -> pd.DataFrame:
    """A row per set, number of antagonists, partition, platform and metric; none in a study without sets."""
    contrasts = of_system(plan) if plan.sets else pd.DataFrame()
    if contrasts.empty:
        return frame([], SYSTEM_OVER_MIXES)
    own = planned(windows, plan)
    _, values = whole_launches(own, contrasts, added)
    flags = biased_mixes(own, contrasts)
    flagged = flags[flags["possibly_biased"]]
    biased = set(zip(flagged["mix"], flagged["partition"], flagged["platform"], strict=True))
    long = on_scale(values)
    long = long[~long["partition"].isin(_of_some_mixes(plan))]
    long["unclassed"] = long["mix"].astype(str).map(without_class)
    members = _members(contrasts)
    rows = [
        row
        for each in plan.sets
        for row in _rows(each, long[long["unclassed"].isin(each.mixes)], members, (*METRICS, *added), biased)
    ]
    table = frame([row | {"study": plan.study, "machine": plan.machine} for row in rows], SYSTEM_OVER_MIXES)
    for ends in _SCALED:
        scaled = off_scale(table["metric"], *(table[name].to_numpy(dtype=float) for name in ends))
        table = table.assign(**dict(zip(ends, scaled, strict=True)))
    return table.astype(dict(SYSTEM_OVER_MIXES))


def _of_some_mixes(plan: Plan) -> list[str]:
    """Partitions that are measured only where a look asks for them: no mean is of mixes that were chosen by results."""
    return [partition.name for mix in plan.mixes if mix.identity in plan.later for partition in mix.partitions]


def _members(contrasts: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """The workloads of each mix, the lead first."""
    first = contrasts.drop_duplicates("mix")
    pairs = zip(first["mix"], first["lead"], first["antagonists"], strict=True)
    return {mix: (without_class(lead), *others.partition(":")[0].split("+")) for mix, lead, others in pairs}


def _rows(
    each: MixSet,
    long: pd.DataFrame,
    members: Mapping[str, tuple[str, ...]],
    metrics: Sequence[str],
    biased: set[tuple[str, str, str]],
) -> Iterator[Row]:
    """The rows of one set: first all of it, then mixes of each size, where there are several."""
    asked = Counter(name.count("+") for name in each.mixes)
    sizes: list[int | None] = [None, *(sorted(asked) if len(asked) > 1 else [])]
    order = {metric: place for place, metric in enumerate(metrics)}
    sizes_of = long["mix"].map({mix: len(names) - 1 for mix, names in members.items()})
    for (partition, platform), part in long.groupby(["partition", "platform"], observed=True, sort=False):
        for size in sizes:
            ours = part if size is None else part[sizes_of.loc[part.index] == size]
            mixes = list(dict.fromkeys(ours["mix"].astype(str)))
            for metric, own in sorted(ours.groupby("metric", observed=True), key=lambda pair: order[str(pair[0])]):
                yield {
                    "set": each.name,
                    "antagonists": size if size is not None or len(asked) > 1 else next(iter(asked)),
                    "partition": partition,
                    "platform": platform,
                    "metric": metric,
                    "mixes_of": len(each.mixes) if size is None else asked[size],
                    "possibly_biased": any((mix, partition, platform) in biased for mix in mixes),
                    **_estimates(each, own, members),
                }


def _estimates(each: MixSet, own: pd.DataFrame, members: Mapping[str, tuple[str, ...]]) -> Row:
    """The two means of one metric, on its scale."""
    mix, mixes = pd.factorize(own["mix"].astype(str))
    cohort, _ = pd.factorize(own["cohort"].astype(str))
    launch, launches = pd.factorize(own["cohort"].astype(str) + "/" + own["launch"].astype(str))
    values: Floats = own["difference"].to_numpy(dtype=float)
    known = Launches(mix, launch, cohort, values)
    these, everything, how, possible = of_these(known), NOTHING, "", None
    if each.pool:
        draw = Draw(each.leads, each.pool)
        there = [members[name] for name in mixes]
        population = draw.population(there, by_members=True)
        how = BY_MEMBERS if population.estimable else BY_SIZE
        everything = of_all(known, population if how == BY_MEMBERS else draw.population(there, by_members=False))
        possible = sum(map(draw.possible, {len(names) - 1 for names in there}))
    freedom = everything.freedom
    about = {"how": how, "freedom": freedom, "mixes": len(mixes), "possible": possible, "launches": len(launches)}
    ends = zip(_SCALED, (these, everything), strict=True)
    return about | {name: value for names, one in ends for name, value in zip(names, one.scaled, strict=True)}
