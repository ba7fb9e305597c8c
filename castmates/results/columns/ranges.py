"""The data contract of ranges: what members annotate, one row each, where a study asks for ranges."""

from collections.abc import Mapping

from castmates.results.columns.block import Columns
from castmates.results.columns.scenes import TRACE

# blocks/<company>/<n>/ranges.parquet: a row per phase, range, instant and epoch that a member reported.
RANGES: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "window": "Int64",  # in which it ended; NA between two windows
    "slice": "Int64",  # in which it ended, counted or not; NA between two windows
    "scene": "str",  # solo, corun:<mix> …; empty between two windows
    "member": "str",
    "type": "str",  # phase, range (by start and end), instant, epoch
    "name": "str",  # its own
    "path": "str",  # with the phases that it lies in: forward/attention; in other threads threads/decode
    "depth": "int64",  # how many phases lie around it
    "domain": "str",  # empty for the parts of a step
    "thread": "Int64",  # that began it, by the system's number; NA in a TensorFlow graph and from version 1
    "end_thread": "Int64",  # that ended it
    "begin_ns": "int64",  # CLOCK_MONOTONIC, as heartbeats and operations
    "end_ns": "int64",  # the same as begin_ns for an instant
    "step": "Int64",  # as the program counts; NA for none
    "epoch": "Int64",  # in which it began; NA for none
    "payload": "str",  # a short text, such as shapes; empty for none
    "whole": "bool",  # it began after its scene was set: the member was not frozen inside it
    "platform": "str",
}

# profiles/<company>/<n>/profile_ranges.parquet: a row per phase, range, instant and epoch near a trace.
PROFILE_RANGES: Columns = {
    **TRACE,
    "part": "str",  # it ended in usual steps (before, after), or while the profiler was on (traced)
    "type": "str",  # phase, range (by start and end), instant, epoch
    "name": "str",  # its own
    "path": "str",  # with the phases that it lies in
    "depth": "int64",  # how many phases lie around it
    "domain": "str",  # empty for the parts of a step
    "thread": "Int64",  # that began it, by the system's number; NA in a TensorFlow graph and from version 1
    "end_thread": "Int64",  # that ended it
    "begin_ns": "int64",  # CLOCK_MONOTONIC, as heartbeats and operations
    "end_ns": "int64",  # the same as begin_ns for an instant
    "step": "Int64",  # as the program counts; NA for none
    "epoch": "Int64",  # in which it began; NA for none
    "payload": "str",  # a short text, such as shapes; empty for none
    "platform": "str",
}

# profiles/<company>/<n>/operation_ranges.parquet: a row per trace, range and operation that began inside of it.
OPERATION_RANGES: Columns = {
    **TRACE,
    "path": "str",  # of the range, with the phases that it lies in
    "domain": "str",  # of the range; empty for the parts of a step
    "operation": "str",  # with its scopes
    "type": "str",
    "layer": "str",  # scope
    "direction": "str",  # forward, backward, optimizer, input; empty for none
    "calls": "int64",  # in all traced steps, that began while the range was open in any thread
    "own_ns": "int64",  # of these calls, without what they call
    "shared_ns": "float64",  # their part of the steps
    "platform": "str",
}

RANGE_TABLES: Mapping[str, Columns] = {
    "ranges": RANGES,
    "profile_ranges": PROFILE_RANGES,
    "operation_ranges": OPERATION_RANGES,
}
