-- Time on CPU, per member
-- What the threads of each member did, all together: milliseconds of a second that was recorded, and of a step of the
-- lead; alone and beside others. NULL where no state of the member was recorded, or steps of the lead are not known.
-- Unknown without a reason is the time before a thread's first event in a recording; with one, a wait that ended without a
-- wake-up that was seen: the thread was blocked there, and then waited for a CPU. Running and preempted are always known.
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes to compare with alone, by a pattern
WITH times AS (
    SELECT trace, scene, member, state, reason, sum(ms) AS ms FROM states WHERE member GLOB $member GROUP BY ALL
), rates AS (
    SELECT t.*, t.ms / r.seen_seconds AS ms_per_s, t.ms / r.seen_steps AS ms_per_step
    FROM times t JOIN recorded r ON r.trace = t.trace AND r.scene = t.scene
), compared AS (
    SELECT
        c.trace, c.scene, t.member, t.state, t.reason,
        sum(t.ms_per_s) FILTER (t.scene = c.alone) AS alone_s, sum(t.ms_per_s) FILTER (t.scene = c.scene) AS beside_s,
        sum(t.ms_per_step) FILTER (t.scene = c.alone) AS alone_step,
        sum(t.ms_per_step) FILTER (t.scene = c.scene) AS beside_step
    FROM comparisons c JOIN rates t ON t.trace = c.trace AND t.scene IN (c.scene, c.alone)
    WHERE c.scene GLOB $scene
    GROUP BY c.trace, c.scene, t.member, t.state, t.reason
)
SELECT
    trace, scene, member, state, reason,
    CASE WHEN count(alone_s) OVER each > 0 THEN coalesce(alone_s, 0) END AS alone_ms_per_s,
    CASE WHEN count(beside_s) OVER each > 0 THEN coalesce(beside_s, 0) END AS beside_ms_per_s,
    CASE WHEN count(alone_step) OVER each > 0 THEN coalesce(alone_step, 0) END AS alone_ms_per_step,
    CASE WHEN count(beside_step) OVER each > 0 THEN coalesce(beside_step, 0) END AS beside_ms_per_step
FROM compared
WINDOW each AS (PARTITION BY trace, scene, member)
ORDER BY trace, scene, member, beside_ms_per_s DESC, state, reason
