"""Which phase of a lead's steps loses how much: paired within rounds, as the effects are.

The loss of a phase is the time that it takes longer in a step, in per cent of the whole solo step: so the losses of all
phases, with the rest that lies between them, add up to the loss of the step.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.intervals import BLOCK, over_launches, per_launch
from castmates.analysis.quantities import Costs, arithmetic_mean
from castmates.analysis.steps import PLACE_OF_BEATS as PLACE
from castmates.analysis.steps import changes_in
from castmates.analysis.whole_launches import beside
from castmates.study.spec import UNMANAGED
from castmates.tables import Columns, frame

SUFFIX = "_s"
STEP, REST = "step", "rest"  # the whole step; what of it lies in no phase
OWN = " (phase)"  # behind the name of a phase that is called as one of them is
_WINDOW = ["platform", "company", "block", "round", "scene", "member"]

PHASES: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "partition": "str",
    "baseline": "str",  # solo; under a partition also unmanaged
    "member": "str",
    "phase": "str",  # forward, forward/attention …; rest is what lies in no phase, step the whole
    "outermost": "bool",  # a part of the step by itself; others lie in one, or in other threads
    "baseline_ms": "float64",  # in a step, mean over launches
    "scene_ms": "float64",
    "share_pct": "float64",  # of the baseline's step
    "loss_pct": "float64",  # longer in a step, in per cent of the baseline's step
    "loss_low": "float64",  # 95 % between launches; NaN below three blocks
    "loss_high": "float64",
    "within_low": "float64",  # 95 % within launch
    "within_high": "float64",
    "blocks": "int64",
    "rounds": "int64",
    "platform": "str",
}


def phases_of(steps: pd.DataFrame) -> list[str]:
    """The phases that a table of steps has columns for."""
    return [str(name).removesuffix(SUFFIX) for name in steps if str(name).endswith(SUFFIX)]


def shown(phase: str) -> str:
    """The name that a phase has here: its own, unless that is kept for the whole step or the rest."""
    return phase + OWN if phase.partition(OWN)[0] in (STEP, REST) else phase


def is_outermost(phase: str) -> bool:
    """Whether a phase is a part of the step by itself."""
    return "/" not in phase


def by_window(steps: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """Seconds per unit that each valid window of a lead spent in each phase, in the whole step and in the rest.

    A row per window and phase. Only steps of which phases and length are both known count, the length from one
    heartbeat to the next.
    """
    phases = phases_of(steps)
    leads = windows[(windows["role"] == "lead") & windows["valid"]].sort_values(PLACE, ignore_index=True)
    at = _places(steps, leads)  # so that of millions of rows no name is compared
    table = steps.loc[at >= 0, ["t_ns", "units", "begin_ns", *(f"{name}{SUFFIX}" for name in phases)]]
    table = table.assign(at=at[at >= 0]).sort_values(["at", "t_ns"])
    within = table.groupby("at", sort=False)
    table["length"], table["done"] = within["t_ns"].diff() / 1e9, within["units"].diff()
    table = table[table["begin_ns"].notna() & (table["done"] > 0)]
    columns = [f"{name}{SUFFIX}" for name in phases]
    group = leads.groupby(_WINDOW, sort=False).ngroup().to_numpy()
    sums = table.groupby(group[table["at"]], sort=False)[[*columns, "length", "done"]].sum(min_count=1)
    sums.index = pd.MultiIndex.from_frame(leads.drop_duplicates(_WINDOW)[_WINDOW].iloc[sums.index])
    spent = sums[columns].div(sums["done"], axis=0).rename(columns=dict(zip(columns, map(shown, phases), strict=True)))
    spent[STEP] = sums["length"] / sums["done"]
    spent[REST] = spent[STEP] - spent[[shown(name) for name in phases if is_outermost(name)]].sum(axis=1)
    long = pd.DataFrame({"seconds": spent.rename_axis(columns="phase").stack(future_stack=True)})
    return long.dropna().reset_index()


def _places(steps: pd.DataFrame, leads: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Of each step, which of these windows it lies in, -1 for none: looked up once for each run of steps."""
    changed = changes_in(steps, PLACE)
    first = np.flatnonzero(changed)
    about = [*PLACE, "platform"]
    runs = steps[about].iloc[first].astype(dict.fromkeys(("company", "member", "platform"), "str"))
    found = runs.merge(leads[about].assign(at=np.arange(len(leads))), on=about, how="left")["at"].fillna(-1)
    return np.repeat(found.to_numpy(dtype=np.int64), np.diff(np.append(first, len(steps))))


def estimate_phases(steps: pd.DataFrame | Iterable[pd.DataFrame], windows: pd.DataFrame) -> pd.DataFrame:
    """A row per lead, mix, partition and phase against solo; under a partition also against the mix without one.

    `steps` are all, or those of some whole launches at a time.
    """
    found = contrasts(windows)
    by, sides = ["row", "platform", "phase"], ["seconds", "seconds_baseline", "step_baseline"]
    names: dict[str, None] = {}
    parts = []
    for part, own in beside(steps, windows):
        names |= dict.fromkeys(phases_of(part))
        spent = by_window(part, own)
        if len(spent) and len(found) and len(both := _pairs(spent, found)):
            parts.append(per_launch(both, by).join(arithmetic_mean(Costs(both, sides), [*by, *BLOCK])))
    if not parts:
        return frame([], PHASES)
    whole = pd.concat(parts).sort_index()
    table = over_launches(whole.drop(columns=sides), by).join(arithmetic_mean(Costs(whole, sides), by)).reset_index()
    table = table.merge(found.drop_duplicates("row"), on="row")
    order = {name: place for place, name in enumerate([*map(shown, names), REST, STEP])}
    table["order"] = table["phase"].map(order)
    return frame(list(_rows(table.sort_values(["row", "platform", "order"]))), PHASES)


def contrasts(windows: pd.DataFrame) -> pd.DataFrame:
    """What is compared with what, as the windows tell it: a row per company, scene of a lead, and baseline."""
    about = ["study", "company", "scene", "kind", "mix", "partition", "member", "workload"]
    rows: dict[tuple[str, ...], int] = {}
    found = []
    for one in windows.loc[windows["role"] == "lead", about].drop_duplicates().to_dict("records"):
        partitioned = one["partition"] != UNMANAGED
        baselines = ["solo"] if one["kind"] == "corun" or (one["kind"] == "solo" and partitioned) else []
        baselines += [UNMANAGED] if one["kind"] == "corun" and partitioned else []
        for baseline in baselines:
            place = (one["mix"], one["partition"], one["member"], baseline)
            found.append(
                {str(key): value for key, value in one.items()}
                | {
                    "row": rows.setdefault(place, len(rows)),
                    "baseline": baseline,
                    "baseline_scene": "solo" if baseline == "solo" else f"corun:{one['mix']}",
                    "lead": one["workload"],
                    "antagonists": one["mix"].partition("+")[2],
                }
            )
    return pd.DataFrame(found)


def _pairs(spent: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Scene and baseline of the same round, phase by phase; `difference` in per cent of the baseline's step."""
    whole = spent[spent["phase"] == STEP].rename(columns={"seconds": "step"}).drop(columns="phase")
    spent = spent.merge(whole, on=_WINDOW)
    keys = ["row", "company", "scene", "member"]
    scenes = spent.merge(found[keys], on=keys[1:])
    sides = found[["row", "company", "baseline_scene", "member"]].rename(columns={"baseline_scene": "scene"})
    baselines = spent.merge(sides, on=keys[1:])
    place = ["row", "platform", "company", "block", "round", "member", "phase"]
    both = scenes[[*place, "seconds"]].merge(
        baselines[[*place, "seconds", "step"]].rename(columns={"step": "step_baseline"}),
        on=place,
        suffixes=("", "_baseline"),
    )
    both["difference"] = 100 * (both["seconds"] - both["seconds_baseline"]) / both["step_baseline"]
    return both


def _rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    same = (
        "study",
        "mix",
        "lead",
        "antagonists",
        "partition",
        "baseline",
        "member",
        "phase",
        "blocks",
        "rounds",
        "platform",
    )
    for row in table.to_dict("records"):
        yield {name: row[name] for name in same} | {
            "outermost": is_outermost(row["phase"]) and row["phase"] != STEP,
            "baseline_ms": 1e3 * row["seconds_baseline"],
            "scene_ms": 1e3 * row["seconds"],
            "share_pct": 100 * row["seconds_baseline"] / row["step_baseline"],
            "loss_pct": row["log"],
            "loss_low": row["log_low"],
            "loss_high": row["log_high"],
            "within_low": row["log_within_low"],
            "within_high": row["log_within_high"],
        }


def largest_loss(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The part of the step that loses most, where one loses at all."""
    parts = [row for row in rows if row["outermost"] and np.isfinite(row["loss_pct"]) and row["loss_pct"] > 0]
    return max(parts, key=lambda row: row["loss_pct"], default=None)


def unmanaged_against_solo(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that a figure begins with."""
    return table[(table["baseline"] == "solo") & (table["partition"] == UNMANAGED)]
