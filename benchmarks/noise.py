"""How rates wander here: what neighbouring windows of each length differ by, for leads that run alone, one by one.

What `castmates workloads noise` prints and draws, kept with the other benchmarks: the reason why slices are short.
"""

import argparse
from pathlib import Path

from benchmarks.common import Report, run, say
from castmates import shipped
from castmates.files import cache_folder
from castmates.project import ENVIRONMENTS, read_catalogue
from castmates.report.figures.wandering import write_figure
from castmates.trials.workloads.check import Places
from castmates.trials.workloads.noise import WARM_UP, measure_noise
from castmates.trials.workloads.tables import noise_cells, noise_columns


def main() -> None:
    """Record each, then print the table and draw it."""
    options = _options()
    report = Report("How rates wander: scatter against the length of windows", "noise")
    catalogue = read_catalogue(options.catalogue)
    chosen = {name: catalogue[name] for name in options.workloads}
    rows = measure_noise(chosen, Places(ENVIRONMENTS, cache_folder()), options.seconds, say)
    report.text(
        f"Each workload alone, {options.seconds:.0f} s after {WARM_UP:.0f} s of warming up; its heartbeats are cut "
        "into windows laid side by side. *Antagonists differ by* is the standard deviation of the log ratio of the "
        "rates in two neighbouring windows. The last column has the half-width of a 95 % interval of that ratio if a "
        "minute went into pairs of such windows and all pairs were independent. They are not, since rates and effects "
        "wander for seconds: it compares lengths, and no study gets its intervals that way."
    )
    report.table(noise_columns(), noise_cells(rows))
    if options.figure is not None:
        write_figure(rows, options.figure)
        report.text(f"![Scatter of neighbouring windows against their length](images/{options.figure.name}.svg)")
    report.print()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    names = ["chase", "compute", "dlrm-train", "mobilenetv2-infer"]
    parser.add_argument("--workloads", nargs="+", default=names, help="names in the catalogue")
    parser.add_argument("--seconds", type=float, default=60.0, help="that each one is recorded")
    parser.add_argument("--catalogue", type=Path, default=shipped.catalogue(), help="folder of workloads")
    parser.add_argument("--figure", type=Path, help="where to draw it: FIGURE.svg, .pdf, .png and .csv")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
