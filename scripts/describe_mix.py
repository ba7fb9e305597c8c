"""Rule describe_mix: one mix, resolved to CPUs, partitions and command lines."""

import argparse
import json
from pathlib import Path

import castmates.pipeline.script
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.results.plans import read_plan
from castmates.study.spec import Plan


def main() -> None:
    """Write the mix with its members."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mix")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    described = describe(read_plan(arguments.plan), arguments.mix)
    replace_text(arguments.output, json.dumps(described, indent=1) + "\n")


def describe(plan: Plan, name: str) -> dict[str, object]:
    """The mix, its members, and the scenes and companies that measure it."""
    same = [mix for mix in plan.mixes if mix.name == name]  # each of its partitions is a mix too
    if not same:
        raise CastmatesError(f"the plan of the study '{plan.study}' has no mix '{name}'.")
    mix = same[0]
    companies = [company for company in plan.companies if {*same} & {*company.mixes}]
    members = {member.name: member for company in companies for member in company.members}
    return mix.model_dump(mode="json") | {
        "members": [members[member].model_dump(mode="json") for member in (mix.lead, *mix.antagonists)],
        "partitions": [partition.model_dump(mode="json") for each in same for partition in each.partitions],
        "companies": sorted(company.id for company in companies),
    }


castmates.pipeline.script.run(main)
