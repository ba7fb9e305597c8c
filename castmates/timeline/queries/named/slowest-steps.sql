-- The slowest steps
-- The steps that took longest, against the median of their scene, and what the threads of their member did meanwhile, all
-- together; at_s is the place in the trace.
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes, by a pattern
-- most [20]: how many steps of each member and scene
WITH ours AS (
    SELECT
        *, median(ms) OVER (PARTITION BY trace, scene, member, source) AS usual_ms,
        row_number() OVER (PARTITION BY trace, scene, member, source ORDER BY ms DESC, t0_ns) AS place
    FROM steps
    WHERE scene IS NOT NULL AND member GLOB $member AND scene GLOB $scene
), parts AS (
    SELECT
        trace, row, coalesce(sum(ns) FILTER (state = 'running'), 0) / 1e6 AS running_ms,
        coalesce(sum(ns) FILTER (state IN ('runnable', 'preempted')), 0) / 1e6 AS waiting_for_cpu_ms,
        coalesce(sum(ns) FILTER (state = 'blocked'), 0) / 1e6 AS blocked_ms,
        coalesce(sum(ns) FILTER (state = 'unknown'), 0) / 1e6 AS unknown_ms
    FROM step_states
    GROUP BY trace, row
    HAVING bool_or(state <> 'unknown')
)
SELECT
    s.trace, s.scene, s.member, s.step, (s.t0_ns - t.origin_ns) / 1e9 AS at_s, s.ms, s.ms / s.usual_ms AS times_the_median,
    p.running_ms, p.waiting_for_cpu_ms, p.blocked_ms, p.unknown_ms, s.source
FROM ours s JOIN traces t ON t.trace = s.trace LEFT JOIN parts p ON p.trace = s.trace AND p.row = s.row
WHERE s.place <= $most::BIGINT
ORDER BY s.trace, s.scene, s.member, s.source, s.place
