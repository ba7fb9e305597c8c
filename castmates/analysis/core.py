"""What estimates have in common: cells of windows, contrasts, launches, intervals, families of tests, and their table.

An estimate declares what it contrasts (`Contrast`) or averages (`launch_means`), and in which families its p-values are
adjusted; `docs/methodology.md` has why it is so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from castmates.analysis.effects.between_nodes import between_nodes, hosts_of, over_nodes
from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.statistics.intervals import columns_of, holm, lost, over_launches, per_launch, ratio
from castmates.analysis.statistics.pairs import pair, planned, tally
from castmates.results.columns.contract import Columns
from castmates.study.spec import Plan


@dataclass(frozen=True)
class Contrast:
    """Windows of a plan's own launches, and which scene is compared with which baseline in them: a row each."""

    windows: pd.DataFrame
    contrasts: pd.DataFrame

    @classmethod
    def of(cls, plan: Plan, windows: pd.DataFrame, contrasts: pd.DataFrame) -> "Contrast":
        """Those of a plan; launches that it does not have stay out."""
        return cls(planned(windows, plan), contrasts)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The difference of each round in which scene and baseline were measured."""
        return pair(self.windows, self.contrasts)

    @cached_property
    def launches(self) -> pd.DataFrame:
        """What each launch came to, by row and platform."""
        return per_launch(self.pairs, ROW)

    @cached_property
    def hosts(self) -> pd.Series:
        """The node of each launch."""
        return hosts_of(self.windows)

    def by_launch(self, about: Sequence[str]) -> pd.DataFrame:
        """The mean difference of each launch by what the contrasts have in these columns, platform and cohort."""
        rows = self.contrasts.drop_duplicates("row")[list(dict.fromkeys(["row", *about]))]
        by = [*about, "platform", *LAUNCH]
        return self.pairs.merge(rows, on="row").groupby(by, observed=True)["difference"].mean().reset_index()

    def estimates(self) -> pd.DataFrame:
        """The estimate of each row that has launches, by row and platform."""
        return over_launches(self.launches, ROW)

    def rows(self) -> pd.DataFrame:
        """A row per contrast and platform in their order: counts of windows, estimate and interval."""
        counted = _with_silent_ones(tally(self.windows, self.contrasts), self.contrasts, self.windows)
        table = counted.join(self.estimates()).fillna(dict.fromkeys([*counted, "launches", "rounds"], 0))
        return table.reset_index().merge(self.contrasts.drop_duplicates("row"), on="row")

    def rows_over_nodes(self) -> pd.DataFrame:
        """The same; where several nodes measured, the interval is over them."""
        return over_nodes(self.rows(), between_nodes(self.launches, self.hosts, ROW), ROW)


def _with_silent_ones(table: pd.DataFrame, contrasts: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """A line also for what has no window."""
    silent = sorted(set(contrasts["row"]) - set(table.index.get_level_values("row")))
    lines = [*table.index, *((row, only_platform(windows)) for row in silent)]
    return table.reindex(pd.MultiIndex.from_tuples(lines, names=ROW)).sort_index()


def only_platform(windows: pd.DataFrame) -> str:
    """The platform of a row without windows: that of all others if they have but one, else none ('')."""
    platforms = windows["platform"].unique().tolist()
    return str(platforms[0]) if len(platforms) == 1 else ""


def launch_means(rows: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """The mean over launches of the mean in each launch, of these columns; and how many `launches` there are."""
    launches = rows.groupby([*by, *LAUNCH], observed=True)[[*columns]].mean().groupby([*by], observed=True)
    return launches.mean().assign(launches=launches.size())


def adjusted(table: pd.DataFrame, *family: str | pd.Series, p: str = "p_value") -> pd.Series:
    """P-values adjusted for the tests of their family: the rows that share these columns."""
    return table.groupby(list(family))[p].transform(holm)


def losses_of(estimates: pd.DataFrame) -> dict[str, pd.Series]:
    """The columns of a logarithm that is a slowdown: as a ratio, and as a loss of the rate."""
    return columns_of(estimates, "slowdown", ratio) | columns_of(estimates, "loss_pct", lost, ends="loss")


def within_launch(estimates: pd.DataFrame) -> dict[str, pd.Series]:
    """The interval within launches, of ratios."""
    return {name: ratio(estimates[name]) for name in ("within_low", "within_high")}


def in_order(table: pd.DataFrame, by: Sequence[str], **ranks: Mapping[str, int]) -> pd.DataFrame:
    """The table sorted by these columns; those with ranks by the rank of each word."""
    known: Mapping[str, Mapping[str, int]] = ranks
    return table.sort_values(
        list(by), kind="stable", key=lambda column: column.map(known[column.name]) if column.name in known else column
    )


def declared(table: pd.DataFrame, columns: Columns, plan: Plan | None = None) -> pd.DataFrame:
    """A table's own columns, with their types; those of a plan name its study and class of nodes."""
    named = table if plan is None else table.assign(study=plan.study, machine=plan.machine)
    return named[list(columns)].astype(dict(columns)).reset_index(drop=True)
