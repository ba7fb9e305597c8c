"""Where the level of a series changes: PELT on means, with a penalty that holds false alarms down in noise with memory.

`ruptures` does the search, and is imported when one is asked for; Python 3.14 has no wheel of it yet.
"""

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PENALTY = 3.0  # times the noise times log n: benchmarks/change_points.py shows its false alarms and misses
SHORTEST = 3  # points that make a level
FEWEST = 60  # points that can have a change at all
FEWEST_GROUPS = 6
MOST_MEMORY = 0.9
MAD_TO_SD = 1.4826
MISSING = "no changes of level are looked for: the package ruptures is not installed here"


def available() -> bool:
    """Whether changes can be looked for here."""
    return find_spec("ruptures") is not None


def find(values: Floats, groups: Sequence[int]) -> list[int]:
    """The places at which a new level begins; `groups` shows which points were measured together, in one window."""
    if len(values) < FEWEST:
        return []
    import ruptures

    # The running median of three: one point is no level.
    padded = np.concatenate([values[:1], values, values[-1:]])
    smooth = np.asarray(np.median([padded[:-2], padded[1:-1], padded[2:]], axis=0), dtype=np.float64)

    scale = noise(smooth, groups)
    if not scale > 0:
        scale = float(np.var(smooth)) or 1.0  # half of all neighbours are equal: what is left is judged by all of it
    penalty = PENALTY * scale * np.log(len(values))
    search = ruptures.KernelCPD(kernel="linear", min_size=SHORTEST).fit(smooth.reshape(-1, 1))
    return [int(place) for place in search.predict(pen=penalty)[:-1]]


def noise(values: Floats, groups: Sequence[int]) -> float:
    """The variance of a mean of many points, times their number, however much neighbours resemble each other.

    The larger of two estimates counts: one from the differences of neighbours, for noise whose memory fades from
    point to point; one from those of neighbouring groups' means, because each group may have its own level.
    """
    near, far = _spread(np.diff(values)), _spread(values[2:] - values[:-2])
    memory = min(max(far / near - 1, 0.0), MOST_MEMORY) if near > 0 else 0.0
    fading = near / (2 * (1 - memory)) * (1 + memory) / (1 - memory)
    means = _means(values, groups)
    if len(means) < FEWEST_GROUPS:
        return fading
    return max(fading, _spread(np.diff(means)) / 2 * len(values) / len(means))


def _spread(differences: Floats) -> float:
    """Their variance, from most of them: the few that stand at a change do not count."""
    return float((MAD_TO_SD * np.median(np.abs(differences))) ** 2)


def _means(values: Floats, groups: Sequence[int]) -> Floats:
    _, where = np.unique(np.asarray(groups), return_inverse=True)
    means = np.bincount(where, weights=values) / np.bincount(where)
    return means.astype(np.float64)
