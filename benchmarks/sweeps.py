"""Whole sweeps of the default study that were kept: their tables, and the section of the page that compares them."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.common import percent
from benchmarks.runs import FOLDER, markdown_table
from castmates.analysis.effects.contrasts import POSITIVE
from castmates.analysis.effects.verdicts import control_verdicts
from castmates.analysis.statistics.intervals import more_than
from castmates.errors import CastmatesError
from castmates.files import make_folder, replace_text
from castmates.study.spec import UNMANAGED

PLACE = FOLDER / "first-look"
TABLES = ("effects", "controls")
RAW, PLAN = ("windows", "slices"), "plan.json"  # whoever doubts a table can make it again
STRICT = 0.02  # the margin before the data; a study's own may have been chosen with figures in hand
ABOUT = "about.json"


class About(BaseModel):
    """When and where a sweep was made."""

    model_config = ConfigDict(frozen=True)
    begun: datetime
    minutes: float  # from the start of the first launch to the end of the last
    launches: int
    commit: str
    machine: str
    margin: float  # the study's

    def head(self) -> str:
        """In one cell."""
        return f"{self.begun:%Y-%m-%d %H:%M}, {self.commit}"


@dataclass(frozen=True)
class Sweep:
    """What one sweep found."""

    about: About
    effects: pd.DataFrame
    controls: pd.DataFrame


def keep(results: Path, margin: float, place: Path = PLACE) -> Path:
    """Add the results of a sweep that is done to those that are kept; return their folder."""
    try:
        made, texts = (
            about(results, margin),
            {name: (results / "tables" / f"{name}.csv").read_text() for name in TABLES},
        )
    except (OSError, KeyError, ValueError) as problem:
        raise CastmatesError(f"{results}: these are not the results of a sweep that is done ({problem}).") from None
    folder = place / f"{made.begun:%Y-%m-%dT%H%M%S}"
    make_folder(folder)
    for name, text in texts.items():
        replace_text(folder / f"{name}.csv", text)
    for name in RAW:
        files = sorted(results.glob(f"launches/*/*/{name}.parquet"))
        pd.concat(map(pd.read_parquet, files)).to_parquet(folder / f"{name}.parquet", compression="zstd", index=False)
    replace_text(folder / PLAN, (results / PLAN).read_text())
    replace_text(folder / ABOUT, made.model_dump_json(indent=1) + "\n")
    return folder


def about(results: Path, margin: float) -> About:
    """When and where the sweep was made that left these results."""
    launches = pd.read_csv(results / "tables" / "launches.csv")
    machine = json.loads((results / "machine.json").read_text())
    begins = [datetime.fromisoformat(text) for text in launches["started"]]
    ends = [begin + timedelta(seconds=took) for begin, took in zip(begins, launches["total_seconds"], strict=True)]
    return About(
        begun=min(begins),
        minutes=round((max(ends) - min(begins)).total_seconds() / 60, 2),
        launches=len(launches),
        commit=f"commit {machine['git']['described']}" + " + uncommitted changes" * bool(machine["git"]["modified"]),
        machine=f"{machine['cpu_model']}, Linux {machine['kernel']}",
        margin=margin,
    )


def kept(place: Path = PLACE) -> list[Sweep]:
    """All of them, the oldest first."""
    found = [_read(file.parent) for file in sorted(place.glob(f"*/{ABOUT}"))]
    return sorted(found, key=lambda sweep: sweep.about.begun)


def section(sweeps: Sequence[Sweep]) -> list[str]:
    """The lines of the page; none where nothing is kept."""
    if not sweeps:
        return []
    heads = [sweep.about.head() for sweep in sweeps]
    return [
        f"## The default study: {len(sweeps)} fresh sweep{'s' * (len(sweeps) != 1)} beside each other",
        "",
        "`python -m benchmarks.first_look RESULTS` keeps the tables of a sweep from a fresh clone, and this section is "
        "written from those; windows, slices and plan are kept too. *Loss* is the lead's loss against alone in points, "
        "± half of its 95 % interval over launches. A control that must not differ is judged at the study's margin, "
        "and also at 2 %, which was the margin before any of these data were seen.",
        "",
        *(
            f"- {sweep.about.head()}: {sweep.about.machine}; {sweep.about.launches} launches in "
            f"{sweep.about.minutes:.1f} minutes, set-up and report not included."
            for sweep in sweeps
        ),
        "",
        *markdown_table(["lead + antagonists", *heads], list(_losses(sweeps))),
        "",
        _apart(sweeps),
        "",
        *markdown_table(["control", *heads], list(_controls(sweeps))),
        "",
    ]


def _losses(sweeps: Sequence[Sweep]) -> Iterator[list[str]]:
    rows = [_own(sweep) for sweep in sweeps]
    for mix in dict.fromkeys(name for table in rows for name in table.index):
        yield [mix, *(_loss(table.loc[mix]) if mix in table.index else "–" for table in rows)]
    widths = [[half for half in map(half_width, table.to_dict("records")) if math.isfinite(half)] for table in rows]
    yield ["**median half-width**", *(f"{median(own):.1f} points" if own else "–" for own in widths)]


def _apart(sweeps: Sequence[Sweep]) -> str:
    """Which losses differ between sweeps by more than their intervals allow."""
    rows = pd.concat([_own(sweep) for sweep in sweeps])
    apart = [
        f"{mix} ({one['loss_pct'].min():.1f} to {one['loss_pct'].max():.1f})"
        for mix, one in rows.groupby(level=0, sort=False)
        if one["loss_low"].max() > one["loss_high"].min()
    ]
    if not apart:
        return "All intervals of a row overlap."
    return (
        f"Intervals that do not overlap, in {len(apart)} of {rows.index.nunique()} rows: {', '.join(apart)}. An "
        "interval covers launches of its sweep; losses also change with the hour, which more launches in one hour do "
        "not show."
    )


def of_leads(effects: pd.DataFrame) -> pd.DataFrame:
    """The losses of leads against alone without a partition."""
    return effects[(effects["role"] == "lead") & (effects["baseline"] == "alone") & (effects["partition"] == UNMANAGED)]


def _own(sweep: Sweep) -> pd.DataFrame:
    """A row per mix."""
    return of_leads(sweep.effects).set_index("mix")


def _loss(row: pd.Series) -> str:
    if not math.isfinite(half_width(row)):
        return str(row["verdict"])
    return f"{row['loss_pct']:.1f} ± {half_width(row):.1f}, {row['verdict']}"


def half_width(row: Mapping[Any, Any] | pd.Series) -> float:
    """Half of the interval of a loss, in points."""
    return float(row["loss_high"] - row["loss_low"]) / 2


def _controls(sweeps: Sequence[Sweep]) -> Iterator[list[str]]:
    tables = [sweep.controls.assign(name=_names(sweep.controls)).set_index("name") for sweep in sweeps]
    for name in dict.fromkeys(name for table in tables for name in table.index):
        yield [name, *(_control(table, name, sweep.about) for table, sweep in zip(tables, sweeps, strict=True))]


def _names(controls: pd.DataFrame) -> list[str]:
    whose = controls["mix"].fillna("").where(controls["mix"].fillna("") != "", controls["lead"])
    return [f"{control}, {who}" for control, who in zip(controls["control"], whose, strict=True)]


def _control(table: pd.DataFrame, name: str, about: About) -> str:
    if name not in table.index:
        return "–"
    row = table.loc[[name]]
    ratio, low, high = row[["ratio", "ratio_low", "ratio_high"]].iloc[0]
    if not math.isfinite(high - low):
        return str(row["verdict"].iloc[0])
    logs = row.assign(mean=np.log(row["ratio"]), low=np.log(row["ratio_low"]), high=np.log(row["ratio_high"]))
    by_margin = {margin: _judged(logs, margin) for margin in sorted({STRICT, about.margin})}
    said = next(iter(by_margin.values()))
    if len(set(by_margin.values())) > 1:
        said = ", ".join(f"at {percent(margin, 0)} {verdict}" for margin, verdict in by_margin.items())
    elif row["control"].iloc[0] != POSITIVE:
        said += f" at {' and at '.join(percent(margin, 0) for margin in by_margin)}"
    return f"{ratio:.3f} ({low:.3f} to {high:.3f}): {said}"


def _judged(logs: pd.DataFrame, margin: float) -> str:
    """By the rules of now: a positive control has to exceed the margin, whatever its sweep asked for."""
    if logs["control"].iloc[0] == POSITIVE:
        logs = logs.assign(p_holm=more_than(logs, np.log1p(margin)))
    return control_verdicts(logs, margin)[0]


def _read(folder: Path) -> Sweep:
    try:
        about = About.model_validate_json((folder / ABOUT).read_text())
        effects, controls = (pd.read_csv(folder / f"{name}.csv") for name in TABLES)
    except (OSError, ValidationError, ValueError) as problem:
        first = str(problem).splitlines()[0]
        raise CastmatesError(f"{folder}: no kept sweep can be read here ({first}); remove the folder.") from None
    return Sweep(about, effects, controls)
