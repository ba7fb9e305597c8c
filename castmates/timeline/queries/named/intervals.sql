-- Intervals (t0, t1, track, state)
-- The common currency of trace analysis: every state of every thread in recordings, for other programs.
--
-- member [*]: members, by a pattern
-- scene [*]: scenes, by a pattern
SELECT
    trace, t0_ns, t1_ns, track, state || CASE WHEN reason = '' THEN '' ELSE ':' || reason END AS state, thread, tid, member, cpu, scene
FROM states
WHERE member GLOB $member AND scene GLOB $scene
ORDER BY trace, t0_ns, track
