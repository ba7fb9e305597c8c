"""The measured blocks of a plan -> the study's tables, on disk."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates import block_tables
from castmates.analysis.attribution import estimate_attribution
from castmates.analysis.blocks import blocks_table
from castmates.analysis.carryover import estimate_carryover
from castmates.analysis.controls import estimate_controls
from castmates.analysis.effects import estimate_effects
from castmates.analysis.latency import latencies
from castmates.analysis.margins import margins
from castmates.analysis.resources import NEEDED, resources
from castmates.analysis.stamps import stamps_table
from castmates.analysis.steps import COLUMNS, NAMES
from castmates.analysis.system import system_metrics
from castmates.csv_text import write_csv
from castmates.files import replace
from castmates.project import read_record
from castmates.study.looks import part_of
from castmates.study.spec import Plan
from castmates.tables import WINDOWS

if TYPE_CHECKING:
    import pandas as pd


def write_tables(
    plan: Plan, blocks: Path, margin: float, folder: Path, machine: Mapping[str, Any], isolated: str | None = None
) -> None:
    """Read every block of the plan below `blocks`, estimate, and write all tables into `folder`.

    `isolated` is the partition that the study names as the isolating one.
    With a wanted precision a plan holds more blocks than it may turn out to need: those measured count.
    """
    plan = _measured(plan, blocks)
    places = [blocks / block.path for block in plan.blocks]
    windows = read_windows(places)
    effects, controls = estimate_effects(plan, windows, margin), estimate_controls(plan, windows, margin)
    platforms = set(windows["platform"])
    tables = {
        "effects": effects,
        "attribution": estimate_attribution(plan, windows, margin, isolated, effects),
        "controls": controls,
        "carryover": estimate_carryover(plan, windows),
        "margins": margins(plan, windows),
        "system": system_metrics(plan, windows),
        "latency": latencies(plan, windows, block_tables.parts(places, "steps", COLUMNS, categories=NAMES)),
        "resources": resources(plan, windows, _readings(plan, places)),
        "blocks": blocks_table(read_record(place / "block.json") for place in places),
        "windows": windows,
        "stamps": stamps_table(plan.study, controls, effects, platforms, machine),
    }
    for name, table in tables.items():
        write_table(table, folder / name)


def _readings(plan: Plan, places: Sequence[Path]) -> "Iterator[dict[str, pd.DataFrame]]":
    """What was read and counted, some blocks at a time; samples only where a monitor wrote into them."""
    watched = plan.cache is not None and bool(plan.cache.events)
    for begin in range(0, len(places), block_tables.BLOCKS_AT_A_TIME):
        own = places[begin : begin + block_tables.BLOCKS_AT_A_TIME]
        yield {
            name: block_tables.read(own if watched or name != "samples" else [], name, columns)
            for name, columns in NEEDED.items()
        }


def gather(plan: Plan, blocks: Path, name: str, file: Path) -> None:
    """Write one table of all the plan's blocks into one file, so that figures need not read it block by block."""
    places = [blocks / block.path for block in _measured(plan, blocks).blocks]
    replace(file, partial(block_tables.gather, places, name))


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
    replace(stem.with_suffix(".csv"), partial(write_csv, table))
    replace(stem.with_suffix(".parquet"), lambda file: table.to_parquet(file, index=False, compression="zstd"))
