"""The data contract of timelines: what a trace launch, or an imported trace, leaves. All times are on one clock."""

from collections.abc import Mapping

from castmates.results.columns.block import Columns

TRACE_RECORD = "trace.json"  # written last: a trace without it is not whole
PERFETTO_FILE = "trace.pftrace"  # the trace for the Perfetto UI
OPENED = "open.html"  # the page that hands it over

# traces/<mix>/tracks.parquet: a row per thing that something happens on.
TRACKS: Columns = {
    "track": "int64",  # its number, from 0
    "kind": "str",  # run (the launch itself), member, process, thread, cpu, device
    "name": "str",  # of a thread its own, of a CPU cpu3
    "parent": "Int64",  # track that it belongs to: a thread to its process, a process to its member; NA for none
    "member": "str",  # empty for what belongs to none, such as a CPU
    "pid": "Int64",
    "tid": "Int64",
    "cpu": "Int64",  # of a CPU
}

# traces/<mix>/intervals.parquet: a row per stretch of time, in the order of t0_ns, longer ones first.
INTERVALS: Columns = {
    "t0_ns": "int64",  # CLOCK_MONOTONIC of the machine that recorded it
    "t1_ns": "int64",
    "track": "int64",
    # state, syscall, irq, softirq, on_cpu, step, phase, range, operation, primitive, call (a function that is no
    # operation), kernel, copy, profiled; on the run's track scene, settling, usual (nothing is recorded), recording,
    # whole (all of perf's events are on, and none was lost)
    "kind": "str",
    "name": "str",  # of a state: running, runnable, preempted, blocked
    "depth": "int64",  # how many intervals of its track and kind it lies in
    "cpu": "Int64",  # where it ran, or waited to run; NA for what has none
    "value": "float64",  # a call's return value, a step's number; NaN for none
    "detail": "str",  # what a blocked thread waits in (futex …), who ran instead of a runnable one, an operation's type
    "source": "str",  # perf, tensorflow, heartbeat, runner, an importer's name
}

# traces/<mix>/instants.parquet: a row per moment, in order.
INSTANTS: Columns = {
    "t_ns": "int64",
    "track": "int64",
    "kind": "str",  # wakeup, migration, fault, heartbeat, mask, lost, annotation, signal, exit …
    "name": "str",  # what happened: page fault, step
    "cpu": "Int64",
    "value": "float64",  # a heartbeat's count, the number of lost events; NaN for none
    "detail": "str",  # who woke it, where it migrated from
    "source": "str",
}

# traces/<mix>/samples.parquet: a row per reading of a number, in order.
TRACE_SAMPLES: Columns = {
    "t_ns": "int64",
    "track": "int64",
    "name": "str",  # llc_occupancy_bytes, cpu_ghz …
    "value": "float64",
    "unit": "str",
    "source": "str",
}

SAMPLES = TRACE_SAMPLES  # blocks have a table of this name too

# traces/<mix>/stacks.parquet: a row per sampled stack, in order.
STACKS: Columns = {
    "t_ns": "int64",
    "track": "int64",  # thread
    "cpu": "Int64",
    "event": "str",  # cpu-clock, cycles, or a source of memory latencies
    "weight": "float64",  # how much of the event it stands for: nanoseconds of cpu-clock
    "stack": "str",  # from the outermost frame to the innermost, joined by ;
    "source": "str",
}

# traces/<mix>/paths.parquet, where the lead has a graph: a row per traced step, stretch of the path of its
# schedule, and state of the thread that carried it. The stretches of a step follow each other without gaps.
PATHS_FILE = "paths.parquet"
PATHS: Columns = {
    "scene": "str",
    "recording": "int64",  # of the scene, from 1
    "step": "int64",  # as heartbeats count it
    "place": "int64",  # of the stretch in its step, from 0
    "part": "str",  # before, batch, operations, other operations (of no node of the graph), between operations, after
    "operation": "str",  # that runs or is waited for; "" before and after the path
    "type": "str",
    "track": "Int64",  # the thread; NA: not known
    "t0_ns": "int64",
    "t1_ns": "int64",
    "state": "str",  # running, runnable, preempted, blocked, unknown: no state of the thread was recorded
    "reason": "str",  # what a blocked thread waits in; of an unknown state why, "" where that is not known either
    "ns": "int64",  # those of a stretch add up to it
}

TRACE_TABLES: Mapping[str, Columns] = {
    "tracks": TRACKS,
    "intervals": INTERVALS,
    "instants": INSTANTS,
    "samples": SAMPLES,
    "stacks": STACKS,
}
