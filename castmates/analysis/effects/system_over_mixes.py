"""STP, ANTT and fairness over sets of mixes: random ones, pairs, groups; of these mixes, and of all like them.

Means are taken on the scale on which each metric is averaged over launches (`system.on_scale`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
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
from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.over_mixes import Estimate, Launches, Population, of_all, of_these
from castmates.analysis.statistics.pairs import planned
from castmates.results.columns.mixes import SYSTEM_OVER_MIXES
from castmates.results.columns.study import frame
from castmates.study.class_names import without_class
from castmates.study.drawing import Terms
from castmates.study.spec import MixSet, Plan

BY_MEMBERS, BY_SIZE = "by members", "by size"
NOTHING = Estimate(np.nan, np.nan, np.nan)
_SCALED = ("value", "low", "high"), ("all_value", "all_low", "all_high")
Row = dict[str, Any]


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
