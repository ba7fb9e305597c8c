"""Rule gather_launches: the tables of some measured launches -> one file each, in results/STUDY/bundles/N."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.results.bundles import write_bundle
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan


def main() -> None:
    """Read the tables of the bundle's launches and write all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", help="the number of the bundle")
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; the launches lie beside it")
    parser.add_argument("--output", type=Path, required=True, help="folder of the bundle")
    arguments = parser.parse_args()
    folder = StudyFolder(arguments.plan.parent)
    write_bundle(read_plan(arguments.plan), folder, arguments.bundle, arguments.output)


castmates.pipeline.script.run(main)
