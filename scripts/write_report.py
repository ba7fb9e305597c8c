"""Rule write_report: a study's results and figures -> one self-contained HTML page."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.report.page.page import write_page
from castmates.report.results import read_results
from castmates.results.folder import StudyFolder


def main() -> None:
    """Read the arguments and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY, its figures drawn")
    parser.add_argument("--study", type=Path, help="the study's YAML file: gives title, question, margin and seed")
    parser.add_argument("--output", required=True, type=Path, help="the page to write")
    arguments = parser.parse_args()
    figures = StudyFolder(arguments.results).figures
    write_page(read_results(arguments.results, arguments.study), figures, arguments.output)


castmates.pipeline.script.run(main)
