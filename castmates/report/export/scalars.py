"""A study's launches as scalars, by scene: how fast each member was, what was counted, and what leads lost."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

import numpy as np
import pandas as pd

from castmates.analysis.design.precision import against_alone
from castmates.analysis.explanations.counted_metrics import usable
from castmates.analysis.keys import ROW, WINDOW
from castmates.analysis.statistics.intervals import per_launch
from castmates.analysis.statistics.pairs import log_rates, pair
from castmates.report.export.event_files import Scalar
from castmates.report.results import Results, records

MEASURED = "measured"
PLACE = ["platform", "cohort", "scene", "launch"]
COUNTED = [*WINDOW, "event", "value", "status", "running", "phase", "source"]
ENDS = {"estimate": "loss_pct", "low": "loss_low", "high": "loss_high"}
Runs = Mapping[tuple[str, ...], list[Scalar]]  # by the folders of the run


def scalars(results: Results) -> Runs:
    """The scalars of each run, which is a scene of a cohort; those that were not measured name their platform."""
    starts = _starts(results)
    found: dict[tuple[str, ...], list[Scalar]] = defaultdict(list)
    for part in (_rates(results), _counters(results), _losses(results)):
        for platform, cohort, scene, launch, tag, value, about in part:
            if math.isfinite(value):
                run = (cohort, scene) if platform == MEASURED else (platform, cohort, scene)
                found[run].append(Scalar(tag, launch, starts.get((cohort, launch), 0.0), value, about))
    return found


Row = tuple[str, str, str, int, str, float, str]  # platform, cohort, scene, launch, tag, value, what it is


def _rates(results: Results) -> Iterator[Row]:
    """The geometric mean of each member's windows that count."""
    units = results.windows.groupby("member", observed=True)["unit"].first()
    means = log_rates(results.windows).groupby([*PLACE, "member"], observed=True)["log_rate"].mean().reset_index()
    for row in records(means):
        about = f"rate ({units[row['member']]} per second) in a launch: geometric mean of its windows that count"
        yield *(row[name] for name in PLACE), f"rate/{row['member']}", math.exp(row["log_rate"]), about


def _counters(results: Results) -> Iterator[Row]:
    """The mean of each event in the windows that count; what was counted for part of the time is left out."""
    windows = results.windows[results.windows["valid"]][[*WINDOW, "platform", "scene", "open_s"]]
    sums: list[pd.DataFrame] = []
    for part in results.launch_parts("counters", COUNTED):
        counts = part[usable(part)].merge(windows, on=WINDOW)
        counts = counts.assign(value=counts["value"].to_numpy(dtype=float) / counts["open_s"].to_numpy(dtype=float))
        sums.append(counts.groupby([*PLACE, "member", "event"], observed=True)["value"].mean().reset_index())
    for row in records(pd.concat(sums, ignore_index=True)) if sums else []:
        about = f"{row['event']} per second in a launch: mean of its windows that count"
        yield *(row[name] for name in PLACE), f"counters/{row['member']}/{row['event']}", row["value"], about


def _losses(results: Results) -> Iterator[Row]:
    """What a lead lost in each launch, and beside it the estimate of all launches with the ends of its interval."""
    contrasts = against_alone(results.plan)
    if contrasts.empty:
        return
    effects = results.lead_effects("alone", under_partitions=True)
    estimates = {(row["platform"], row["mix"], row["partition"]): row for row in records(effects)}
    launches = per_launch(pair(results.windows, contrasts), ROW).reset_index()
    named = contrasts[["row", "scene", "mix", "partition", "member"]].drop_duplicates("row")
    for row in records(launches.merge(named, on="row")):
        place = (row["platform"], row["cohort"], row["scene"], row["launch"])
        lost = 100 * (1 - float(np.exp(-row["value"])))
        yield *place, "loss/launch", lost, f"per cent that {row['member']} lost in a launch against itself alone"
        known = estimates.get((row["platform"], row["mix"], row["partition"]), {})
        for end, column in ENDS.items():
            value = float(known.get(column, math.nan))
            yield *place, f"loss/{end}", value, "per cent, of all launches together; 95 % between launches"


def _starts(results: Results) -> dict[tuple[str, int], float]:
    """When each launch began, in seconds since 1970."""
    found = {}
    for row in records(results.launches[["cohort", "launch", "started"]]):
        try:
            found[row["cohort"], row["launch"]] = datetime.fromisoformat(row["started"]).timestamp()
        except (TypeError, ValueError):  # modelled launches begin at no time
            continue
    return found
