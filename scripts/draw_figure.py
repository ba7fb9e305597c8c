"""Draws one figure of a study: SVG, PDF, PNG, the CSV of what it shows, and its caption."""

import argparse
from pathlib import Path

import castmates.script
from castmates.report.figures import FIGURES, draw_figure
from castmates.report.read import read_results


def main() -> None:
    """Read the arguments and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", required=True, choices=sorted(FIGURES))
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY")
    parser.add_argument("--study", type=Path, help="the study's YAML file: gives the margin")
    parser.add_argument("--output-stem", required=True, type=Path, help="the figure's path without a suffix")
    given = parser.parse_args()
    draw_figure(given.figure, read_results(given.results, given.study), given.output_stem)


castmates.script.run(main)
