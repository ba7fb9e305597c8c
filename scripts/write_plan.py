"""Rule write_plan: study, catalogue and the launches measured so far -> plan.json."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates import project
from castmates.files import replace_text
from castmates.results.asked import remember_look
from castmates.results.plans import last_plan
from castmates.study.plan_text import plan_text
from castmates.study.rounds import without_decisions


def main() -> None:
    """Write the plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    loaded = project.load(arguments.study)
    plan = loaded.plan()
    if before := last_plan(arguments.output):
        remember_look(loaded.results, before, plan)
    replace_text(arguments.output, plan_text(without_decisions(plan)))


castmates.pipeline.script.run(main)
