"""Rule analyse: the measured launches -> every table of the study, its figures, the answer and the page."""

import argparse
import gc
from pathlib import Path

import castmates.pipeline.script
from castmates.pipeline.analyse import analyse
from castmates.results.folder import StudyFolder


def main() -> None:
    """Read the arguments and analyse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY, its launches measured")
    parser.add_argument("--study", required=True, type=Path, help="the study's YAML file")
    parser.add_argument("--jobs", type=int, default=1, help="tables and figures made at a time")
    arguments = parser.parse_args()
    gc.disable()  # what refers to itself, as a figure does, is little, and the process ends soon
    analyse(StudyFolder(arguments.results), arguments.study, arguments.jobs)
    gc.freeze()  # nor is it looked for at the end


castmates.pipeline.script.run(main)
