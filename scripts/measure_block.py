"""Rule measure_block: one launch of a company -> block.json and its three tables."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates import project
from castmates.measuring import runner_of
from castmates.pipeline.measure_block import measure_block


def main() -> None:
    """Measure the block that the plan holds under this name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("block", help="COMPANY/NUMBER")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="the block.json to write; its tables lie beside it")
    parser.add_argument("--owner", type=int, help="end the block when this process is gone")
    parser.add_argument("--log", type=Path, help="write progress to this file too")
    arguments = parser.parse_args()
    plan = project.read_plan(arguments.plan)
    folder, cache = arguments.output.parent, project.cache()
    measure_block(plan, arguments.block, folder, cache, arguments.owner, arguments.log, choose=runner_of)


castmates.pipeline.script.run(main)
