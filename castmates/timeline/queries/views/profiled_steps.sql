-- Steps that a member's framework profiled, or reported: of those alone operations are known. They lie whole in a recording,
-- where no event was lost.
--
-- trace: the trace
-- t0_ns: begin
-- t1_ns: end
-- member: the member
-- step: its number
-- scene: the scene that was recorded
SELECT i.trace, i.t0_ns, i.t1_ns, t.member, i.value AS step, r.scene
FROM files.intervals i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
JOIN seen r ON r.trace = i.trace AND i.t0_ns >= r.t0_ns AND i.t1_ns <= r.t1_ns
WHERE i.kind = 'step'
