-- Every stretch of time of every source, as it was recorded: states, system calls, steps, operations ...
--
-- trace: the trace
-- row: its number in the file; with trace it names the interval
-- t0_ns: begin
-- t1_ns: end
-- ms: how long it took
-- track: what it happened on
-- kind: state, syscall, irq, softirq, scene, slice, step, phase, operation, primitive, kernel, copy, recording ...
-- name: of a state running, runnable, preempted, blocked
-- depth: how many intervals of its track and kind it lies in
-- cpu: where it ran, or waited to run
-- value: of a call what it returned, of a step its number
-- detail: what a blocked thread waits in, who ran instead of a runnable one, the type of an operation
-- source: perf, tensorflow, heartbeat, runner, an importer
SELECT trace, row, t0_ns, t1_ns, (t1_ns - t0_ns) / 1e6 AS ms, track, kind, name, depth, cpu, value, detail, source
FROM files.intervals
