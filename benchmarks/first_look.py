"""Keeps the tables of sweeps of the default study, and writes the page that has them beside each other.

    python -m benchmarks.first_look results/first-look

Each sweep is made by `make sweep` in a fresh clone; without a folder the page alone is written from those kept so far.
"""

import argparse
from pathlib import Path

from benchmarks import page, sweeps
from benchmarks.common import run, say
from castmates import project


def main() -> None:
    """Keep each, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=Path, metavar="FOLDER", help="results of a sweep that is done")
    parser.add_argument("--study", type=Path, default=Path("config/config.yaml"), help="the study, for its margin")
    options = parser.parse_args()
    margin = project.load(options.study).study.margin
    for folder in options.results:
        say(f"kept: {sweeps.keep(folder.resolve(), margin)}")
    page.write()


if __name__ == "__main__":
    run(main)
