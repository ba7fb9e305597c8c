"""Rule measure_launch: one launch of a cohort -> launch.json and its tables."""

import argparse
import platform
from functools import partial
from pathlib import Path

import castmates.pipeline.script
from castmates.files import cache_folder
from castmates.pipeline.measure_launch import measure, planned, refuse_busy_machine, refuse_wrong_node
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_task


def main() -> None:
    """Measure the launch that the plan holds under this name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launch", help="COHORT/NUMBER")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="the launch.json to write; its tables lie beside it")
    parser.add_argument("--owner", type=int, help="end the launch when this process is gone")
    arguments = parser.parse_args()
    folder, cache = StudyFolder(arguments.plan.parent), cache_folder()
    task = planned(read_task(arguments.plan, arguments.launch), arguments.launch, folder.path.name)
    refuse_wrong_node(folder, task, arguments.launch)
    if task.launch.design.model is None:
        refuse_busy_machine(folder)
        from castmates.machine.shown_facts import facts_here
        from castmates.pipeline.describe import note_node

        note_node(folder, platform.node(), partial(facts_here, cache))
    measure(task, arguments.output.parent, cache, arguments.owner)


castmates.pipeline.script.run(main)
castmates.pipeline.script.leave()
