-- Wake-ups of members' threads in recordings, where no event was lost, and how long each then waited in the queue of a CPU.
-- perf misses some that others deliver: the query run-queue has how many.
--
-- trace: the trace
-- t_ns: when
-- member: the member
-- thread: the thread that was woken
-- tid: its number
-- cpu: the CPU that it was put on
-- woken_by: who woke it
-- latency_us: from the wake-up until it ran; NULL where it ran already, or events were lost or recording ended before it ran
-- scene: the scene that was recorded
WITH woken AS (
    SELECT i.trace, i.t_ns, i.track, i.cpu, i.detail AS woken_by, r.scene
    FROM files.instants i
    JOIN seen r ON r.trace = i.trace AND i.t_ns >= r.t0_ns AND i.t_ns < r.t1_ns
    WHERE i.kind = 'wakeup'
), waits AS (
    SELECT trace, track, t0_ns, ms FROM states WHERE state = 'runnable' AND whole
)
SELECT
    w.trace, w.t_ns, t.member, t.name AS thread, t.tid, w.cpu, w.woken_by, q.ms * 1e3 AS latency_us, w.scene
FROM woken w
JOIN files.tracks t ON t.trace = w.trace AND t.track = w.track
LEFT JOIN waits q ON q.trace = w.trace AND q.track = w.track AND q.t0_ns = w.t_ns
