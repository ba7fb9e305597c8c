"""The data contract of profile launches: what they leave, and the study's tables that are made of it.

Add columns at the end, never rename or reorder.
"""

from collections.abc import Mapping

from castmates.results.columns.block import Columns
from castmates.results.columns.dataflow import DATAFLOW_TABLES
from castmates.results.columns.primitives import PRIMITIVE_TABLES
from castmates.results.columns.scenes import SCENE, TRACE

PROFILE_RECORD = "profile.json"  # what a profile launch records of itself, written last

# profiles/<company>/<n>/operations.parquet: a row per call of an operation in the traced steps.
OPERATIONS: Columns = {
    **TRACE,
    "step": "int64",  # of the trace, from 0; -1 for a call that began before the first or between two
    "heartbeat": "Int64",  # that ends this step, counted from when the lead was ready; NA outside of steps
    "operation": "str",  # with its scopes, without the functions around it; "" inside the framework, between two
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
    **TRACE,
    "part": "str",  # before, traced, after
    "step": "int64",  # of its part, from 0
    "heartbeat": "Int64",  # that ends it, counted from when the lead was ready; NA for usual steps
    "begin_ns": "int64",  # CLOCK_MONOTONIC
    "duration_ns": "int64",
    "unattributed_ns": "float64",  # of a traced step: what no operation accounts for; NaN for usual ones
    "threads_intra": "int64",  # of one operation
    "threads_inter": "int64",  # of operations side by side
    "platform": "str",
}

# profiles/<company>/<n>/memory.parquet: a row per piece of memory that an allocator gave out or took back.
MEMORY: Columns = {
    **TRACE,
    "step": "int64",  # of the trace, from 0; -1 outside of steps
    "at_ns": "int64",  # CLOCK_MONOTONIC
    "change": "int64",  # bytes; negative where memory was given back
    "in_use": "int64",  # bytes of its allocator, right after; PyTorch: since the trace began
    "peak": "int64",  # the same at most, since the job's start; PyTorch: since the trace began
    "allocator": "str",  # those that are traced: on a CPU oneDNN's (TensorFlow), all (PyTorch), none (JAX)
    "operation": "str",  # for which it was; "" where that is not known
    "platform": "str",
}

# profiles/<company>/<n>/traced_stages.parquet: a row per trace and stage of its input pipeline, over all its steps.
TRACED_STAGES: Columns = {
    **TRACE,
    "depth": "int64",  # 1 for the stage that the step asks, 2 for the one that this asks …
    "stage": "str",  # with those that ask it before it: Prefetch/Map
    "calls": "int64",  # that began in a step
    "own_ns": "int64",  # of all of them, without the stages that they ask on the same thread
    "function_ns": "int64",  # of the functions that it runs on other threads
    "waits": "bool",  # its elements are made on other threads: its own time is a wait for them
    "threads": "int64",  # on which it is asked, and its functions run
    "platform": "str",
}

# profiles/<company>/<n>/device_calls.parquet: a row per kernel, copy or piece of memory on a stream of a GPU.
DEVICE_CALLS: Columns = {
    **TRACE,
    "step": "int64",  # in which it began on the GPU, from 0; -1 outside of steps
    "device": "str",  # GPU:0
    "stream": "str",  # of the device
    "activity": "str",  # kernel, copy, set, memory, other
    "kernel": "str",  # its name; MemcpyH2D of a copy
    "operation": "str",  # that it is of, with its scopes; "" where that is not known
    "type": "str",  # of the operation
    "begin_ns": "int64",  # CLOCK_MONOTONIC
    "duration_ns": "int64",
    "bytes": "int64",  # that a copy moves, or memory has
    "tensor_cores": "bool",  # its name is one of kernels that use them
    "correlation": "int64",  # the number that CUDA gives a launch; 0 for none
    "platform": "str",
}

PROFILE_TABLES: Mapping[str, Columns] = {
    "operations": OPERATIONS,
    "profiled_steps": PROFILED_STEPS,
    "memory": MEMORY,
    "traced_stages": TRACED_STAGES,
    "device_calls": DEVICE_CALLS,
}
LATER_PROFILE_TABLES = ("traced_stages", "device_calls")  # launches of earlier versions lack them

# tables/operation_effects.csv: a row per mix, partition and group of operations, and one for the whole step.
OPERATION_EFFECTS: Columns = {
    "study": "str",
    "mix": "str",
    "partition": "str",
    "member": "str",
    "group": "str",  # an operation and its type, or what smaller ones were put together as; step for the whole step
    "ratio": "float64",  # how many times as long it takes of a step as alone; geometric mean over launches
    "ratio_low": "float64",  # 95 % between launches
    "ratio_high": "float64",
    "degradation_pct": "float64",  # the same as a loss: 100 (1 - 1 / ratio)
    "degradation_low": "float64",
    "degradation_high": "float64",
    "launches": "int64",
    "traces": "int64",  # rounds of traces, over all launches
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over the study's groups; whole steps are adjusted apart
    "verdict": "str",  # loss, gain, no loss, can't tell yet, too few launches, no data
    "solo_ms": "float64",  # of a step of the lead alone; over groups they add up to the step
    "ms": "float64",  # of a step beside others
    "difference_ms": "float64",
    "difference_low": "float64",  # 95 % between launches
    "difference_high": "float64",
    "share": "float64",  # of the step of the lead alone
    "share_of_loss": "float64",  # of the step's difference; NaN where the step is not proven to lose
    "platform": "str",
    "share_of_loss_low": "float64",  # 95 % between launches, by Fieller; NaN where the difference in ms may be none
    "share_of_loss_high": "float64",
}

_TIMES: Columns = {
    "calls": "float64",  # in a step
    "call_ms": "float64",  # of one call, without what it calls: mean
    "own_min_ms": "float64",  # the shortest call
    "own_max_ms": "float64",  # the longest one
    "own_ms": "float64",  # of all calls in a step
    "shared_ms": "float64",  # its part of a step, in which moments are divided among all that works; mean over launches
    "shared_low": "float64",  # 95 % between launches
    "shared_high": "float64",
    "share": "float64",  # of the step
    "launches": "int64",
    "share_low": "float64",  # 95 % between launches, by Fieller: both the part and the step vary
    "share_high": "float64",
}

# tables/operation_summary.csv: a row per scene and operation; what belongs to none is a row too.
OPERATION_SUMMARY: Columns = {
    **SCENE,
    "operation": "str",  # with its scopes
    "type": "str",
    "layer": "str",  # scope
    "layer_kind": "str",  # convolution, pooling, attention …
    "direction": "str",  # forward, backward, optimizer, input
    **_TIMES,
    "flops": "float64",  # floating-point operations of all its calls in a step; NaN: not known
    "bytes": "float64",  # of their operands, each once: a lower bound of the traffic; NaN: not known
    "gflops": "float64",  # 10^9 operations in a second of its own time; NaN: not known, or none
    "source": "str",  # of these three: primitives; estimated, from the graph of the step; "" where nothing is known
}

# tables/operation_types.csv: a row per scene, type of operation and direction.
OPERATION_TYPES: Columns = {**SCENE, "type": "str", "direction": "str", **_TIMES}

# tables/operation_layers.csv: a row per scene, scope and direction, at every depth of scopes.
OPERATION_LAYERS: Columns = {
    **SCENE,
    "depth": "int64",  # of the scope, from 1
    "layer": "str",  # scope; it has all that deeper ones have
    "direction": "str",
    **_TIMES,
}

# tables/iterations.csv: a row per scene: its traced steps.
ITERATIONS: Columns = {
    **SCENE,
    "traces": "int64",
    "steps": "int64",  # that were traced
    "mean_ms": "float64",
    "median_ms": "float64",
    "shortest_ms": "float64",
    "longest_ms": "float64",
    "outliers": "int64",  # steps that are three robust standard deviations away from the median
    "key_launch": "str",  # of the step closest to the median, the one to look at: company and number
    "key_repetition": "int64",
    "key_step": "int64",
    "usual_ms": "float64",  # of steps that were not traced, right before and after
    "slower": "float64",  # how many times as long a traced step takes
}

# What input_pipeline and first_epoch have in common.
_WAITS: Columns = {
    "step_ms": "float64",
    "waiting_ms": "float64",  # in which a batch is fetched and no operation of the model runs
    "waiting_share": "float64",  # of the step
    "waiting_low": "float64",  # 95 % between launches
    "waiting_high": "float64",
    "input_ms": "float64",  # of the input's own operations, where the step neither works nor waits
    "input_own_ms": "float64",  # of the same: how long they work in a step, beside others or not
    "launches": "int64",
    "verdict": "str",  # input-bound, compute-bound, can't tell yet, too few launches
}

# tables/input_pipeline.csv: a row per scene: whether its steps wait for their input.
INPUT_PIPELINE: Columns = {
    **SCENE,
    **_WAITS,
    "difference": "float64",  # of waiting_share: beside others less alone; NaN alone, and where nothing can be compared
    "difference_low": "float64",  # 95 % between launches
    "difference_high": "float64",
}

# tables/first_epoch.csv: a row per scene and epoch: the same, for steps that begin with the first record.
FIRST_EPOCH: Columns = {
    **SCENE,
    "epoch": "str",  # first: records come from storage; cached: they are in the page cache
    **_WAITS,
    "difference": "float64",  # of waiting_share: beside others less alone, in the same epoch; NaN alone
    "difference_low": "float64",  # 95 % between launches
    "difference_high": "float64",
    "storage_mb": "float64",  # that storage gave in a step; NaN where the kernel does not count it
    "longer": "float64",  # milliseconds of a step of the first epoch more than of a cached one; NaN for cached ones
    "longer_low": "float64",  # 95 % between launches
    "longer_high": "float64",
    "more": "float64",  # of waiting_share: in the first epoch less in a cached one; NaN for cached ones
    "more_low": "float64",  # 95 % between launches
    "more_high": "float64",
}

# tables/thread_pools.csv: a row per scene and pool of threads.
THREAD_POOLS: Columns = {
    **SCENE,
    "pool": "str",  # as the framework names its threads
    "threads": "float64",  # that worked in a trace; mean over traces
    "busy_ms": "float64",  # in a step, all of its threads together
    "busy_share": "float64",  # of what they could have worked
    "launches": "int64",
    "difference": "float64",  # of busy_share: beside others less alone; NaN alone, and where nothing can be compared
    "difference_low": "float64",  # 95 % between launches
    "difference_high": "float64",
}

# tables/not_compared.csv: a row per trace that cannot be compared with the one of the lead alone.
NOT_COMPARED: Columns = {
    "study": "str",
    "scene": "str",
    "mix": "str",
    "partition": "str",
    "member": "str",
    "platform": "str",
    "company": "str",
    "launch": "int64",
    "repetition": "int64",
    "different": "float64",  # share of the step in operations that one of the two alone has, the larger one
    "reason": "str",  # other threads, another graph
}

# tables/memory_use.csv: a row per scene, allocator and operation, and one for all operations.
MEMORY_USE: Columns = {
    **SCENE,
    "allocator": "str",
    "operation": "str",  # with its scopes; all operations for their sum
    "allocations": "float64",  # in a step
    "allocated_mb": "float64",  # in a step
    "in_use_mb": "float64",  # of the allocator, at most in a traced step
    "peak_mb": "float64",  # of the allocator, at most since the job's start; PyTorch: since the trace began
    "traces": "int64",
    "difference": "float64",  # of allocated_mb: beside others less alone; NaN alone, and where nothing can be compared
    "difference_low": "float64",  # 95 % between launches
    "difference_high": "float64",
}

# tables/input_stages.csv: a row per scene and stage of the input pipeline (tf.data).
INPUT_STAGES: Columns = {
    **SCENE,
    "depth": "int64",  # 1 for the stage that the step asks, 2 for the one that this asks …
    "stage": "str",  # with those that ask it before it: Prefetch/Map
    "calls": "float64",  # in a step
    "work_ms": "float64",  # in a step: of the stage itself and of its functions, on all threads
    "function_ms": "float64",  # in a step: of this, the functions that run on other threads
    "waiting_ms": "float64",  # in a step: for elements that other threads make
    "threads": "float64",  # on which it is asked, and its functions run; mean over traces
    "launches": "int64",
    "share": "float64",  # of the work of all stages
    "difference": "float64",  # of work_ms: beside others less alone; NaN alone, and where nothing can be compared
    "difference_low": "float64",  # 95 % between launches
    "difference_high": "float64",
}

# tables/kernels.csv: a row per scene and kernel, or copy, that an operation has a GPU run.
KERNELS: Columns = {
    **SCENE,
    "device": "str",  # GPU:0
    "stream": "str",  # of the device
    "activity": "str",  # kernel, copy, set, memory, other
    "kernel": "str",  # its name; MemcpyH2D of a copy
    "operation": "str",  # that it is of, with its scopes; "" where that is not known
    "type": "str",  # of the operation
    "calls": "float64",  # in a step
    "ms": "float64",  # in a step
    "shortest_ms": "float64",  # the shortest call
    "longest_ms": "float64",  # the longest one
    "mb": "float64",  # that copies move in a step
    "tensor_cores": "bool",  # its name is one of kernels that use them
    "launches": "int64",
    "share": "float64",  # of the time of all that ran on the device
}

OPERATION_TABLES: Mapping[str, Columns] = {
    "operation_effects": OPERATION_EFFECTS,
    "operation_summary": OPERATION_SUMMARY,
    "operation_types": OPERATION_TYPES,
    "operation_layers": OPERATION_LAYERS,
    "iterations": ITERATIONS,
    "input_pipeline": INPUT_PIPELINE,
    "first_epoch": FIRST_EPOCH,
    "thread_pools": THREAD_POOLS,
    "memory_use": MEMORY_USE,
    "not_compared": NOT_COMPARED,
    "input_stages": INPUT_STAGES,
    "kernels": KERNELS,
    **PRIMITIVE_TABLES,
    **DATAFLOW_TABLES,
}
