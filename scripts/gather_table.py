"""Rule gather_table: one table of all measured blocks -> one file, as figures read it."""

import argparse
from pathlib import Path

import castmates.script
from castmates.block_tables import GATHERED
from castmates.estimate import gather
from castmates.project import read_plan


def main() -> None:
    """Read the table of every block and write all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=GATHERED)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; the blocks lie beside it")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    gather(read_plan(given.plan), given.plan.parent / "blocks", given.table, given.output)


castmates.script.run(main)
