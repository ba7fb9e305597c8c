"""Windows -> what an adaptive study knows of each of its mixes at a look.

A mix is judged by how all mixes of its lead scatter together: by its own scatter alone, those would stop first whose
few launches agree by luck, and their printed intervals, which are made of the same scatter, would be too narrow.
"""

import math

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast
from castmates.analysis.design.adaptive import MixEstimate
from castmates.analysis.design.precision import against_alone
from castmates.analysis.effects.pooling import pooled, without_hosts
from castmates.analysis.keys import ROW
from castmates.analysis.statistics.intervals import Floats, quantile
from castmates.study.spec import UNMANAGED, Plan

SURELY = 0.99  # of the intervals by which mixes are judged
UNLIKE = 4.0  # times the common variance, beyond which a mix scatters otherwise and is judged by its own


def mix_estimates(plan: Plan, windows: pd.DataFrame) -> dict[str, MixEstimate]:
    """By identity; on the worse of several platforms."""
    found: dict[str, MixEstimate] = {}
    for part in reversed(pooled(without_hosts(plan, windows, plan.ignored_hosts), windows)):
        # A processor that measured nothing of a mix does not hide what another one measured.
        own = _of_part(part, windows)
        found |= {identity: each for identity, each in own.items() if each.launches or identity not in found}
    return found


def _of_part(plan: Plan, windows: pd.DataFrame) -> dict[str, MixEstimate]:
    contrast = Contrast.of(plan, windows, against_alone(plan))
    table = contrast.rows_over_nodes()
    spreads = contrast.launches.groupby(ROW, observed=True)["value"].std()
    spread = np.asarray(spreads.reindex(pd.MultiIndex.from_frame(table[ROW])), dtype=float)
    launches = table["launches"].to_numpy(dtype=float)
    groups = pd.factorize(table["lead"].astype(str) + " " + table["platform"].astype(str))[0]
    half = halves(launches, spread, groups)
    several = (table["nodes"] > 1).to_numpy(dtype=bool)
    half = np.where(several, _wider(table), half)
    identities = {(mix.name, _partition(mix.partitions)): mix.identity for mix in plan.mixes}
    found: dict[str, MixEstimate] = {}
    rows = zip(table["mix"], table["partition"], launches, table["mean"].to_numpy(dtype=float), half, strict=True)
    for mix, partition, count, log, width in rows:
        each = MixEstimate(int(count), float(log), float(width) if not math.isnan(width) else math.inf)
        before = found.get(identities[mix, partition])
        if before is None or before.half < each.half:
            found[identities[mix, partition]] = each
    return found


def _partition(partitions: tuple[object, ...]) -> str:
    return str(getattr(partitions[0], "name", UNMANAGED)) if partitions else UNMANAGED


def halves(launches: Floats, spread: Floats, groups: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> Floats:
    """Half-widths of the intervals by which mixes are judged, from their launches' standard deviations."""
    freedom = np.where(launches > 1, launches - 1, 0.0)
    own = np.where(freedom > 0, np.nan_to_num(spread) ** 2, 0.0)
    count = int(groups.max()) + 1 if len(groups) else 0
    of_group = np.bincount(groups, weights=freedom, minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        common = (np.bincount(groups, weights=freedom * own, minlength=count) / of_group)[groups]
        others = (of_group[groups] * common - freedom * own) / (of_group[groups] - freedom)
    alone = own > UNLIKE * others
    variance, degrees = np.where(alone, own, common), np.where(alone, freedom, of_group[groups])
    factor = quantile(np.where(degrees > 0, degrees, np.nan), (1 + SURELY) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(factor * np.sqrt(variance / launches), dtype=float)


def _wider(table: pd.DataFrame) -> Floats:
    """The interval over several nodes, at the confidence by which mixes are judged."""
    freedom = table["freedom"].to_numpy(dtype=float)
    half = (table["high"] - table["mean"]).to_numpy(dtype=float)
    return np.asarray(half * quantile(freedom, (1 + SURELY) / 2) / quantile(freedom), dtype=float)
