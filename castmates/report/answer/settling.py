"""How many more launches would probably settle what is open, how long they take, and which command measures them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special

from castmates.analysis.effects.verdicts import EFFECT_LEVEL
from castmates.analysis.statistics.intervals import CONFIDENCE, FEWEST_BLOCKS
from castmates.analysis.statistics.power import detectable, half_width
from castmates.report.answer.pairs import OPEN, SUSPECTED, Pair
from castmates.report.results import Results

MOST = 100  # launches that are proposed
NEVER = MOST + 1


@dataclass(frozen=True)
class ToSettle:
    """What would settle the pairs of some kind."""

    pairs: int
    launches: int  # of each program, all together; beyond MOST that is how many do not do
    more: int
    seconds: float
    command: str

    @property
    def feasible(self) -> bool:
        """Whether so many launches can be had in a reasonable time."""
        return self.launches <= MOST


def to_settle(results: Results, found: Sequence[Pair]) -> ToSettle | None:
    """What settles the suspected pairs; where none is suspected, the open ones; None where nothing is open."""
    wanted = [pair for pair in found if pair.state == SUSPECTED] or [pair for pair in found if pair.state == OPEN]
    spreads = {id(pair): spread for pair in wanted if not math.isnan(spread := spread_of(pair))}
    if not spreads:
        return None
    tried = sum(pair.launches >= FEWEST_BLOCKS for pair in found)
    needed = max(launches_for(pair, spreads[id(pair)], tried, results.margin) for pair in wanted if id(pair) in spreads)
    measured = max(pair.launches for pair in wanted)
    more = max(1, needed - measured)
    return ToSettle(len(spreads), measured + more, more, more * seconds_of_launches(results), _command(results, needed))


def spread_of(pair: Pair) -> float:
    """The standard deviation of its launches, from the width of its interval; NaN where it has none."""
    if pair.launches < FEWEST_BLOCKS:
        return math.nan
    reach = float(special.stdtrit(pair.launches - 1, (1 + CONFIDENCE) / 2))
    return (pair.log_high - pair.log_low) / 2 / reach * math.sqrt(pair.launches)


def launches_for(pair: Pair, spread: float, tried: int, margin: float | None) -> int:
    """The fewest that mostly prove a loss as large as this one looks, or that nothing beyond the margin is there."""
    level = EFFECT_LEVEL / max(1, tried)  # as if it were alone among all: Holm's adjustment asks for no more
    edge = math.log1p(margin) if margin is not None else 0.0
    for count in range(max(FEWEST_BLOCKS, pair.launches), MOST + 1):
        if detectable(spread**2, count, level) <= abs(pair.log):
            return count
        if abs(pair.log) + math.asinh(half_width(spread**2, count)) <= edge:
            return count
    return NEVER


def spreads(found: Sequence[Pair]) -> tuple[float, float] | None:
    """By how many per cent launches differ, of the pair that differs least and of the one that differs most."""
    known = [100 * spread for pair in found if not math.isnan(spread := spread_of(pair))]
    return (min(known), max(known)) if known else None


def seconds_of_launches(results: Results) -> float:
    """How long one more launch of each program takes, with its neighbours and the controls."""
    blocks = results.blocks[results.blocks["status"] == "measured"]
    means = blocks.groupby("company")["total_seconds"].mean().to_numpy(dtype=float)
    return float(np.nansum(means))


def sweep_command(results: Results, launches: int | None = None) -> str:
    """What measures the study, with so many launches: in a clone by make, which sets everything up."""
    file, root = results.study_file, results.folder.path.resolve().parent.parent
    clone = (root / "Makefile").is_file() and (root / "castmates").is_dir()
    if clone:
        study = "" if file in ("", "config/config.yaml") else f" STUDY={file}"
        return f"make sweep{study}" + (f" BLOCKS={launches}" if launches else "")
    return f"castmates sweep {Path(file) if file else 'STUDY.yaml'}" + (f" --blocks {launches}" if launches else "")


def retry_command(results: Results) -> str:
    """What discards the launches that are of no use, so that the next sweep measures them again."""
    file = results.study_file
    return "castmates retry" + (f" {file}" if file not in ("", "config/config.yaml") else "")


def _command(results: Results, launches: int) -> str:
    return sweep_command(results, launches) if launches <= MOST else ""
