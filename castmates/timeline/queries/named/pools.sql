-- Pools of threads while steps run
-- Threads of one name, without their numbers, while the steps of their member run: how many run, wait for a CPU and are
-- blocked at a time, on average; unknown where no state or no wake-up was seen. Threads that have ended count for nothing.
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes, by a pattern
WITH parts AS (
    SELECT
        trace, scene, member, row, step, tid, t1_ns - t0_ns AS length, 
        coalesce(nullif(regexp_replace(thread, '[\W_]*\d+$', ''), ''), thread) AS pool,
        state, ns
    FROM step_states
    WHERE member GLOB $member AND scene GLOB $scene
), lengths AS (
    SELECT trace, scene, member, sum(length) AS ns, count(*) AS steps
    FROM (SELECT DISTINCT trace, scene, member, row, length FROM parts)
    GROUP BY ALL
)
SELECT
    p.trace, p.scene, p.member, p.pool, count(DISTINCT p.tid) AS threads, any_value(l.steps) AS steps,
    coalesce(sum(p.ns) FILTER (p.state = 'running'), 0) / any_value(l.ns) AS running,
    coalesce(sum(p.ns) FILTER (p.state IN ('runnable', 'preempted')), 0) / any_value(l.ns) AS waiting_for_cpu,
    coalesce(sum(p.ns) FILTER (p.state = 'blocked'), 0) / any_value(l.ns) AS blocked,
    coalesce(sum(p.ns) FILTER (p.state = 'unknown'), 0) / any_value(l.ns) AS unknown
FROM parts p JOIN lengths l USING (trace, scene, member)
GROUP BY p.trace, p.scene, p.member, p.pool
ORDER BY p.trace, p.scene, p.member, running DESC, p.pool
