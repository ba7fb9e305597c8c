"""How a program's rate wanders: what two neighbouring windows differ by, against how long they are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.power import half_width

LENGTHS = (0.03, 0.06, 0.1, 0.2, 0.5, 1.0, 2.0)  # seconds
GAP = 0.02  # seconds between two windows, for the change of scene
BUDGET = 60.0  # seconds of machine time that the half-width refers to
FEWEST_STEPS = 3  # in a window: fewer would measure its own edges
FEWEST_PAIRS = 8

Beats = Sequence[tuple[int, int]]  # time in ns, units so far


@dataclass(frozen=True)
class Wandering:
    """What windows of one length show of a program that runs alone."""

    workload: str
    seconds: float  # of a window
    pairs: int  # of neighbouring windows in the record
    scatter: float  # standard deviation of the log ratio of two neighbours
    # Of a 95 % interval of that ratio, if all of a minute went into pairs of windows and the pairs were independent.
    # They are not where a rate or an effect wanders for longer than a pair lasts: it compares lengths, and no study
    # gets intervals from it, whose units are launches.
    half_width_pct: float


def wandering(workload: str, beats: Beats) -> list[Wandering]:
    """A row for each length of which the record has enough windows with enough steps."""
    times, units = (np.asarray(column, dtype=float) for column in zip(*beats, strict=True))
    step = float(np.median(np.diff(times))) / 1e9
    rows = []
    for length in LENGTHS:
        ratios = _log_ratios(times, units, length)
        if length >= FEWEST_STEPS * step and len(ratios) >= FEWEST_PAIRS:
            scatter = float(np.std(ratios, ddof=1))
            pairs = int(BUDGET / (2 * (length + GAP)))
            width = 100 * half_width(scatter**2, pairs)
            rows.append(Wandering(workload, length, len(ratios), scatter, width))
    return rows


def _log_ratios(times: Floats, units: Floats, length: float) -> Floats:
    """Log ratios of the rates of neighbouring windows, laid side by side over the record."""
    count = math.floor((times[-1] - times[0]) / 1e9 / (length + GAP))
    begins = times[0] + 1e9 * (length + GAP) * np.arange(count)
    done = np.interp(begins + 1e9 * length, times, units) - np.interp(begins, times, units)
    # A window without progress has no rate, and those on both sides of it are no neighbours: neither is paired.
    differences = np.diff(np.log(np.where(done > 0, done, np.nan)))
    return np.asarray(differences[np.isfinite(differences)])
