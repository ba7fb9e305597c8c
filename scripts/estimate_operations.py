"""Rule estimate_operations: the profile launches -> what operations take, and lose beside others."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.pipeline.estimates import write_operation_tables
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan


def main() -> None:
    """Estimate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; profile launches lie beside it")
    parser.add_argument("--margin", type=float, required=True, help="the study's 'margin': a smaller change is none")
    parser.add_argument("--output", type=Path, required=True, help="folder of the tables")
    given = parser.parse_args()
    folder = StudyFolder(given.plan.parent)
    write_operation_tables(read_plan(given.plan), folder, given.margin, given.output)


castmates.pipeline.script.run(main)
