"""Rule profile_launch: one launch of a cohort in which its lead is traced -> profile.json and its tables."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.files import cache_folder
from castmates.pipeline.measure_launch import in_plan_of, measure, refuse_wrong_node
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_profile_task
from castmates.results.profiles import PROFILES


def main() -> None:
    """Make the profile launch that the plan holds under this name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launch", help="COHORT/NUMBER")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="the profile.json to write, after its tables")
    parser.add_argument("--owner", type=int, help="end the launch when this process is gone")
    given = parser.parse_args()
    folder = StudyFolder(given.plan.parent)
    task = in_plan_of(folder.path.name, read_profile_task(given.plan, given.launch), f"profile launch '{given.launch}'")
    refuse_wrong_node(folder, task, f"{PROFILES}{given.launch}")
    measure(task, given.output.parent, cache_folder(), given.owner)


castmates.pipeline.script.run(main)
castmates.pipeline.script.leave()
