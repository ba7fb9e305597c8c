"""Rule estimate_effects: the measured launches -> every table of the study, as CSV and Parquet."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.analysis.effects.verdicts import effect_level
from castmates.pipeline.estimate_effects import Terms, write_tables
from castmates.results.asked import looks_before
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.records import read_json


def main() -> None:
    """Estimate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; the launches lie beside it")
    parser.add_argument("--machine", type=Path, required=True, help="the machine's facts")
    parser.add_argument("--margin", type=float, required=True, help="the study's 'margin': a smaller change is none")
    parser.add_argument("--isolated", help="the isolating partition, where the study names it")
    parser.add_argument("--output", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--jobs", type=int, default=1, help="tables made at a time")
    arguments = parser.parse_args()
    folder = StudyFolder(arguments.plan.parent)
    level = effect_level(looks_before(folder))
    terms = Terms(arguments.margin, arguments.isolated, read_json(arguments.machine), level)
    write_tables(read_plan(arguments.plan), folder, terms, arguments.output, arguments.jobs)


castmates.pipeline.script.run(main)
