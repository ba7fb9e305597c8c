"""Rule describe_mix: one mix, resolved to CPUs, partitions and command lines -> mixes/MIX.json."""

import argparse
import json
from pathlib import Path

import castmates.pipeline.script
from castmates.files import replace_text
from castmates.pipeline.describe import describe
from castmates.results.plans import read_plan


def main() -> None:
    """Write the mix with its members."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mix")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    described = describe(read_plan(arguments.plan), arguments.mix)
    replace_text(arguments.output, json.dumps(described, indent=1) + "\n")


castmates.pipeline.script.run(main)
