"""Writes a study's report: one self-contained HTML page."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.report.page.page import write_page
from castmates.report.results import read_results


def main() -> None:
    """Read the arguments and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY, its figures drawn")
    parser.add_argument("--study", type=Path, help="the study's YAML file: gives title, question, margin and seed")
    parser.add_argument("--output", required=True, type=Path, help="the page to write")
    given = parser.parse_args()
    write_page(read_results(given.results, given.study), given.results / "figures", given.output)


castmates.pipeline.script.run(main)
