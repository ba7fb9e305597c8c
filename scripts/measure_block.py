"""Rule measure_block: one launch of a company -> block.json and its tables."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.files import cache_folder
from castmates.pipeline.measure_block import measure_block
from castmates.results.plans import read_plan


def main() -> None:
    """Measure the block that the plan holds under this name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("block", help="COMPANY/NUMBER")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="the block.json to write; its tables lie beside it")
    parser.add_argument("--owner", type=int, help="end the block when this process is gone")
    arguments = parser.parse_args()
    plan, folder = read_plan(arguments.plan), arguments.output.parent
    measure_block(plan, arguments.block, folder, cache_folder(), arguments.owner)


castmates.pipeline.script.run(main)
castmates.pipeline.script.leave()
