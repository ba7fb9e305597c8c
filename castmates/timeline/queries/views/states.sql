-- What each thread did at each moment that was recorded; cut at the edges of the stretches in which no event was lost.
-- A wait whose wake-up was not seen is unknown: the thread was blocked, and then waited for a CPU.
--
-- trace: the trace
-- t0_ns: begin
-- t1_ns: end
-- ms: how long it took
-- track: the thread's track
-- member: the member that the thread belongs to
-- thread: its name
-- tid: its number
-- cpu: where it ran, or waited to run
-- state: running, runnable (woken, not yet running), preempted (it lost its CPU), blocked, unknown
-- reason: what a blocked thread waits in: futex, poll, sleep, io, fault, unknown ...; of an unknown state the same, where it then waited for a CPU and its wake-up was not seen
-- instead: who ran on the CPU that it waited for: a member or a program; empty for other states
-- scene: the scene that was recorded
-- begins: whether it began in the stretch: a state that opens a stretch is no switch
-- whole: whether it also ended in it, so that it is as long as it was
SELECT
    i.trace, greatest(i.t0_ns, r.t0_ns) AS t0_ns, least(i.t1_ns, r.t1_ns) AS t1_ns,
    (least(i.t1_ns, r.t1_ns) - greatest(i.t0_ns, r.t0_ns)) / 1e6 AS ms,
    i.track, t.member, t.name AS thread, t.tid, i.cpu, i.name AS state,
    CASE WHEN i.name IN ('blocked', 'unknown') THEN i.detail ELSE '' END AS reason,
    CASE WHEN i.name IN ('runnable', 'preempted') THEN i.detail ELSE '' END AS instead,
    r.scene, i.t0_ns > r.t0_ns AS begins, i.t0_ns > r.t0_ns AND i.t1_ns < r.t1_ns AS whole
FROM files.intervals i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
JOIN seen r ON r.trace = i.trace AND i.t0_ns < r.t1_ns AND i.t1_ns > r.t0_ns
WHERE i.kind = 'state'
