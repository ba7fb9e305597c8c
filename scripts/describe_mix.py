"""Rule describe_mix: one mix, resolved to CPUs, partitions and command lines."""

import argparse
import json
from pathlib import Path

import castmates.pipeline.script
from castmates import project
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.study.spec import Plan


def main() -> None:
    """Write the mix with its members."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mix")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    described = describe(project.read_plan(arguments.plan), arguments.mix)
    replace_text(arguments.output, json.dumps(described, indent=1) + "\n")


def describe(plan: Plan, name: str) -> dict[str, object]:
    """The mix, its members, and the scenes and companies that measure it."""
    same = [one for one in plan.mixes if one.name == name]  # its partitions are mixes of their own
    if not same:
        raise CastmatesError(f"the plan of the study '{plan.study}' has no mix '{name}'.")
    mix = same[0]
    companies = {block.company.id: block.company for block in plan.blocks if {*same} & {*block.company.mixes}}
    members = {one.name: one for company in companies.values() for one in company.members}
    return mix.model_dump(mode="json") | {
        "members": [members[one].model_dump(mode="json") for one in (mix.lead, *mix.antagonists)],
        "partitions": [partition.model_dump(mode="json") for one in same for partition in one.partitions],
        "companies": sorted(companies),
    }


castmates.pipeline.script.run(main)
