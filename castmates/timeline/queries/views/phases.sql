-- Phases of steps, as members report them, recorded or not.
--
-- trace: the trace
-- row: the interval's number in the trace
-- t0_ns: begin
-- t1_ns: end
-- ms: how long it took
-- member: the member
-- phase: its name
-- depth: how many phases it lies in
-- scene: the scene in whose recording it lies whole; NULL for others
SELECT i.trace, i.row, i.t0_ns, i.t1_ns, (i.t1_ns - i.t0_ns) / 1e6 AS ms, t.member, i.name AS phase, i.depth, r.scene
FROM files.intervals i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
LEFT JOIN recordings r ON r.trace = i.trace AND i.t0_ns >= r.t0_ns AND i.t1_ns <= r.t1_ns
WHERE i.kind = 'phase'
