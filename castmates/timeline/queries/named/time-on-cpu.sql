-- Time on CPU, per thread
-- What each thread did of a second that was recorded: running, runnable (woken, not yet running), preempted, blocked and
-- on what; alone and beside others. The largest differences come first. NULL where no state of the thread was recorded.
-- Unknown without a reason is the time before a thread's first event in a recording; with one, a wait that ended without a
-- wake-up that was seen: the thread was blocked there, and then waited for a CPU. Running and preempted are always known.
--
-- member [*]: members to show, by a pattern
-- thread [*]: threads to show, by a pattern
-- scene [*]: scenes to compare with alone, by a pattern
WITH times AS (
    SELECT trace, scene, member, track, thread, tid, state, reason, sum(ms) AS ms
    FROM states
    WHERE member GLOB $member AND thread GLOB $thread
    GROUP BY ALL
), rates AS (
    SELECT t.*, t.ms / r.seen_seconds AS ms_per_s FROM times t JOIN recorded r ON r.trace = t.trace AND r.scene = t.scene
), compared AS (
    SELECT
        c.trace, c.scene, t.member, t.track, t.thread, t.tid, t.state, t.reason,
        sum(t.ms_per_s) FILTER (t.scene = c.alone) AS alone, sum(t.ms_per_s) FILTER (t.scene = c.scene) AS beside
    FROM comparisons c JOIN rates t ON t.trace = c.trace AND t.scene IN (c.scene, c.alone)
    WHERE c.scene GLOB $scene
    GROUP BY c.trace, c.scene, t.member, t.track, t.thread, t.tid, t.state, t.reason
)
SELECT
    trace, scene, member, thread, tid, state, reason,
    CASE WHEN count(alone) OVER each > 0 THEN coalesce(alone, 0) END AS alone_ms_per_s,
    CASE WHEN count(beside) OVER each > 0 THEN coalesce(beside, 0) END AS beside_ms_per_s,
    beside_ms_per_s - alone_ms_per_s AS difference
FROM compared
WINDOW each AS (PARTITION BY trace, scene, track)
ORDER BY
    trace, scene, abs(coalesce(difference, beside_ms_per_s, alone_ms_per_s)) DESC, member, tid, state, reason
