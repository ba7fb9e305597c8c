"""A generated study of thousands of launches, in the files that the runner leaves; nothing in it was measured.

One launch of each cohort is played on the modelled machine and written by the runner's own code; the others are copies
of it with their own numbers, seeds and noise. What a modelled machine does not count is made up by chance.
"""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from castmates import project
from castmates.files import make_folder, replace_text
from castmates.pipeline.measure_launch import measure_launch
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import COUNTERS, LAUNCH_TABLES, LAYERS, TOPDOWN
from castmates.results.columns.study import frame
from castmates.study.counter_keys import SETS, TREE
from castmates.study.plan_text import plan_text
from castmates.study.reasons import ReasonKind
from castmates.study.spec import Launch, Plan

NAME = "scale"
ROUNDS = 4
LEADS = ("ranking", "vision", "speech", "lookup", "video", "translation", "forecast", "index")
ANTAGONISTS = ("stream", "database", "backup", "encoder", "graph")
EVENTS = (*SETS["basic"], *SETS["cache"])
KINDS = ("convolution", "matmul", "normalisation", "activation", "embedding", "data movement", "loss", "other")
PHASES = ("input", "forward", "backward")
LAUNCH, NOISE, REJECTED = 0.01, 0.01, 0.02
PARTITIONS = "{split: [2, 4, 6, 8, 10]}"


@dataclass(frozen=True)
class Scale:
    """How large the study is."""

    launches: int
    mixes: int = 40


def study_text(scale: Scale, per_cohort: int) -> str:
    """The study file: modelled, so that it can be planned and played anywhere; its own words for every workload."""
    leads = max(1, scale.mixes // len(ANTAGONISTS))
    names = [LEADS[number % len(LEADS)] + (f"-{number // len(LEADS)}" if number >= len(LEADS) else "")
             for number in range(leads)]  # fmt: skip
    lines = [
        f"name: {NAME}", "title: A generated study", "platform: modelled",
        "model: {cores: 8, ways: 12, way_size: 1.5 MiB, bandwidth: 24 GB}",
        f"leads: [{', '.join(names)}]", f"antagonists: [{', '.join(ANTAGONISTS)}]", "workloads:",
    ]  # fmt: skip
    for number, name in enumerate((*names, *(one for one in ANTAGONISTS if one != "stream"))):
        size, accesses = 2 + number % 14, 60_000 + 9_000 * (number % 9)
        lines.append(
            f"  {name}: {{unit: step, model: {{compute: 0.0{4 + number % 5}, accesses: {accesses}, parallel: 3, "
            f"reuse: [{{size: {size} MiB, share: 60%}}]}}}}"
        )
    return "\n".join([
        *lines, "cache:", "  monitor: 5", f"  sweeps: [{PARTITIONS}]", "controls: null",
        f"budget: {{launches: {per_cohort}, rounds: {ROUNDS}, window: 0.5, settle: 0.1, mixes_per_launch: 1, "
        "longest_launch: 3600}", "seed: 20261122", "",
    ])  # fmt: skip


def make_plan(scale: Scale, home: Path) -> Plan:
    """The plan of a study of exactly so many launches, its file `study.yaml` in `home`."""
    cohorts = max(1, scale.mixes // len(ANTAGONISTS)) * len(ANTAGONISTS)
    replace_text(home / "study.yaml", study_text(scale, -(-scale.launches // cohorts)))
    plan = project.load(home / "study.yaml").plan()
    kept = sorted(plan.launches, key=lambda launch: (launch.number, launch.cohort.id))[: scale.launches]
    return plan.model_copy(update={"launches": tuple(sorted(kept, key=lambda one: (one.cohort.id, one.number)))})


def make_study(plan: Plan, results: Path) -> None:
    """Write plan.json, machine.json and all launches of the plan below `results`."""
    make_folder(results)
    replace_text(results / "plan.json", plan_text(plan))
    machine = {"hostname": "generated", "cpu_model": "generated", "kernel": "generated", "topology": {}}
    replace_text(results / "machine.json", json.dumps(machine))
    cohorts: dict[str, list[Launch]] = {}
    for launch in plan.launches:
        cohorts.setdefault(launch.cohort.id, []).append(launch)
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), mp_context=get_context("spawn")) as processes:
        for done in [processes.submit(_make_cohort, launches, results) for launches in cohorts.values()]:
            done.result()


def _make_cohort(launches: Sequence[Launch], results: Path) -> None:
    first, *others = launches
    plan = Plan(study=NAME, titles={}, mixes=(), controls=(), launches=(first,))
    home = results / "launches" / first.path
    measure_launch(plan, first.path, home, Path())
    record = json.loads((home / "launch.json").read_bytes())
    record["costs"] = {name: _cost(np.random.default_rng(number)) for number, name in enumerate(("perf", "monitor"))}
    record["spec"] |= {"number": "NUMBER", "seed": "SEED"}
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    tables = _made_up({name: pd.read_parquet(home / f"{name}.parquet") for name in LAUNCH_TABLES}, first)
    templates = {name: pa.Table.from_pandas(table, preserve_index=False) for name, table in tables.items()}
    for launch in (first, *others):
        place = results / "launches" / launch.path
        place.mkdir(parents=True, exist_ok=True)
        dice = np.random.default_rng(launch.seed)
        for name, table in templates.items():
            parquet.write_table(_copy(table, name, launch, dice), place / f"{name}.parquet")
        (place / "launch.json").write_text(
            text.replace('"NUMBER"', str(launch.number)).replace('"SEED"', str(launch.seed))
        )


def _cost(dice: np.random.Generator) -> dict[str, Any]:
    logs = dice.normal(0, 0.01, 2).tolist()
    return {"pairs": 2, "change_pct": 0.1, "low": -1.0, "high": 1.0, "of": "rate", "logs": logs, "seconds": None}


def _made_up(tables: dict[str, pd.DataFrame], launch: Launch) -> dict[str, pd.DataFrame]:
    """What the modelled machine has no word for: counters, Top-Down, layers and phases."""
    windows, dice = tables["windows"], np.random.default_rng(launch.seed)
    place = ["study", "cohort", "launch", "window", "round", "scene", "member", "platform"]
    rows = windows[place].to_dict("records")
    counted = {"status": "counted", "running": 1.0, "scope": "cgroup", "source": "perf_event_open", "note": ""}
    counters = [
        {**row, **counted, "event": event, "set": "basic", "value": float(dice.integers(10**6, 10**8))}
        for row in rows
        for event in EVENTS
    ]
    topdown = [
        {**row, **counted, "level": one.level, "metric": one.name, "value": 0.25 + dice.normal(0, 0.01)}
        for row in rows
        for one in TREE
        if one.level == 1
    ]
    leads = windows[windows["role"] == "lead"].drop_duplicates("scene")
    about = ["study", "cohort", "launch", "scene", "mix", "partition", "member", "platform"]
    layers = [
        {**row, "layer": f"{kind}_{number}", "kind": kind, "direction": direction, "calls": 1.0, "share": 1 / 32,
         "ms_per_step": float(dice.lognormal(0, 0.1)), "steps": 10}
        for row in leads[about].to_dict("records")
        for number, kind in enumerate(KINDS * 2)
        for direction in ("forward", "backward")
    ]  # fmt: skip
    made: list[tuple[str, list[dict[Any, Any]], Columns]] = [
        ("counters", [{"phase": "", **row} for row in counters], COUNTERS),
        ("topdown", [{"phase": "", **row} for row in topdown], TOPDOWN),
        ("layers", layers, LAYERS),
    ]
    return (
        tables
        | {name: frame(rows, columns) for name, rows, columns in made}
        | {"steps": _with_phases(tables["steps"], launch)}
    )


def _with_phases(steps: pd.DataFrame, launch: Launch) -> pd.DataFrame:
    """The steps of the lead with their begin and their phases."""
    lead = steps["member"] == launch.cohort.lead.name
    length = steps.groupby(["window", "member"])["t_ns"].diff()
    steps["begin_ns"] = (steps["t_ns"] - length).where(lead).astype("Int64")
    for name in PHASES:
        steps[f"{name}_s"] = (length * 0.3 / 1e9).where(lead)
    return steps


def _copy(table: pa.Table, name: str, launch: Launch, dice: np.random.Generator) -> pa.Table:
    """The table of another launch of the cohort."""
    rows = table.num_rows
    table = _with(table, "launch", np.full(rows, launch.number))
    if name == "windows":
        # The launch's own speed of each scene, and each window's noise.
        scenes, codes = np.unique(table["scene"].to_numpy(zero_copy_only=False), return_inverse=True)
        shift = dice.normal(0, LAUNCH, len(scenes))[codes] + dice.normal(0, NOISE, rows)
        valid = dice.random(rows // 2 + 1)[table["window"].to_numpy() % (rows // 2 + 1)] >= REJECTED
        table = _with(table, "rate", table["rate"].to_numpy() * np.exp(shift))
        table = _with(table, "valid", valid)
        table = _with(table, "reasons", np.where(valid, "", "steal: 4.0 % of cpu1"))
        return _with(table, "reason_kinds", np.where(valid, "", ReasonKind.STEAL))
    if name in NOISY:
        table = _with(table, NOISY[name], table[NOISY[name]].to_numpy() * np.exp(dice.normal(0, NOISE, rows)))
    return table


NOISY = {"counters": "value", "topdown": "value", "layers": "ms_per_step"}


def _with(table: pa.Table, column: str, values: Any) -> pa.Table:  # noqa: ANN401 (an array of any type)
    place = table.schema.get_field_index(column)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(values, field.type))


def part_of_study(plan: Plan, results: Path, launches: int, folder: Path) -> Plan:
    """A smaller study of the same cohorts in `folder`; its launches are links."""
    kept = sorted(plan.launches, key=lambda launch: (launch.number, launch.cohort.id))[:launches]
    part = plan.model_copy(update={"launches": tuple(sorted(kept, key=lambda one: (one.cohort.id, one.number)))})
    make_folder(folder)
    replace_text(folder / "plan.json", plan_text(part))
    replace_text(folder / "machine.json", (results / "machine.json").read_text())
    for launch in part.launches:
        place = folder / "launches" / launch.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(results / "launches" / launch.path)
    return part
