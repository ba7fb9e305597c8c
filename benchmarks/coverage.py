"""Do both ways' 95 % intervals hold the truth as often as they claim? Simulated campaigns with a known loss.

Figures of this module are simulated, never measured. The machine is that of docs/methodology.md: a trend and a random
walk over the campaign, effects of each launch, an interaction of scene and launch, and noise of each window.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from benchmarks.precision import Floats, Rng
from castmates.analysis.statistics.intervals import CONFIDENCE, estimate

ROUNDS, SCENES = 3, 7
RUNS_PER_BLOCK = 3  # of the lead alone, and as many of the co-run: about what the time of a block buys
OURS, A, B, B_PAIRED = "ours", "usual, solos first", "usual, interleaved", "usual, interleaved, paired"


@dataclass(frozen=True)
class Truth:
    """How a simulated machine behaves, in log units: 0.02 is 2 %."""

    launch: float = 0.02  # sd between launches, common to all scenes of a launch
    interaction: float = 0.015  # sd between launches of what the co-run does
    noise: float = 0.01  # sd between windows
    walk: float = 0.002  # sd of a step of the random walk, a step for each of our windows
    trend: float = 0.05  # from the campaign's first window to its last
    loss: float = 0.10  # log rate(solo) - log rate(co-run)


MACHINES: Mapping[str, Truth] = {"quiet windows": Truth(), "noisy windows": Truth(noise=0.03)}


def coverage(truth: Truth, blocks: int, studies: int, seed: int) -> dict[str, float]:
    """How often each way's interval holds the truth; every way has a campaign of the same length."""
    rng = np.random.default_rng(seed)
    low, high = _ours(truth, studies, blocks, rng)
    found = {OURS: _share(low, high, truth)}
    runs = RUNS_PER_BLOCK * blocks
    slots = blocks * ROUNDS * SCENES
    first = np.arange(2 * runs)[None, :].repeat(studies, axis=0)
    solo, corun = _runs(truth, first[:, :runs], first[:, runs:], slots, rng)
    found[A] = _share(*_welch(solo, corun), truth)
    swapped = rng.random((studies, runs)) < 0.5  # who comes first in each pair of runs
    solo, corun = _runs(truth, first[:, ::2] + swapped, first[:, ::2] + ~swapped, slots, rng)
    found[B] = _share(*_welch(solo, corun), truth)
    found[B_PAIRED] = _share(*_paired(solo - corun), truth)
    return found


def _ours(truth: Truth, studies: int, blocks: int, rng: Rng) -> tuple[Floats, Floats]:
    """Both scenes of every round somewhere in its random order; estimated as a study is."""
    shape = (studies, blocks, ROUNDS)
    order = rng.random((*shape, SCENES)).argsort(axis=3)[..., :2]
    drift = _drift(truth, studies, blocks * ROUNDS * SCENES, rng).reshape(*shape, SCENES)
    both = np.take_along_axis(drift, order, axis=3) + rng.normal(0, truth.noise, (*shape, 2))
    loss = truth.loss + rng.normal(0, truth.interaction, (studies, blocks, 1))
    difference = both[..., 0] - both[..., 1] + loss
    study, block, _ = np.indices(shape).reshape(3, -1)
    pairs = pd.DataFrame({"study": study, "company": "c", "block": block, "difference": difference.reshape(-1)})
    table = estimate(pairs, by=["study"])
    return table["log_low"].to_numpy(dtype=float), table["log_high"].to_numpy(dtype=float)


def _runs(
    truth: Truth, solo: npt.NDArray[np.intp], corun: npt.NDArray[np.intp], slots: int, rng: Rng
) -> tuple[Floats, Floats]:
    """Log rates of single launches at these places of a campaign of so many slots."""
    studies, runs = solo.shape
    drift = _drift(truth, studies, slots, rng)

    def rates(places: npt.NDArray[np.intp]) -> Floats:
        when = places * slots // (2 * runs)
        own = rng.normal(0, np.hypot(truth.launch, truth.noise), places.shape)
        return np.asarray(np.take_along_axis(drift, when, axis=1) + own)

    return rates(solo), rates(corun) - truth.loss + rng.normal(0, truth.interaction, corun.shape)


def _drift(truth: Truth, studies: int, slots: int, rng: Rng) -> Floats:
    return rng.normal(0, truth.walk, (studies, slots)).cumsum(axis=1) - np.linspace(0, truth.trend, slots)


def _welch(solo: Floats, corun: Floats) -> tuple[Floats, Floats]:
    count = solo.shape[1]
    errors = np.var(solo, axis=1, ddof=1) / count, np.var(corun, axis=1, ddof=1) / count
    both = errors[0] + errors[1]
    freedom = both**2 / ((errors[0] ** 2 + errors[1] ** 2) / (count - 1))
    return _interval(solo.mean(axis=1) - corun.mean(axis=1), np.sqrt(both), freedom)


def _paired(differences: Floats) -> tuple[Floats, Floats]:
    count = differences.shape[1]
    error = np.std(differences, axis=1, ddof=1) / np.sqrt(count)
    return _interval(differences.mean(axis=1), error, np.full(len(error), count - 1.0))


def _interval(mean: Floats, error: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    half = np.asarray(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * error
    return mean - half, mean + half


def _share(low: Floats, high: Floats, truth: Truth) -> float:
    return float(np.mean((low <= truth.loss) & (truth.loss <= high)))
