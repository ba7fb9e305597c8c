-- Critical path of steps, by what threads did
-- What a step of the lead consists of along the path of its schedule, and what the thread that carried it did meanwhile, in
-- milliseconds of a step; alone and beside others. The differences add up to that of the step. Of a lead without a graph it
-- is the path by who woke whom: its own thread, and in the place of its waits other threads.
--
-- by [part]: part, or thread
-- operation [*]: operations to show, by a pattern; what lies before and after the path has none
-- scene [*]: scenes to compare with alone, by a pattern
WITH steps AS (
    SELECT trace, scene, count(DISTINCT (recording, step)) AS steps FROM paths GROUP BY ALL
), means AS (
    SELECT
        p.trace, p.scene, CASE WHEN $by = 'thread' THEN p.thread ELSE p.part END AS part, p.state, p.reason, sum(p.ns) / 1e6 / any_value(s.steps) AS ms
    FROM paths p JOIN steps s ON s.trace = p.trace AND s.scene = p.scene
    WHERE p.operation GLOB $operation
    GROUP BY ALL
)
SELECT
    c.trace, c.scene, m.part, m.state, m.reason,
    CASE WHEN a.steps IS NOT NULL THEN coalesce(sum(m.ms) FILTER (m.scene = c.alone), 0) END AS alone_ms,
    coalesce(sum(m.ms) FILTER (m.scene = c.scene), 0) AS beside_ms,
    beside_ms - alone_ms AS difference
FROM comparisons c
JOIN steps b ON b.trace = c.trace AND b.scene = c.scene
LEFT JOIN steps a ON a.trace = c.trace AND a.scene = c.alone
JOIN means m ON m.trace = c.trace AND m.scene IN (c.scene, c.alone)
WHERE c.scene GLOB $scene
GROUP BY c.trace, c.scene, a.steps, m.part, m.state, m.reason
ORDER BY c.trace, c.scene, abs(coalesce(difference, beside_ms)) DESC, m.part, m.state, m.reason
