-- Waits in futex: for locks, and for work
-- How long threads were blocked in futex, in which operation, and who woke them; where the wake-up was not seen, the state is
-- unknown, and the time has the wait for a CPU in it. A thread of a pool that has nothing to do waits there for work: most
-- of this time is no wait for a lock. Waits within operations are the ones to look at.
--
-- member [*]: members to show, by a pattern
-- thread [*]: threads that waited, by a pattern
-- scene [*]: scenes, by a pattern
WITH waits AS (
    SELECT * FROM states WHERE state IN ('blocked', 'unknown') AND reason = 'futex' AND member GLOB $member
        AND thread GLOB $thread AND scene GLOB $scene
), ended AS (
    SELECT w.*, i.woken_by AS waker, i.t_ns AS woken_ns
    FROM waits w
    ASOF LEFT JOIN (SELECT trace, track, t_ns, detail AS woken_by FROM files.instants WHERE kind = 'wakeup') i
        ON i.trace = w.trace AND i.track = w.track AND i.t_ns <= w.t1_ns
), inside AS (
    SELECT trace, member, tid, state_t0_ns, arg_max(operation, depth) AS operation
    FROM operation_pieces
    WHERE state IN ('blocked', 'unknown') AND reason = 'futex'
    GROUP BY ALL
)
SELECT
    w.trace, w.scene, w.member, w.thread, w.state, coalesce(o.operation, '') AS operation,
    CASE WHEN w.state = 'blocked' AND w.woken_ns > w.t0_ns THEN w.waker ELSE 'not known' END AS woken_by,
    count(*) FILTER (w.begins) / any_value(r.seen_seconds) AS waits_per_s, sum(w.ms) / any_value(r.seen_seconds) AS ms_per_s,
    sum(w.ms) / any_value(r.seen_steps) AS ms_per_step, max(w.ms) AS longest_ms
FROM ended w
JOIN recorded r ON r.trace = w.trace AND r.scene = w.scene
LEFT JOIN inside o ON o.trace = w.trace AND o.tid = w.tid AND o.member = w.member AND o.state_t0_ns = w.t0_ns
GROUP BY w.trace, w.scene, w.member, w.thread, w.state, operation, woken_by
ORDER BY w.trace, w.scene, ms_per_s DESC, w.member, w.thread, w.state, operation, woken_by
