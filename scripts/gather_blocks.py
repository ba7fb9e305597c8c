"""Rule gather_blocks: the tables of some measured blocks -> one file each, in results/STUDY/bundles/N."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.pipeline.estimate_effects import write_bundle
from castmates.project import read_plan


def main() -> None:
    """Read the tables of the bundle's blocks and write all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", help="the number of the bundle")
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; the blocks lie beside it")
    parser.add_argument("--output", type=Path, required=True, help="folder of the bundle")
    given = parser.parse_args()
    write_bundle(read_plan(given.plan), given.plan.parent / "blocks", given.bundle, given.output)


castmates.pipeline.script.run(main)
