"""Rule estimate_traces: the traces of a study -> what they come to."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.pipeline.estimates import write_trace_tables
from castmates.results.folder import StudyFolder


def main() -> None:
    """Summarise and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; traces lie beside it")
    parser.add_argument("--output", type=Path, required=True, help="folder of the tables")
    given = parser.parse_args()
    write_trace_tables(StudyFolder(given.plan.parent), given.output)


castmates.pipeline.script.run(main)
