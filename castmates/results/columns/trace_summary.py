"""The data contract of what traces come to: the tables that are made of the timelines in results/<study>/traces.

A trace is one launch, so none of these numbers has an interval.
"""

from collections.abc import Mapping

from castmates.results.columns.block import Columns

# Whom a row is about: a member in a scene of a trace.
_MEMBER: Columns = {
    "study": "str",
    "trace": "str",  # its folder: <mix>, or <mix>@<partition>
    "scene": "str",  # "" where a trace knows no scenes, as imported ones
    "kind": "str",
    "mix": "str",
    "partition": "str",
    "member": "str",
    "role": "str",
}

# tables/trace_summary.csv: a row per trace, scene and member: how its threads got on.
TRACE_SUMMARY: Columns = {
    **_MEMBER,
    "seconds": "float64",  # recorded of this scene
    "steps": "float64",  # units of progress in this time; NaN where nothing shows them
    "threads": "int64",  # that were seen
    "running": "float64",  # threads that ran at once, mean over the time
    "queued": "float64",  # threads that could run and did not, mean over the time, as far as `unknown` lets it show
    "blocked": "float64",  # threads that waited for something else, mean over the time
    "queued_share": "float64",  # of the time in which its threads could run, for which they did not
    "queued_own": "float64",  # the same, where a thread of the same member ran instead
    "queued_members": "float64",  # the same, where one of another member did
    "queued_others": "float64",  # the same, where another program or the kernel did; an idle CPU counts for nobody
    "taken_by": "str",  # the member or program outside of this member that ran instead for the longest time
    "voluntary_per_s": "float64",  # switches a second at which a thread began to wait for something
    "involuntary_per_s": "float64",  # switches a second at which a thread lost its CPU
    "migrations_per_s": "float64",  # moves to another CPU
    "migrations_per_cpu_s": "float64",  # the same, in a second of its threads' time on CPUs
    "wakeups_per_s": "float64",  # wake-ups of its threads, a second
    "queue_p50_us": "float64",  # from a wake-up until the thread ran: median
    "queue_p95_us": "float64",  # the same, which 95 % of them do not exceed
    "queue_p99_us": "float64",  # the same, which 99 % of them do not exceed
    "queue_max_us": "float64",  # the longest of them
    "faults_per_s": "float64",  # page faults
    "faults_per_cpu_s": "float64",  # the same, in a second of its threads' time on CPUs
    "faults_per_step": "float64",  # the same in a step
    "faults_ratio": "float64",  # faults of a step, against those of a step of the same member alone in this trace
    "memory_calls_per_step": "float64",  # system calls that map, unmap or give back memory
    "memory_calls_ms": "float64",  # milliseconds of CPU time that they take in a step, over all threads
    "memory_calls_share": "float64",  # the same, of all time of its threads on CPUs
    "interrupts_per_s": "float64",  # as far as they were recorded: of a launch, while its threads were on CPUs
    "interrupts_share": "float64",  # of its threads' time on CPUs, for which interrupts took it
    "input_only_share": "float64",  # of the time, in which threads of the input work and no other does
    "remote_share": "float64",  # of its memory that lies on another node, or of its sampled accesses; NaN: not known
    "slower": "float64",  # how many times as long a step took while events were recorded
    "lost": "int64",  # events that the recording lost, in the whole trace
    "longest_step_at_s": "float64",  # when the longest step began, from the first event of the trace: the place to look
    "longest_step_ms": "float64",  # how long it took
    "platform": "str",
    "seen_seconds": "float64",  # of the recordings, in which no event was lost: what shares, rates and steps are of
    "queued_idle": "float64",  # as queued_share, where the CPU was idle: the time that a wake-up takes
    "not_known": "str",  # why numbers are NaN: families of events that were not recorded, threads without names
    "unknown": "float64",  # threads that were blocked or waited for a CPU, mean over the time: no wake-up was seen
    "wakeups_seen": "float64",  # of the waits of woken threads, the share whose wake-up was seen: what latencies are of
}

# tables/trace_waits.csv: a row per trace, scene, member, state and reason: where the time of its threads went.
TRACE_WAITS: Columns = {
    **_MEMBER,
    "state": "str",  # running, runnable (woken), preempted (lost its CPU), blocked, unknown (no wake-up was seen)
    "reason": "str",  # of blocked and unknown what it waits in (futex …), of others who ran instead; "": not known
    "times": "int64",  # such stretches that began
    "thread_seconds": "float64",  # over all threads
    "share": "float64",  # of all thread_seconds of this scene and member
    "ms_per_step": "float64",  # over all threads
    "platform": "str",
}

# tables/trace_events.csv: a row per trace, scene, member and event: system calls, faults, migrations, interrupts.
TRACE_EVENTS: Columns = {
    **_MEMBER,
    "event": "str",  # syscall, fault, migration, wakeup, irq, softirq
    "name": "str",  # of the call, the fault, the interrupt
    "count": "int64",  # that began in the recordings
    "per_s": "float64",  # the same in a second
    "per_step": "float64",  # the same in a step
    "ms_per_step": "float64",  # what it takes, waiting included; NaN of what has no duration
    "longest_ms": "float64",  # the longest of them
    "platform": "str",
}

# tables/trace_pools.csv: a row per trace, scene, member and pool: its threads of one name, without their numbers.
TRACE_POOLS: Columns = {
    **_MEMBER,
    "pool": "str",  # name of its threads, without their numbers
    "threads": "int64",  # of the pool that were seen
    "running": "float64",  # threads of the pool that ran at once, mean over the time
    "busy": "float64",  # threads of the pool that ran or could run, mean over the time
    "at_once_p99": "float64",  # threads of the pool that were busy at once at most, in 99 % of the time
    "used_share": "float64",  # the same, of its threads
    "all_busy_share": "float64",  # of the time, in which all of them were busy
    "all_busy_idle_share": "float64",  # the same, while fewer threads of the member ran or could run than it has CPUs
    "queued_share": "float64",  # of the time in which they could run, for which they did not
    "wakeups_per_s": "float64",  # wake-ups of its threads, a second
    "platform": "str",
    "unnamed": "int64",  # more threads of the member, which have no name but the program's: they may be of any pool
    "not_known": "str",  # why numbers of the pool's size are NaN
}

TRACE_SUMMARY_TABLES: Mapping[str, Columns] = {
    "trace_summary": TRACE_SUMMARY,
    "trace_waits": TRACE_WAITS,
    "trace_events": TRACE_EVENTS,
    "trace_pools": TRACE_POOLS,
}
