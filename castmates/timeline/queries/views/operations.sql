-- Operations of members' frameworks, recorded or not.
--
-- trace: the trace
-- row: the interval's number in the trace
-- t0_ns: begin
-- t1_ns: end
-- ms: how long it took, with the operations inside of it
-- track: the thread's track
-- member: the member
-- thread: the thread that ran it
-- tid: the thread's number
-- operation: its name
-- type: its type
-- depth: how many operations it lies in
-- source: the framework
-- scene: the scene in whose recording it lies whole; NULL for others
SELECT
    i.trace, i.row, i.t0_ns, i.t1_ns, (i.t1_ns - i.t0_ns) / 1e6 AS ms, i.track, t.member, t.name AS thread, t.tid,
    i.name AS operation, i.detail AS type, i.depth, i.source, r.scene
FROM files.intervals i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
LEFT JOIN recordings r ON r.trace = i.trace AND i.t0_ns >= r.t0_ns AND i.t1_ns <= r.t1_ns
WHERE i.kind = 'operation'
