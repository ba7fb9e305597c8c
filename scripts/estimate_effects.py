"""Rule estimate_effects: the measured blocks -> every table of the study, as CSV and Parquet."""

import argparse
import json
from pathlib import Path

import castmates.pipeline.script
from castmates.pipeline.estimate_effects import write_tables
from castmates.project import read_plan


def main() -> None:
    """Estimate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; the blocks lie beside it")
    parser.add_argument("--machine", type=Path, required=True, help="machine.json")
    parser.add_argument("--margin", type=float, required=True, help="the study's 'margin': a smaller change is none")
    parser.add_argument("--isolated", help="the isolating partition, where the study names it")
    parser.add_argument("--output", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--jobs", type=int, default=1, help="tables made at a time")
    given = parser.parse_args()
    machine = json.loads(given.machine.read_bytes())
    plan, blocks = read_plan(given.plan), given.plan.parent / "blocks"
    write_tables(plan, blocks, given.margin, given.output, machine, given.isolated, given.jobs)


castmates.pipeline.script.run(main)
