"""Which phase of a lead's steps loses how much: paired within rounds, as the effects are.

The loss of a phase is the time that it takes longer in a step, in per cent of the step alone: so the losses of all
phases, with the rest that lies between them, add up to the loss of the step.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, of_counts, of_numbers, of_texts
from castmates.analysis.keys import CELL, PLATFORM_WINDOW, ROW
from castmates.analysis.statistics.intervals import Floats, columns_of
from castmates.analysis.statistics.name_codes import Integers, coded, combinations
from castmates.analysis.statistics.window_values import Differences, Values, WindowPlaces
from castmates.results.columns.contract import Columns
from castmates.results.columns.study import frame
from castmates.study.class_names import workload_of
from castmates.study.spec import UNMANAGED

SUFFIX = "_s"
STEP, REST = "step", "rest"  # the whole step; what of it lies in no phase
OWN = " (phase)"  # behind the name of a phase that is called as one of them is
_LAST = (REST, STEP)

# `phase` is forward, forward/attention …; rest is what lies in no phase, step the whole. One that is `outermost` is a
# part of the step by itself; others lie in one, or in other threads. Milliseconds are those in a step, mean over
# launches; share and loss (longer in a step) are per cent of the baseline's step.
PHASES: Columns = {
    **of_texts("study mix lead antagonists partition baseline member phase"),
    "outermost": "bool",
    **of_numbers("baseline_ms scene_ms share_pct loss_pct loss_low loss_high within_low within_high"),
    **of_counts("launches rounds"),
    **of_texts("platform"),
}


def phases_of(steps: pd.DataFrame) -> list[str]:
    """The phases that a table of steps has columns for."""
    return [str(name).removesuffix(SUFFIX) for name in steps if str(name).endswith(SUFFIX)]


def phase_label(phase: str) -> str:
    """The name that a phase has here: its own, unless that is kept for the whole step or the rest."""
    return phase + OWN if phase.partition(OWN)[0] in (STEP, REST) else phase


def is_outermost(phase: str) -> bool:
    """Whether a phase is a part of the step by itself."""
    return "/" not in phase


class Leads:
    """Where the steps of leads may lie."""

    def __init__(self, windows: pd.DataFrame) -> None:
        """Number the valid windows; `places` are their scenes in their rounds."""
        ours = (windows["role"] == "lead") & windows["valid"]
        leads = coded(windows.loc[ours, [*PLATFORM_WINDOW, "round", "scene"]])
        self._windows = WindowPlaces.of(leads, PLATFORM_WINDOW)
        self._place, self.places = combinations(leads, CELL)

    def place_of(self, table: pd.DataFrame) -> Integers:
        """The place of each row, -1 where it is in no valid window of a lead."""
        return np.append(self._place, -1)[self._windows.find(table)]

    def spent(self, steps: pd.DataFrame) -> tuple[Values, list[str]]:
        """Seconds per unit that were spent in each place: in phases, in none of them, and in the whole step.

        Only steps of which phases and length are both known count, the length from one heartbeat to the next. The first
        heartbeat of a slice ends none: what passed since the last one of the slice before are many steps, and a time
        for which the lead was frozen.
        """
        at, phases = self._windows.find(steps), phases_of(steps)
        own = np.flatnonzero(at >= 0)
        own = own[np.lexsort((steps["t_ns"].to_numpy(dtype=np.int64)[own], at[own]))]
        time, units, cut = (steps[name].to_numpy(dtype=np.int64)[own] for name in ("t_ns", "units", "slice"))
        done, known = np.diff(units, prepend=units[:1]), steps["begin_ns"].notna().to_numpy(dtype=bool)[own]
        known &= (np.diff(at[own], prepend=-1) == 0) & (np.diff(cut, prepend=-1) == 0) & (done > 0)
        length, done, place = np.diff(time, prepend=time[:1])[known] / 1e9, done[known], self._place[at[own[known]]]
        inside = [steps[f"{name}{SUFFIX}"].to_numpy(dtype=float)[own[known]] for name in phases]
        sums = [_sums(place, values) for values in (*inside, length, done)]
        rows = np.flatnonzero(np.bincount(place))
        *parts, whole = (own[rows] / sums[-1][rows] for own in sums[:-1])
        outermost = [part for name, part in zip(phases, parts, strict=True) if is_outermost(name)]
        rest = whole - sum(map(np.nan_to_num, outermost), start=np.zeros(len(rows)))
        return Values(rows, np.column_stack([*parts, rest, whole])), [*map(phase_label, phases), REST, STEP]


def _sums(place: Integers, values: Floats) -> Floats:
    """Of each place; NaN where none of its values is known."""
    known = ~np.isnan(values)
    sums = np.bincount(place[known], weights=values[known], minlength=int(place.max(initial=-1)) + 1)
    return np.where(np.bincount(place[known], minlength=len(sums)) > 0, sums, np.nan)


class PhaseTimes:
    """What leads spent in their phases, from steps of some whole launches at a time: millions are read once."""

    def __init__(self, steps: Iterable[pd.DataFrame], windows: pd.DataFrame) -> None:
        """Read them, where any scene is compared with another."""
        self.compared, self.leads = contrasts(windows), Leads(windows)
        self.parts = [] if self.compared.empty else [self.leads.spent(part) for part in steps]


def losses_by_phase(times: PhaseTimes) -> pd.DataFrame:
    """A row per lead, mix, partition and phase against alone; under a partition also against the mix without one."""
    compared, leads = times.compared, times.leads
    if compared.empty:
        return frame([], PHASES)
    differences = Differences.of_contrasts(leads.places, compared, _LAST)
    for spent, names in times.parts:
        differences.add(spent, differences.numbers(names), _sides)
    table = differences.table(["phase"])
    if table.empty:
        return frame([], PHASES)
    table["order"] = (table["number"] - len(_LAST)) % len(differences.metrics)  # rest and step stand last
    table = table.merge(compared.drop_duplicates("row"), on="row").sort_values([*ROW, "order"])
    columns = columns_of(table, "loss_pct", ends="loss") | {
        "outermost": table["phase"].map(is_outermost) & (table["phase"] != STEP),
        "baseline_ms": 1e3 * table["seconds_baseline"],
        "scene_ms": 1e3 * table["seconds"],
        "share_pct": 100 * table["seconds_baseline"] / table["step_baseline"],
    }
    return declared(table.assign(**columns), PHASES)


def _sides(scene: Floats, baseline: Floats) -> dict[str, Floats]:
    """Both, phase by phase, and the difference in per cent of the baseline's step, which is the last column."""
    step = np.broadcast_to(baseline[:, -1:], baseline.shape)
    values = {"seconds": scene, "seconds_baseline": baseline, "step_baseline": step}
    return {"difference": 100 * (scene - baseline) / step} | values


def contrasts(windows: pd.DataFrame) -> pd.DataFrame:
    """What is compared with what, from the windows: a row per cohort, scene of a lead, and baseline."""
    about = ["study", "cohort", "scene", "kind", "mix", "partition", "member", "workload"]
    rows: dict[tuple[str, ...], int] = {}
    compared = []
    for scene in coded(windows.loc[windows["role"] == "lead", about]).drop_duplicates().to_dict("records"):
        partitioned = scene["partition"] != UNMANAGED
        baselines = ["alone"] if scene["kind"] == "corun" or (scene["kind"] == "alone" and partitioned) else []
        baselines += [UNMANAGED] if scene["kind"] == "corun" and partitioned else []
        for baseline in baselines:
            place = (scene["mix"], scene["partition"], scene["member"], baseline)
            compared.append(
                {str(key): value for key, value in scene.items()}
                | {
                    "row": rows.setdefault(place, len(rows)),
                    "baseline": baseline,
                    "baseline_scene": "alone" if baseline == "alone" else f"corun:{scene['mix']}",
                    "lead": workload_of(scene["member"]),
                    "antagonists": scene["mix"].partition("+")[2],
                }
            )
    return pd.DataFrame(compared)


def largest_loss(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The part of the step that loses most, where one loses at all."""
    parts = [row for row in rows if row["outermost"] and np.isfinite(row["loss_pct"]) and row["loss_pct"] > 0]
    return max(parts, key=lambda row: row["loss_pct"], default=None)


def unmanaged_against_alone(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that a figure begins with."""
    return table[(table["baseline"] == "alone") & (table["partition"] == UNMANAGED)]
