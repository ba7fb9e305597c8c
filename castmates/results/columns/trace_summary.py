"""The data contract of what traces come to: the tables that are made of the timelines in results/<study>/traces.

A trace is one launch, so none of these numbers has an interval.
"""

from functools import partial

from castmates.results.columns.contract import Table, col, usual
from castmates.study import capabilities

# Whom a row is about: a member in a scene of a trace.
_MEMBER = (
    *usual("study"),
    col("trace", str, "its folder: <mix>, or <mix>@<partition>"),
    col("scene", str, '"" where a trace knows no scenes, as imported ones'),
    *usual("kind mix partition member role"),
)

_traces_table = partial(Table, rule="estimate_traces", asked=capabilities.TRACES)

TRACE_SUMMARY = _traces_table(
    "trace_summary",
    "tables/trace_summary.csv: a row per trace, scene and member: how its threads got on.",
    *_MEMBER,
    col("seconds", float, "recorded of this scene"),
    col("steps", float, "units of progress in this time; NaN where nothing shows them"),
    col("threads", int, "that were seen"),
    col("running", float, "threads that ran at once, mean over the time"),
    col("queued", float, "threads that could run and did not, mean over the time, as far as `unknown` lets it show"),
    col("blocked", float, "threads that waited for something else, mean over the time"),
    col("queued_share", float, "of the time in which its threads could run, for which they did not"),
    col("queued_own", float, "the same, where a thread of the same member ran instead"),
    col("queued_members", float, "the same, where one of another member did"),
    col("queued_others", float, "the same, where another program or the kernel did; an idle CPU counts for nobody"),
    col("taken_by", str, "the member or program outside of this member that ran instead for the longest time"),
    col("voluntary_per_s", float, "switches a second at which a thread began to wait for something"),
    col("involuntary_per_s", float, "switches a second at which a thread lost its CPU"),
    col("migrations_per_s", float, "moves to another CPU"),
    col("migrations_per_cpu_s", float, "the same, in a second of its threads' time on CPUs"),
    col("wakeups_per_s", float, "wake-ups of its threads, a second"),
    col("queue_p50_us", float, "from a wake-up until the thread ran: median"),
    col("queue_p95_us", float, "the same, which 95 % of them do not exceed"),
    col("queue_p99_us", float, "the same, which 99 % of them do not exceed"),
    col("queue_max_us", float, "the longest of them"),
    col("faults_per_s", float, "page faults"),
    col("faults_per_cpu_s", float, "the same, in a second of its threads' time on CPUs"),
    col("faults_per_step", float, "the same in a step"),
    col("faults_ratio", float, "faults of a step, against those of a step of the same member alone in this trace"),
    col("memory_calls_per_step", float, "system calls that map, unmap or give back memory"),
    col("memory_calls_ms", float, "milliseconds of CPU time that they take in a step, over all threads"),
    col("memory_calls_share", float, "the same, of all time of its threads on CPUs"),
    col("interrupts_per_s", float, "as far as they were recorded: of a launch, while its threads were on CPUs"),
    col("interrupts_share", float, "of its threads' time on CPUs, for which interrupts took it"),
    col("input_only_share", float, "of the time, in which threads of the input work and no other does"),
    col("remote_share", float, "of its memory that lies on another node, or of its sampled accesses; NaN: not known"),
    col("slower", float, "how many times as long a step took while events were recorded"),
    col("lost", int, "events that the recording lost, in the whole trace"),
    col(
        "longest_step_at_s", float, "when the longest step began, from the first event of the trace: the place to look"
    ),
    col("longest_step_ms", float, "how long it took"),
    *usual("platform"),
    col("seen_seconds", float, "of the recordings, in which no event was lost: what shares, rates and steps are of"),
    col("queued_idle", float, "as queued_share, where the CPU was idle: the time that a wake-up takes"),
    col("not_known", str, "why numbers are NaN: families of events that were not recorded, threads without names"),
    col("unknown", float, "threads that were blocked or waited for a CPU, mean over the time: no wake-up was seen"),
    col(
        "wakeups_seen", float, "of the waits of woken threads, the share whose wake-up was seen: what latencies are of"
    ),
    estimate="timeline.summary:summaries",
)

TRACE_WAITS = _traces_table(
    "trace_waits",
    "tables/trace_waits.csv: a row per trace, scene, member, state and reason: where the time of its threads went.",
    *_MEMBER,
    col("state", str, "running, runnable (woken), preempted (lost its CPU), blocked, unknown (no wake-up was seen)"),
    col("reason", str, 'of blocked and unknown what it waits in (futex …), of others who ran instead; "": not known'),
    col("times", int, "such stretches that began"),
    col("thread_seconds", float, "over all threads"),
    col("share", float, "of all thread_seconds of this scene and member"),
    col("ms_per_step", float, "over all threads"),
    *usual("platform"),
    estimate="timeline.summary:summaries",
)

TRACE_EVENTS = _traces_table(
    "trace_events",
    "tables/trace_events.csv: a row per trace, scene, member and event: system calls, faults, migrations, interrupts.",
    *_MEMBER,
    col("event", str, "syscall, fault, migration, wakeup, irq, softirq"),
    col("name", str, "of the call, the fault, the interrupt"),
    col("count", int, "that began in the recordings"),
    col("per_s", float, "the same in a second"),
    col("per_step", float, "the same in a step"),
    col("ms_per_step", float, "what it takes, waiting included; NaN of what has no duration"),
    col("longest_ms", float, "the longest of them"),
    *usual("platform"),
    estimate="timeline.summary:summaries",
)

TRACE_POOLS = _traces_table(
    "trace_pools",
    "tables/trace_pools.csv: a row per trace, scene, member and pool: its threads of one name, without their numbers.",
    *_MEMBER,
    col("pool", str, "name of its threads, without their numbers"),
    col("threads", int, "of the pool that were seen"),
    col("running", float, "threads of the pool that ran at once, mean over the time"),
    col("busy", float, "threads of the pool that ran or could run, mean over the time"),
    col("at_once_p99", float, "threads of the pool that were busy at once at most, in 99 % of the time"),
    col("used_share", float, "the same, of its threads"),
    col("all_busy_share", float, "of the time, in which all of them were busy"),
    col("all_busy_idle_share", float, "the same, while fewer threads of the member ran or could run than it has CPUs"),
    col("queued_share", float, "of the time in which they could run, for which they did not"),
    col("wakeups_per_s", float, "wake-ups of its threads, a second"),
    *usual("platform"),
    col("unnamed", int, "more threads of the member, which have no name but the program's: they may be of any pool"),
    col("not_known", str, "why numbers of the pool's size are NaN"),
    estimate="timeline.summary:summaries",
)
