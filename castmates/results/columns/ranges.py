"""The data contract of ranges: what members annotate, one row each, where a study asks for ranges."""

from castmates.results.columns.contract import Table, by_name, col, usual
from castmates.results.columns.scenes import TRACE

# Where a range lies among others, and when.
_PLACE = (
    col("depth", int, "how many phases lie around it"),
    col("domain", str, "empty for the parts of a step"),
    col("thread", int | None, "that began it, by the system's number; NA in a TensorFlow graph and from version 1"),
    col("end_thread", int | None, "that ended it"),
    col("begin_ns", int, "CLOCK_MONOTONIC, as heartbeats and operations"),
    col("end_ns", int, "the same as begin_ns for an instant"),
    col("step", int | None, "as the program counts; NA for none"),
    col("epoch", int | None, "in which it began; NA for none"),
    col("payload", str, "a short text, such as shapes; empty for none"),
)

RANGES = Table(
    "ranges",
    "launches/<cohort>/<n>/ranges.parquet: a row per phase, range, instant and epoch that a member reported.",
    *usual("study cohort launch"),
    col("window", int | None, "in which it ended; NA between two windows"),
    col("slice", int | None, "in which it ended, counted or not; NA between two windows"),
    col("scene", str, "alone, corun:<mix> …; empty between two windows"),
    *usual("member"),
    col("type", str, "phase, range (by start and end), instant, epoch"),
    col("name", str, "its own"),
    col("path", str, "with the phases that it lies in: forward/attention; in other threads threads/decode"),
    *_PLACE,
    col("whole", bool, "it began after its scene was set: the member was not frozen inside it"),
    *usual("platform"),
)

PROFILE_RANGES = Table(
    "profile_ranges",
    "profiles/<cohort>/<n>/profile_ranges.parquet: a row per phase, range, instant and epoch near a trace.",
    *TRACE,
    col("part", str, "it ended in usual steps (before, after), or while the profiler was on (traced)"),
    col("type", str, "phase, range (by start and end), instant, epoch"),
    col("name", str, "its own"),
    col("path", str, "with the phases that it lies in"),
    *_PLACE,
    *usual("platform"),
)

OPERATION_RANGES = Table(
    "operation_ranges",
    "profiles/<cohort>/<n>/operation_ranges.parquet: a row per trace, range and operation that began inside of it.",
    *TRACE,
    col("path", str, "of the range, with the phases that it lies in"),
    col("domain", str, "of the range; empty for the parts of a step"),
    *usual("operation type layer direction"),
    col("calls", int, "in all traced steps, that began while the range was open in any thread"),
    col("own_ns", int, "of these calls, without what they call"),
    col("shared_ns", float, "their part of the steps"),
    *usual("platform"),
)

RANGE_TABLES = by_name(RANGES, PROFILE_RANGES, OPERATION_RANGES)
