"""Numbers that were read while a scene was recorded, as they come into a timeline: with units, and as rates."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from castmates.protocols import Sample
from castmates.runner.tracing.numbers import UNITS

BYTES = {"llc_occupancy": ("llc_occupancy_bytes", "B"), "mbm_total": ("memory_bytes_per_s", "B/s")}
COUNTERS = "counters"  # their series counts from the opening edge on
CLOCKS = ("task-clock", "cpu-clock")  # nanoseconds of CPU time
Readings = Sequence[tuple[int, float]]  # by time


class Series(NamedTuple):
    """Readings of one number of a member or a CPU."""

    subject: str
    name: str
    unit: str
    source: str
    readings: Readings


def series(samples: Iterable[Sample]) -> Iterator[Series]:
    """Sort samples by what they are of; what counters have counted so far becomes a rate."""
    found: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for sample in samples:
        if sample.value is not None:
            found.setdefault((sample.subject, sample.metric, sample.source), []).append((sample.t_ns, sample.value))
    for (subject, metric, source), readings in found.items():
        if source != COUNTERS:
            name, unit = BYTES.get(metric, (metric, UNITS.get(metric, "")))
            yield Series(subject, name, unit, source, readings)
        elif metric in CLOCKS:
            yield Series(subject, metric, "CPUs", source, [(t_ns, value / 1e9) for t_ns, value in _rates(readings)])
        else:
            yield Series(subject, metric, "/s", source, _rates(readings))


def _rates(readings: Readings) -> Readings:
    """What was counted between readings, per second, at the time of the later one."""
    pairs = pairwise(_apart(sorted(readings)))
    return [(now, (value - before) / (now - since) * 1e9) for (since, before), (now, value) in pairs if now > since]


def _apart(readings: Readings) -> Readings:
    """Without readings that come so soon after another one that the moment's error decides their rate.

    A thread that loses its CPU between the reading and the clock notes a moment too late; the later reading stays.
    """
    least = median([now - since for (since, _), (now, _) in pairwise(readings)] or [0]) / 4
    kept: list[tuple[int, float]] = []
    for reading in readings:
        if len(kept) > 1 and reading[0] - kept[-1][0] < least:
            kept.pop()
        if not kept or reading[0] - kept[-1][0] >= least:
            kept.append(reading)
    return kept
