"""False alarms and hits of the search for change points, in simulated series with known changes.

Nothing is measured: the series are drawn at random from a seed. Noise has a standard deviation of 1 %.
"""

import argparse

import numpy as np

from benchmarks.common import Report, run
from castmates.analysis.statistics import change_points
from castmates.analysis.statistics.change_points import Floats

KINDS = ("white", "heavy tails (t, 3)", "memory 0.3", "memory 0.6", "memory 0.8", "windows with their own levels")
SIZES = ((60, 60), (60, 12), (120, 24), (400, 40))  # points, windows
STEPS = (2.0, 4.0, 6.0)  # heights of a known change, in standard deviations of a point
NEAR = 0.03  # of the series: a change that is found so near counts as found


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=1000, help="simulated series for each number")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    report = Report("False alarms and hits of the search for change points (simulated)", "change_points")
    header = [f"{n} points, {k} windows" for n, k in SIZES]
    report.text(f"False alarms: per cent of {given.series} series without a change in which one is found.")
    rows = [[kind, *(f"{100 * share(rng, kind, n, k, given.series):.1f}" for n, k in SIZES)] for kind in KINDS]
    report.table(["noise", *header], rows)
    report.text("Hits: per cent of the series in which a change after a third of it is found where it is.")
    hits = [(kind, height) for kind in ("white", "memory 0.6") for height in STEPS]
    rows = [
        [f"{kind}, of {height:g} sd", *(f"{100 * share(rng, kind, n, k, given.series, height):.0f}" for n, k in SIZES)]
        for kind, height in hits
    ]
    report.table(["noise, change", *header], rows)
    report.print()


def share(rng: np.random.Generator, kind: str, n: int, windows: int, series: int, height: float = 0.0) -> float:
    """The share of series with a change that is none; with a height, of those in which that change was found."""
    groups = np.arange(n) * windows // n
    place, hits = n // 3, 0
    for _ in range(series):
        values = noise(rng, kind, groups)
        values[place:] += height
        found = change_points.find(1 + 0.01 * values, groups.tolist())
        hits += any(abs(one - place) <= max(1, NEAR * n) for one in found) if height else bool(found)
    return hits / series


def noise(rng: np.random.Generator, kind: str, groups: "np.typing.NDArray[np.int64]") -> Floats:
    """Noise with a variance of one."""
    n = len(groups)
    if kind.startswith("heavy"):
        return np.asarray(rng.standard_t(3, n) / np.sqrt(3))
    white = rng.standard_normal(n)
    if kind.startswith("memory"):
        memory = float(kind.split()[1])
        for place in range(1, n):
            white[place] = memory * white[place - 1] + np.sqrt(1 - memory**2) * white[place]
    if kind.startswith("windows"):
        white = (white + rng.standard_normal(groups.max() + 1)[groups]) / np.sqrt(2)
    return white


if __name__ == "__main__":
    run(main)
