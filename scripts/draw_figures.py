"""Rule draw_figures: figures of a study, each as SVG, PDF and PNG, with the CSV of what it shows and its texts."""

import argparse
import sys
from pathlib import Path

import castmates.pipeline.script
from castmates.analysis.statistics import change_points
from castmates.report.figures.drawing import draw_figures
from castmates.report.figures.index import all_figures
from castmates.report.results import read_results


def main() -> None:
    """Read the arguments and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "figures", nargs="+", choices=sorted(all_figures()), metavar="FIGURE", help=", ".join(sorted(all_figures()))
    )
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY")
    parser.add_argument("--study", type=Path, help="the study's YAML file: gives the margin")
    parser.add_argument("--output", required=True, type=Path, help="folder of the figures")
    parser.add_argument("--jobs", type=int, default=1, help="figures drawn at a time")
    arguments = parser.parse_args()
    if "evolution" in arguments.figures and not change_points.available():
        print(change_points.MISSING, file=sys.stderr)
    results = read_results(arguments.results, arguments.study)
    draw_figures(arguments.figures, results, arguments.output, arguments.jobs)


castmates.pipeline.script.run(main)
