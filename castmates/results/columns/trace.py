"""The data contract of timelines: what a trace launch, or an imported trace, leaves. All times are on one clock."""

from collections.abc import Mapping

from castmates.results.columns.contract import Columns, Table, col, usual

TRACE_RECORD = "trace.json"  # written last: a trace without it is not whole
PERFETTO_FILE = "trace.pftrace"  # the trace for the Perfetto UI
OPENED = "open.html"  # the page that hands it over

TRACKS = Table(
    "tracks",
    "traces/<mix>/tracks.parquet: a row per thing that something happens on.",
    col("track", int, "its number, from 0"),
    col("kind", str, "run (the launch itself), member, process, thread, cpu, device"),
    col("name", str, "of a thread its own, of a CPU cpu3"),
    col(
        "parent", int | None, "track that it belongs to: a thread to its process, a process to its member; NA for none"
    ),
    col("member", str, "empty for what belongs to none, such as a CPU"),
    col("pid", int | None, "the system's number of the process"),
    col("tid", int | None, "the system's number of the thread"),
    col("cpu", int | None, "of a CPU"),
)

INTERVALS = Table(
    "intervals",
    "traces/<mix>/intervals.parquet: a row per stretch of time, in the order of t0_ns, longer ones first.",
    col("t0_ns", int, "CLOCK_MONOTONIC of the machine that recorded it"),
    *usual("t1_ns track"),
    col(
        "kind",
        str,
        "state, syscall, irq, softirq, on_cpu, step, phase, range, operation, primitive, call (a function that is no "
        "operation), kernel, copy, profiled; on the run's track scene, settling, usual (nothing is recorded), "
        "recording, whole (all of perf's events are on, and none was lost)",
    ),
    col("name", str, "of a state: running, runnable, preempted, blocked"),
    col("depth", int, "how many intervals of its track and kind it lies in"),
    col("cpu", int | None, "where it ran, or waited to run; NA for what has none"),
    col(
        "value",
        float,
        "a call's return value, a step's number, of PyTorch's operations their sequence number; NaN for none",
    ),
    col(
        "detail",
        str,
        "what a blocked thread waits in (futex …), who ran instead of a runnable one, an operation's type or shapes",
    ),
    col("source", str, "perf, tensorflow, heartbeat, runner, an importer's name"),
)

INSTANTS = Table(
    "instants",
    "traces/<mix>/instants.parquet: a row per moment, in order.",
    *usual("t_ns track"),
    col(
        "kind",
        str,
        "wakeup, migration, fault, count (a sample of an event), heartbeat, mask, lost, annotation, signal, exit …",
    ),
    col("name", str, "what happened: page fault, step"),
    *usual("cpu"),
    col("value", float, "a heartbeat's count, the number of lost events, of how many a sample is; NaN for none"),
    col("detail", str, "who woke it, where it migrated from"),
    *usual("source"),
)

TRACE_SAMPLES = Table(
    "trace_samples",
    "traces/<mix>/samples.parquet: a row per reading of a number, in order.",
    *usual("t_ns track"),
    col("name", str, "llc_occupancy_bytes, cpu_ghz …"),
    col("value", float, "what it came to"),
    *usual("unit source"),
)

SAMPLES = TRACE_SAMPLES  # launches have a table of this name too

STACKS = Table(
    "stacks",
    "traces/<mix>/stacks.parquet: a row per sampled stack, in order.",
    *usual("t_ns"),
    col("track", int, "thread"),
    *usual("cpu"),
    col("event", str, "cpu-clock, cycles, or a source of memory latencies"),
    col("weight", float, "how much of the event it stands for: nanoseconds of cpu-clock"),
    col("stack", str, "from the outermost frame to the innermost, joined by ;"),
    *usual("source"),
)

GROUPS_FILE = "groups.parquet"
GROUPS = Table(
    "groups",
    "traces/<mix>/groups.parquet, where the lead's framework was profiled: a row per operation.",
    *usual("operation type"),
    col(
        "group",
        str,
        "kind of layer, `, gradient` behind it where it is one: convolution, pooling, gradient; optimizer; empty where "
        "calls by this name are of several",
    ),
)

PATHS_FILE = "paths.parquet"
PATHS = Table(
    "paths",
    "traces/<mix>/paths.parquet: a row per step, stretch of its critical path (of its schedule where the lead has a "
    "graph, else by who woke whom), and state of the thread that carried it. The stretches of a step have no gaps.",
    *usual("scene"),
    col("recording", int, "of the scene, from 1"),
    col("step", int, "as heartbeats count it"),
    col("place", int, "of the stretch in its step, from 0"),
    col(
        "part",
        str,
        "before, batch, operations, other operations (of no node of the graph), between operations, after; without a "
        "graph own thread (on which the step ends), other threads",
    ),
    col("operation", str, 'that runs or is waited for; "" before and after the path'),
    *usual("type"),
    col("track", int | None, "the thread; NA: not known"),
    col("t0_ns", int, "begin, CLOCK_MONOTONIC, in nanoseconds"),
    *usual("t1_ns"),
    col("state", str, "running, runnable, preempted, blocked, unknown: no state of the thread was recorded"),
    col(
        "reason",
        str,
        'what a blocked thread waits in; of an unknown state why, "" where that is not known either; without a graph, '
        "who ran instead of a thread that waits to run",
    ),
    col("ns", int, "those of a stretch add up to it"),
)

TRACE_TABLES: Mapping[str, Columns] = {
    "tracks": TRACKS,
    "intervals": INTERVALS,
    "instants": INSTANTS,
    "samples": SAMPLES,
    "stacks": STACKS,
}
