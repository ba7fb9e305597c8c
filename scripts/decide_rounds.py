"""Rule decide_rounds: the first launches of a cohort -> how many rounds its other launches have."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates import project
from castmates.files import replace_text
from castmates.pipeline.looks import decide_rounds, decision_text
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan


def main() -> None:
    """Decide, and write what was decided and why."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort")
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; launches lie beside it")
    parser.add_argument("--study", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    plan, folder = read_plan(arguments.plan), StudyFolder(arguments.plan.parent)
    budget = project.load(arguments.study).study.budget
    decision = decide_rounds(plan, arguments.cohort, folder, budget.longest_launch)
    replace_text(arguments.output, decision_text(decision))


castmates.pipeline.script.run(main)
