"""Rule recommend_partitions: effects and windows -> sensitivity, knees, Pareto table, recommendations and loads."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.pipeline.recommend_partitions import write_tables
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan


def main() -> None:
    """Estimate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; launches and tables lie beside it")
    parser.add_argument("--lead-loss", type=float, required=True, help="the study's limit in per cent; 0 for none")
    parser.add_argument("--output", type=Path, required=True, help="folder of the tables")
    arguments = parser.parse_args()
    folder = StudyFolder(arguments.plan.parent)
    write_tables(read_plan(arguments.plan), folder, arguments.lead_loss or None, arguments.output)


castmates.pipeline.script.run(main)
