-- System calls of members' threads that began in a recording, where no event was lost; cut at the end of such a stretch.
--
-- trace: the trace
-- t0_ns: begin
-- t1_ns: end
-- ms: how long it took, waiting included
-- member: the member
-- thread: its thread
-- tid: the thread's number
-- cpu: where it began
-- name: futex, read ...
-- value: what it returned
-- failed: whether that is an error
-- scene: the scene that was recorded
SELECT
    i.trace, i.t0_ns, least(i.t1_ns, r.t1_ns) AS t1_ns, (least(i.t1_ns, r.t1_ns) - i.t0_ns) / 1e6 AS ms,
    t.member, t.name AS thread, t.tid, i.cpu, i.name, i.value, coalesce(i.value BETWEEN -4095 AND -1, false) AS failed,
    r.scene
FROM files.intervals i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
JOIN seen r ON r.trace = i.trace AND i.t0_ns >= r.t0_ns AND i.t0_ns < r.t1_ns
-- perf marks calls that were under way as it began: they stand at the beginning of a stretch, and did not begin in it.
WHERE i.kind = 'syscall' AND i.depth = 0 AND i.detail <> 'began before'
