"""Adds up what was read and counted in the slices of a window."""

from collections.abc import Sequence
from dataclasses import replace

from castmates.counters.proc.cputime import CpuTime
from castmates.protocols import Count, Sample
from castmates.runner.processes import restarts

LONGEST = "longest_restart_gap_s"
SUMMED = {restarts.SOURCE: ("restarts", "restart_gap_s", LONGEST)}  # of a source, the metrics that can be added up


def add_samples(parts: Sequence[Sequence[Sample]], of_watched: Sequence[Sample]) -> list[Sample]:
    """Sums of what every slice has, at the last one's time, and the rest of the watched slice as it is."""
    sums: dict[tuple[str, str, str], Sample] = {}
    every = [sample for part in parts for sample in part]
    singles = [sample for sample in every if sample.source == restarts.SOURCE and not can_be_summed(sample)]
    for sample in filter(can_be_summed, every):
        key = (sample.source, sample.subject, sample.metric)
        sums[key] = _sum(sums[key], sample) if key in sums else sample
    rest = [sample for sample in of_watched if not can_be_summed(sample) and sample.source != restarts.SOURCE]
    return [*sums.values(), *singles, *(rest if parts else of_watched)]


def can_be_summed(sample: Sample) -> bool:
    """Check whether a sample is an amount of its slice, which every slice has."""
    return sample.source == CpuTime.name or sample.metric in SUMMED.get(sample.source, ())


def add_counts(parts: Sequence[Sequence[Count]]) -> list[Count]:
    """The sum of each event over slices; a count that lacks a slice is none."""
    sums: dict[tuple[str, str, str, str], Count] = {}
    for count in (count for part in parts for count in part if count.kind == "event"):
        key = (count.subject, count.name, count.group, count.phase)
        sums[key] = _added(sums[key], count) if key in sums else count
    return list(sums.values())


def _sum(one: Sample, other: Sample) -> Sample:
    if one.value is None or other.value is None:
        return replace(other, value=None, note=one.note if one.value is None else other.note)
    value = max(one.value, other.value) if one.metric == LONGEST else one.value + other.value
    return replace(other, value=value)


def _added(one: Count, other: Count) -> Count:
    if one.value is None or other.value is None:
        return one if one.value is None else other
    running = None if one.running is None or other.running is None else min(one.running, other.running)
    status = "scaled" if "scaled" in (one.status, other.status) else one.status
    return replace(other, value=one.value + other.value, running=running, status=status)
