-- Time on CPU, per thread
-- What each thread did of a second that was recorded: running, runnable (woken, not yet running), preempted, blocked and
-- on what; alone beside others. The largest differences come first.
--
-- member [*]: members to show, by a pattern
-- thread [*]: threads to show, by a pattern
-- scene [*]: scenes to compare with solo, by a pattern
WITH times AS (
    SELECT trace, scene, member, thread, tid, state, reason, sum(ms) AS ms
    FROM states
    WHERE member GLOB $member AND thread GLOB $thread
    GROUP BY ALL
), rates AS (
    SELECT t.*, t.ms / r.seen_seconds AS ms_per_s FROM times t JOIN recorded r ON r.trace = t.trace AND r.scene = t.scene
)
SELECT
    c.trace, c.scene, t.member, t.thread, t.tid, t.state, t.reason,
    CASE WHEN c.alone IS NOT NULL THEN coalesce(sum(t.ms_per_s) FILTER (t.scene = c.alone), 0) END AS alone_ms_per_s,
    coalesce(sum(t.ms_per_s) FILTER (t.scene = c.scene), 0) AS beside_ms_per_s,
    beside_ms_per_s - alone_ms_per_s AS difference
FROM comparisons c JOIN rates t ON t.trace = c.trace AND t.scene IN (c.scene, c.alone)
WHERE c.scene GLOB $scene
GROUP BY c.trace, c.scene, c.alone, t.member, t.thread, t.tid, t.state, t.reason
ORDER BY c.trace, c.scene, abs(coalesce(difference, beside_ms_per_s)) DESC, t.member, t.tid, t.state, t.reason
