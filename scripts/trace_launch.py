"""Rule trace_launch: one launch of a mix in which everything that happens is recorded -> trace.json and its tables."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.files import cache_folder
from castmates.pipeline.measure_launch import in_plan_of, refuse_wrong_node
from castmates.pipeline.trace_launch import trace_launch
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_trace_task
from castmates.results.traces import TRACES


def main() -> None:
    """Make the trace that the plan holds under this name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", help="MIX, or MIX@PARTITION")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="the trace.json to write, after its tables")
    parser.add_argument("--owner", type=int, help="end the launch when this process is gone")
    given = parser.parse_args()
    folder = StudyFolder(given.plan.parent)
    task = in_plan_of(folder.path.name, read_trace_task(given.plan, given.trace), f"trace launch '{given.trace}'")
    refuse_wrong_node(folder, task, f"{TRACES}{given.trace}")
    trace_launch(task, given.output.parent, cache_folder(), given.owner)


castmates.pipeline.script.run(main)
castmates.pipeline.script.leave()
