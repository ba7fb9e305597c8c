-- Time on CPU, per member
-- What the threads of each member did, all together: milliseconds of a second that was recorded, and of a step of the
-- lead; alone beside others.
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes to compare with solo, by a pattern
WITH times AS (
    SELECT trace, scene, member, state, reason, sum(ms) AS ms FROM states WHERE member GLOB $member GROUP BY ALL
), rates AS (
    SELECT t.*, t.ms / r.seen_seconds AS ms_per_s, t.ms / r.seen_steps AS ms_per_step
    FROM times t JOIN recorded r ON r.trace = t.trace AND r.scene = t.scene
)
SELECT
    c.trace, c.scene, t.member, t.state, t.reason,
    CASE WHEN c.alone IS NOT NULL THEN coalesce(sum(t.ms_per_s) FILTER (t.scene = c.alone), 0) END AS alone_ms_per_s,
    coalesce(sum(t.ms_per_s) FILTER (t.scene = c.scene), 0) AS beside_ms_per_s,
    CASE WHEN c.alone IS NOT NULL THEN coalesce(sum(t.ms_per_step) FILTER (t.scene = c.alone), 0) END AS alone_ms_per_step,
    coalesce(sum(t.ms_per_step) FILTER (t.scene = c.scene), 0) AS beside_ms_per_step
FROM comparisons c JOIN rates t ON t.trace = c.trace AND t.scene IN (c.scene, c.alone)
WHERE c.scene GLOB $scene
GROUP BY c.trace, c.scene, c.alone, t.member, t.state, t.reason
ORDER BY c.trace, c.scene, t.member, beside_ms_per_s DESC, t.state, t.reason
