"""Our way: a cohort of a lead and its mixes, measured in launches by the same command as in a sweep."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from benchmarks import runs
from benchmarks.common import ROOT, build_environments, say
from benchmarks.precision import Floats
from castmates import project
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.statistics.pairs import pair, planned
from castmates.errors import CastmatesError
from castmates.files import cache_folder, replace_text
from castmates.study.model import Study
from castmates.study.plan_text import plan_text
from castmates.study.reading import read_keys
from castmates.study.schedule import launch_seed
from castmates.study.spec import Launch, Plan

CONTROLS = ("alone-again", "placebo", "antagonist-alone")  # kinds of scenes that the usual way has no runs of
STUDY = "a-benchmark"  # its name; nothing of it goes to results/


@dataclass(frozen=True)
class Measured:
    """What a launch left."""

    launch: Launch
    record: Mapping[str, Any]
    windows: pd.DataFrame
    seconds: float  # of the whole command, the start of the interpreter and the writing of the tables included
    waited: bool  # for another measurement on this machine, which is in the seconds too
    slices: pd.DataFrame = field(default_factory=pd.DataFrame)


def study_of(file: Path, seed: int, **budget: object) -> Study:
    """The study that provides catalogue, limits and budget; the budget is changed where a value is not None."""
    try:
        study = read_keys(Study, file.read_text(encoding="utf-8"), str(file))
    except OSError as problem:
        raise CastmatesError(f"{file}: the study cannot be read ({problem.strerror}).") from None
    changes = {key: value for key, value in budget.items() if value is not None}
    budget_now = study.budget.model_copy(update=changes)
    return study.model_copy(update={"seed": seed, "budget": budget_now})


def text_of(study: Study, lead: str, antagonists: Sequence[str]) -> str:
    """The study with one cohort of this lead, which is measured in one launch."""
    cohort = max(study.budget.mixes_per_launch, len(antagonists))
    keys = study.as_written()
    keys |= {"name": STUDY, "leads": [lead], "antagonists": list(antagonists), "mixes": [], "controls": None}
    budget = keys.get("budget", {}) | {"mixes_per_launch": cohort, "launches": 1, "precision": None}
    return yaml.safe_dump(keys | {"budget": budget}, sort_keys=False)


def cohort_plan(study: Study, lead: str, antagonists: Sequence[str], folder: Path) -> Plan:
    """A plan of one launch: this lead with all of these mixes in one launch."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "study.yaml"
    file.write_text(text_of(study, lead, antagonists), encoding="utf-8")
    plan = project.load(file).plan()
    first = plan.launches[0]
    if len(first.cohort.mixes) != len(antagonists):
        raise CastmatesError(
            f"{lead} beside {', '.join(antagonists)} does not fit into one launch here, so that there is nothing to "
            "compare; name fewer antagonists."
        )
    build_environments(first.cohort)
    return only(plan, first)


def only(plan: Plan, *launches: Launch) -> Plan:
    """The plan with these launches and no others."""
    return Plan(study=plan.study, titles=plan.titles, mixes=plan.mixes, controls=(), launches=launches)


def numbered(plan: Plan, number: int) -> Launch:
    """Another launch of the plan's cohort, with another seed."""
    first = plan.launches[0]
    seed = launch_seed(first.seed, first.cohort.id, number)
    return first.model_copy(update={"number": number, "seed": seed})


def measure(plan: Plan, number: int, folder: Path) -> Measured:
    """Measure a launch of the plan as the workflow does, in a separate process; its output goes to `folder`."""
    launch = numbered(plan, number)
    place = folder / launch.path
    place.mkdir(parents=True)
    replace_text(place / "plan.json", plan_text(only(plan, launch)))
    record, seconds, waited = measure_by(ROOT, launch.path, place)
    windows, slices = (pd.read_parquet(place / f"{name}.parquet") for name in ("windows", "slices"))
    return Measured(launch, record, windows, seconds, waited, slices)


def measure_by(tree: Path, path: str, place: Path) -> tuple[dict[str, Any], float, bool]:
    """Measure the launch of `plan.json` in this folder by a checkout's own command.

    Returns its record, the seconds of the whole command, and whether it waited for another measurement.
    """
    words = [sys.executable, str(tree / "scripts" / "measure_launch.py"), path, "--plan", str(place / "plan.json")]
    words += ["--output", str(place / "launch.json"), "--owner", str(os.getpid())]
    begin = time.monotonic()
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tree,
        env=environment_of(tree), check=False,
    )  # fmt: skip
    seconds = time.monotonic() - begin
    if done.returncode != 0 or not (place / "launch.json").is_file():
        words = done.stdout.strip().splitlines() or ["no message"]
        raise CastmatesError(f"launch {path} could not be measured: {words[-1].removeprefix('castmates: ')}")
    record = json.loads((place / "launch.json").read_text())
    if record["status"] != "measured":
        raise CastmatesError(f"launch {path} failed: {record['reason']}")
    say(f"launch {path}: {record['windows']} windows, {record['windows_rejected']} rejected, {seconds:.1f} s")
    return record, seconds, "Waiting for the machine" in done.stdout


def keep_raw(measured: Sequence[Measured]) -> None:
    """Keep all windows and slices beside the run, where one is kept: whoever doubts a number computes it again."""
    if file := os.environ.get(runs.VARIABLE):
        tables = {name: pd.concat([getattr(one, name) for one in measured], ignore_index=True) for name in runs.RAW}
        runs.write_raw(Path(file), tables)


def environment_of(tree: Path) -> dict[str, str]:
    """The environment in which a checkout's own package is imported, with the cache of this one."""
    return os.environ | {"PYTHONPATH": str(tree), "CASTMATES_CACHE": str((ROOT / cache_folder()).resolve())}


def control_seconds(measured: Measured) -> float:
    """The seconds of a launch's rounds that went to slices of controls, each from its switch to the next one's."""
    slices = measured.slices.drop_duplicates("slice").sort_values("switch_ns")
    own = slices["close_ns"] - slices["switch_ns"]
    to_next = slices.groupby(["round", "stretch"])["switch_ns"].shift(-1) - slices["switch_ns"]
    return float(to_next.fillna(own)[slices["kind"].isin(CONTROLS)].sum() / 1e9)


def doubts(measured: Sequence[Measured]) -> list[str]:
    """What limits a report's own figures."""
    waited, windows = sum(one.waited for one in measured), sum(one.record["windows"] for one in measured)
    rejected = sum(one.record["windows_rejected"] for one in measured)
    said = [f"Of our {windows} windows {rejected} were rejected."]
    if waited:
        said.append(
            f"**{waited} of {len(measured)} launches waited for another measurement: their seconds are too many.**"
        )
    return said


def losses(plan: Plan, measured: Sequence[Measured]) -> tuple[Floats, Floats]:
    """The lead's loss against alone by launch (rows) and mix, in log units, and each launch's seconds.

    Launches in which some mix has no complete pair of windows give no row; the others bear their cost.
    """
    plan = only(plan, *(one.launch for one in measured))
    contrasts = mix_contrasts(plan)
    contrasts = contrasts[(contrasts["baseline"] == "alone") & (contrasts["role"] == "lead")]
    windows = pd.concat([one.windows for one in measured], ignore_index=True)
    pairs = pair(planned(windows, plan), contrasts).merge(contrasts[["row", "mix"]].drop_duplicates(), on="row")
    table = pairs.groupby(["launch", "mix"], observed=True)["difference"].mean().unstack("mix")
    table = table.reindex(columns=[mix.name for mix in plan.mixes]).dropna()
    costs = pd.Series({one.launch.number: one.seconds for one in measured})
    useful = costs.loc[table.index]
    share = costs.sum() / useful.sum() if len(useful) else 1.0
    return table.to_numpy(dtype=float), np.asarray(useful * share, dtype=float)
