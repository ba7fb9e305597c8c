"""The slowdowns of all members of a mix -> how much the machine gets done: one value per launch, then t over them.

A launch in which one member has no valid pair shows nothing of the whole; it is counted and left out. Formulas and
references are in docs/methodology.md.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast, declared, in_order
from castmates.analysis.effects.contrasts import mix_contrasts, possibly_biased
from castmates.analysis.keys import LAUNCH, MIX
from castmates.analysis.statistics.intervals import Floats, estimate, ratio
from castmates.analysis.statistics.pairs import planned
from castmates.errors import CastmatesError
from castmates.results.columns.study import SYSTEM, frame
from castmates.study.spec import Plan

if TYPE_CHECKING:
    from pandas.core.groupby import DataFrameGroupBy
STP, ANTT, HARMONIC = "STP", "ANTT", "harmonic speedup"
UNFAIRNESS, MAX_SLOWDOWN, JAIN = "unfairness", "max slowdown", "Jain"
METRICS = (STP, ANTT, HARMONIC, UNFAIRNESS, MAX_SLOWDOWN, JAIN)
Metric = Callable[[Floats], float]  # of the slowdowns of a mix's members in a launch; above zero
NO_MORE: Mapping[str, Metric] = {}
ALONE = "alone"  # the baseline of a lead and of an antagonist
_LAUNCH = ["platform", *LAUNCH]


def system_metrics(plan: Plan, windows: pd.DataFrame, added: Mapping[str, Metric] = NO_MORE) -> pd.DataFrame:
    """A row per mix of several members, partition, platform and metric; mixes without a whole launch have no value.

    `added` are the metrics of plug-ins, by name.
    """
    contrasts = of_system(plan)
    if contrasts.empty:
        return frame([], SYSTEM)
    own = planned(windows, plan)
    about, values = whole_launches(own, contrasts, added)
    measured = own[_LAUNCH].drop_duplicates()
    measured = measured.merge(contrasts[[*MIX, "cohort"]].drop_duplicates(), on="cohort")
    counts = measured.groupby([*MIX, "platform"], observed=True).size().rename("measured").reset_index()
    counts = counts.merge(biased_mixes(own, contrasts), on=[*MIX, "platform"], how="left")
    return _table(plan, about, mean_metrics(values, [*MIX, "platform"]), counts, windows, (*METRICS, *added))


def of_system(plan: Plan) -> pd.DataFrame:
    """The contrasts of all members of the mixes, each against its own rate alone, where everyone has one."""
    contrasts = mix_contrasts(plan)
    contrasts = contrasts[(contrasts["baseline"] == ALONE) & (contrasts["antagonists"] != "")]
    of_others = contrasts.loc[contrasts["role"] == "antagonist", "mix"]
    return contrasts[contrasts["mix"].isin(of_others)]


def whole_launches(
    own: pd.DataFrame, contrasts: pd.DataFrame, added: Mapping[str, Metric] = NO_MORE
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The mixes of the plan, and the metrics of every launch in which all members have a pair."""
    about = _mixes(contrasts)
    members = launch_slowdowns(own, contrasts).merge(about[[*MIX, "members"]], on=MIX)
    present = members.groupby([*MIX, *_LAUNCH], observed=True).size().rename("present").reset_index()
    launches = members.merge(present, on=[*MIX, *_LAUNCH])
    return about, launch_metrics(launches[launches["present"] == launches["members"]], [*MIX, *_LAUNCH], added)


def biased_mixes(windows: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    """Whether windows of the co-run were rejected more often than the baseline's of any member."""
    flags = possibly_biased(windows, contrasts).reset_index()
    flags = flags.merge(contrasts.drop_duplicates("row")[["row", *MIX]], on="row")
    return flags.groupby([*MIX, "platform"], observed=True)["possibly_biased"].any().reset_index()


def launch_slowdowns(windows: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    """The slowdown of every member in every launch: the geometric mean over its rounds."""
    members = Contrast(windows, contrasts).by_launch([*MIX, "member"])
    return members.assign(slowdown=ratio(members.pop("difference")))


def launch_metrics(members: pd.DataFrame, launch: list[str], added: Mapping[str, Metric] = NO_MORE) -> pd.DataFrame:
    """The metrics of every launch, from the `slowdown` of its members (rows); the columns `launch` identify one."""
    table = members.assign(progress=1 / members["slowdown"], squared=members["slowdown"] ** -2.0)
    groups = table.groupby(launch, observed=True)
    progress, size = groups["progress"].sum(), groups.size()
    return pd.DataFrame(
        {
            STP: progress,
            ANTT: groups["slowdown"].mean(),
            HARMONIC: size / groups["slowdown"].sum(),
            UNFAIRNESS: groups["slowdown"].max() / groups["slowdown"].min(),
            MAX_SLOWDOWN: groups["slowdown"].max(),
            JAIN: progress**2 / (size * groups["squared"].sum()),
            **{name: _of_each(groups, name, metric) for name, metric in added.items()},
        }
    )


def _of_each(groups: "DataFrameGroupBy[Any, Any]", name: str, metric: Metric) -> "pd.Series[float]":
    """An added metric of every launch."""
    try:
        values = groups["slowdown"].agg(lambda slowdowns: float(metric(slowdowns.to_numpy(dtype=float))))
    except Exception as problem:  # whatever a plug-in's function raises
        why = f"failed ({type(problem).__name__}: {problem}): fix its package, or uninstall it."
        raise CastmatesError(f"the metric '{name}' of a plug-in {why}") from problem
    if not (values > 0).all():
        raise CastmatesError(
            f"the metric '{name}' of a plug-in came to {values.min():g} in a launch, but must be above zero: its "
            "mean is geometric (castmates help plugins)."
        )
    return values


def mean_metrics(values: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Every metric over the launches, with its interval; `values` as `of_launches` gives them."""
    table = estimate(on_scale(values), by=[*by, "metric"])[["mean", "low", "high", "launches"]].reset_index()
    ends = (table[name].to_numpy(dtype=float) for name in ("mean", "low", "high"))
    value, low, high = off_scale(table["metric"], *ends)
    return table.assign(value=value, low=low, high=high)


def on_scale(values: pd.DataFrame) -> pd.DataFrame:
    """A row per launch and metric, with its `difference`: the metric on the scale on which means are taken.

    It is the log scale; of Jain's index the scale of the relative spread of the members' progress, √(1/J - 1), on
    which launches scatter alike however fair they are.
    """
    long = values.reset_index().melt(id_vars=[*values.index.names], var_name="metric")
    jain, value = (long["metric"] == JAIN).to_numpy(), long["value"].to_numpy(dtype=float)
    return long.assign(difference=np.where(jain, np.sqrt(np.maximum(1 / value - 1, 0)), np.log(value)))


def off_scale(metric: pd.Series, mean: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """Means and ends of intervals as metrics again; no end lies where the metric cannot be."""
    jain, unfair = (metric == JAIN).to_numpy(), (metric == UNFAIRNESS).to_numpy()
    low = np.where(jain | unfair, np.maximum(low, 0), low)  # NaN stays NaN
    return (
        np.where(jain, _index(mean), np.exp(mean)),
        np.where(jain, _index(high), np.exp(low)),
        np.where(jain, _index(low), np.exp(high)),
    )


def _index(spread: Floats) -> Floats:
    """Jain's index of members whose progress has this relative spread."""
    return np.asarray(1 / (1 + spread**2), dtype=float)


def _mixes(contrasts: pd.DataFrame) -> pd.DataFrame:
    """The mixes of the plan and how many members each has, in its order."""
    rows = contrasts.drop_duplicates("row")
    members = rows.groupby(MIX, observed=True).size().rename("members").reset_index()
    first = rows.drop_duplicates(MIX)[[*MIX, "lead", "antagonists", "lead_ways"]]
    return first.merge(members, on=MIX)


def _table(
    plan: Plan,
    about: pd.DataFrame,
    values: pd.DataFrame,
    measured: pd.DataFrame,
    windows: pd.DataFrame,
    metrics: Sequence[str],
) -> pd.DataFrame:
    order = {name: place for place, name in enumerate(metrics)}
    platforms = [str(name) for name in windows["platform"].unique()] or [""]
    rows = about.assign(place=range(len(about))).merge(pd.DataFrame({"platform": platforms}), how="cross")
    rows = rows.merge(pd.DataFrame({"metric": metrics}), how="cross").merge(
        values, on=[*MIX, "platform", "metric"], how="left"
    )
    rows = rows.merge(measured, on=[*MIX, "platform"], how="left")
    rows = rows[rows["measured"].notna() | (len(platforms) == 1)]
    rows = rows.fillna({"launches": 0, "measured": 0})
    rows["possibly_biased"] = rows["possibly_biased"].eq(True)  # what has no windows was not rejected
    rows["launches_incomplete"] = rows["measured"] - rows["launches"]
    rows["low"] = rows["low"].where(rows["metric"] != JAIN, rows["low"].clip(lower=1 / rows["members"]))
    return declared(in_order(rows, ["place", "platform", "metric"], metric=order), SYSTEM, plan)
