"""The measured blocks of a plan -> the study's tables, on disk."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.analysis.effects.blocks import blocks_table
from castmates.analysis.effects.carryover import estimate_carryover
from castmates.analysis.effects.controls import estimate_controls
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.effects.margins import margins
from castmates.analysis.effects.stamps import stamps_table
from castmates.analysis.effects.system import system_metrics
from castmates.analysis.explanations.latency import latencies
from castmates.analysis.explanations.resources import NAMES as NAMES_READ
from castmates.analysis.explanations.resources import NEEDED, resources
from castmates.analysis.explanations.steps import COLUMNS, NAMES
from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.files import make_folder, replace, writing
from castmates.parallel import side_by_side
from castmates.project import read_record
from castmates.results import block_tables
from castmates.results.bundles import StudyBlocks, gather_bundle
from castmates.results.columns.study import WINDOWS
from castmates.results.csv import write_csv
from castmates.study.bundles import bundles
from castmates.study.looks import part_of
from castmates.study.spec import Plan

if TYPE_CHECKING:
    import pandas as pd


def write_tables(
    plan: Plan,
    blocks: Path,
    margin: float,
    folder: Path,
    machine: Mapping[str, Any],
    isolated: str | None = None,
    jobs: int = 1,
) -> None:
    """Read every block of the plan below `blocks`, estimate, and write all tables into `folder`; so many at a time.

    `isolated` is the partition that the study names as the isolating one.
    With a wanted precision a plan holds more blocks than it may turn out to need: those measured count.
    """
    plan = _measured(plan, blocks)
    measured = StudyBlocks(blocks.parent, [blocks / block.path for block in plan.blocks])
    windows = measured.read("windows", list(WINDOWS))
    tables: dict[str, Callable[[], pd.DataFrame]] = {  # those that take longest first
        "resources": lambda: resources(plan, windows, _readings(plan, measured)),
        "latency": lambda: latencies(plan, windows, measured.parts("steps", COLUMNS, categories=NAMES)),
        "blocks": lambda: blocks_table(read_record(place / "block.json") for place in measured.places),
        "windows": lambda: windows,
        "carryover": lambda: estimate_carryover(plan, windows),
        "system": lambda: system_metrics(plan, windows),
        "margins": lambda: margins(plan, windows),
    }
    make_folder(folder)
    made = folder / ".new"  # all of them, or none
    shutil.rmtree(made, ignore_errors=True)  # of one that was killed
    try:
        tasks = {name: partial(_write, make, made / name) for name, make in tables.items()}
        tasks["effects"] = partial(_write_verdicts, plan, windows, margin, isolated, machine, made)
        side_by_side(tasks, jobs)
        for file in sorted(made.iterdir()):
            file.replace(folder / file.name)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _write(make: "Callable[[], pd.DataFrame]", stem: Path) -> None:
    write_table(make(), stem)


def _write_verdicts(
    plan: Plan,
    windows: "pd.DataFrame",
    margin: float,
    isolated: str | None,
    machine: Mapping[str, Any],
    folder: Path,
) -> None:
    """Write the effects, and what is made of them."""
    effects, controls = estimate_effects(plan, windows, margin), estimate_controls(plan, windows, margin)
    write_table(effects, folder / "effects")
    write_table(controls, folder / "controls")
    write_table(estimate_attribution(plan, windows, margin, isolated, effects), folder / "attribution")
    write_table(stamps_table(plan.study, controls, effects, set(windows["platform"]), machine), folder / "stamps")


def _readings(plan: Plan, measured: StudyBlocks) -> "Iterator[dict[str, pd.DataFrame]]":
    """What was read and counted, some blocks at a time; samples only where a monitor wrote into them."""
    watched = plan.cache is not None and bool(plan.cache.events)
    for places in measured.together():
        yield {
            name: block_tables.read(places if watched or name != "samples" else [], name, columns, NAMES_READ[name])
            for name, columns in NEEDED.items()
        }


def write_bundle(plan: Plan, blocks: Path, name: str, folder: Path) -> None:
    """Gather the tables of a bundle's blocks, so that nobody need read them block by block."""
    gather_bundle(blocks, bundles(block.path for block in _measured(plan, blocks).blocks)[name], folder)


def _measured(plan: Plan, blocks: Path) -> Plan:
    if not plan.looks:
        return plan
    return part_of(plan, [block.path for block in plan.blocks if (blocks / block.path / "block.json").is_file()])


def read_windows(places: Sequence[Path]) -> "pd.DataFrame":
    """All windows of the blocks in these folders."""
    return block_tables.read(places, "windows", list(WINDOWS))


def write_table(table: "pd.DataFrame", stem: Path) -> None:
    """Write STEM.csv and STEM.parquet, each whole or not at all."""
    # Floats in full: reading them back gives the same bits.
    with writing(stem):
        replace(stem.with_suffix(".csv"), partial(write_csv, table))
        replace(stem.with_suffix(".parquet"), lambda file: table.to_parquet(file, index=False, compression="zstd"))
