"""How far the caches were emptied before stretches, in a sentence of the health panel."""

from collections.abc import Sequence
from statistics import median

from castmates.english import counted, percent
from castmates.report.launch_record import EvictionFacts


def eviction_sentence(launches: Sequence[EvictionFacts]) -> str:
    """How often caches were emptied, and what members held of them then; "" where there was nothing to empty."""
    times, not_emptied = sum(launch.times for launch in launches), sum(launch.not_emptied for launch in launches)
    if not times:
        lost = f"Members lost ways before {counted(not_emptied, 'stretch')}, and no cache was emptied."
        return lost if not_emptied else ""
    what = f"Last-level caches were emptied before each of {counted(times, 'stretch')}"
    unsteady = sum(launch.not_steady for launch in launches)
    why = "after the lead-in, rates or occupancy still changed or were not known"
    cold = f" {unsteady} of these {'does' if unsteady == 1 else 'do'} not count: {why}." if unsteady else ""
    left = [launch.left for launch in launches if launch.left is not None]
    most = [launch.left_most for launch in launches if launch.left_most is not None]
    if not left or not most:
        return f"{what}; how much members then held of them could not be read.{cold}"
    shares = f"{percent(100 * median(left))} (median), {percent(100 * max(most))} at most"
    warm = f" That was too much before {not_emptied} of them: scenes there did not begin with an empty cache."
    return f"{what}; members then held {shares}." + (warm if not_emptied else "") + cold
