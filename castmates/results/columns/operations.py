"""The data contract of profile launches: what they leave, and the study's tables that are made of it.

Add columns at the end, never rename or reorder.
"""

from collections.abc import Mapping

from castmates.results.columns.block import Columns

PROFILE_RECORD = "profile.json"  # what a profile launch records of itself, written last

# profiles/<company>/<n>/operations.parquet: a row per call of an operation in the traced steps.
OPERATIONS: Columns = {
    "study": "str",
    "company": "str",
    "launch": "int64",  # number of the profile launch within its company, from 1
    "scene": "str",
    "kind": "str",  # solo, corun
    "mix": "str",  # "" where the scene serves several mixes
    "partition": "str",
    "member": "str",
    "repetition": "int64",  # of the scene's trace in its launch, from 1
    "step": "int64",  # of the trace, from 0; -1 for a call that began before the first or between two
    "heartbeat": "Int64",  # that ends this step, counted from when the lead was ready; NA outside of steps
    "operation": "str",  # with its scopes, without the functions around it; "" inside TensorFlow, between two
    "type": "str",  # of the operation: MatMul; runtime between two
    "layer": "str",  # scope
    "layer_kind": "str",  # convolution, pooling, attention …
    "direction": "str",  # forward, backward, optimizer, input; "" for none
    "thread": "str",
    "begin_ns": "int64",  # CLOCK_MONOTONIC, as heartbeats
    "duration_ns": "int64",
    "own_ns": "int64",  # without the operations that it calls
    "shared_ns": "float64",  # its part of the steps: moments are divided among all that works at the time
    "parent": "int64",  # the row of this trace, from 0, whose part it is; -1 for none
    "platform": "str",
}

# profiles/<company>/<n>/profiled_steps.parquet: a row per step, traced ones and usual ones right before and after.
PROFILED_STEPS: Columns = {
    "study": "str",
    "company": "str",
    "launch": "int64",
    "scene": "str",
    "kind": "str",  # solo, corun
    "mix": "str",
    "partition": "str",
    "member": "str",
    "repetition": "int64",
    "part": "str",  # before, traced, after
    "step": "int64",  # of its part, from 0
    "heartbeat": "Int64",  # that ends it, counted from when the lead was ready; NA for usual steps
    "begin_ns": "int64",  # CLOCK_MONOTONIC
    "duration_ns": "int64",
    "unattributed_ns": "float64",  # of a traced step: what no operation accounts for; NaN for usual ones
    "graph": "str",  # fingerprint of what ran in the trace; "" for usual steps
    "threads_intra": "int64",  # of one operation
    "threads_inter": "int64",  # of operations side by side
    "platform": "str",
}

PROFILE_TABLES: Mapping[str, Columns] = {"operations": OPERATIONS, "profiled_steps": PROFILED_STEPS}
