-- Page faults of members' threads, in recordings, where no event was lost.
--
-- trace: the trace
-- t_ns: when
-- member: the member
-- thread: the thread
-- tid: its number
-- cpu: where
-- name: page fault, or another kind
-- detail: user or kernel
-- scene: the scene that was recorded
SELECT i.trace, i.t_ns, t.member, t.name AS thread, t.tid, i.cpu, i.name, i.detail, r.scene
FROM files.instants i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
JOIN seen r ON r.trace = i.trace AND i.t_ns >= r.t0_ns AND i.t_ns < r.t1_ns
WHERE i.kind = 'fault'
