-- Counts of events by operation
-- How many cache misses, page faults or other counted events a profiled step has in each operation, alone and beside others,
-- with 95 % intervals of the noise of counting: n samples of one in P are n P, give or take about 2 P times the root of n. They
-- know nothing of how launches differ. A step's counts are those of its operations, and those in none (`outside of operations`).
--
-- member [*]: members to show, by a pattern
-- operation [*]: operations to show, by a pattern; their groups where `by` is group
-- event [*]: events to show, by a pattern
-- by [operation]: operation, or group: convolution, pooling, matmul, gradients of each, optimizer ...
-- scene [*]: scenes to compare with alone, by a pattern
WITH steps AS (
    SELECT trace, scene, member, count(*) AS steps FROM profiled_steps GROUP BY ALL
), found AS (
    SELECT
        trace, scene, member, event, count(*) AS samples, any_value(count) AS period,
        CASE WHEN operation = '' THEN 'outside of operations' WHEN $by <> 'group' THEN operation
            WHEN "group" = '' THEN 'not known' ELSE "group" END AS part
    FROM counts
    WHERE step IS NOT NULL AND member GLOB $member AND event GLOB $event
    GROUP BY ALL
), parts AS (
    SELECT DISTINCT trace, member, event, part, period FROM found WHERE part GLOB $operation
), sampled AS (
    SELECT p.*, s.scene, s.steps, coalesce(f.samples, 0) AS n
    FROM parts p
    JOIN steps s ON s.trace = p.trace AND s.member = p.member
    LEFT JOIN found f ON f.trace = p.trace AND f.scene = s.scene AND f.member = p.member AND f.event = p.event AND f.part = p.part
), rates AS (
    -- Byar's limits of a Poisson number; where each event is recorded, nothing is sampled.
    SELECT
        *, n * period / steps AS mean,
        CASE WHEN period = 1 OR n = 0 THEN mean
            ELSE mean * (1 - 1 / (9 * n) - 1.959964 / (3 * sqrt(n))) ** 3 END AS low,
        CASE WHEN period = 1 THEN mean
            ELSE (n + 1) * period / steps * (1 - 1 / (9 * (n + 1)) + 1.959964 / (3 * sqrt(n + 1))) ** 3 END AS high
    FROM sampled
), compared AS (
    SELECT
        c.trace, c.scene, b.member, b.part AS operation, b.event, a.steps AS alone_steps, b.steps AS beside_steps,
        a.mean AS alone, a.low AS alone_low, a.high AS alone_high, b.mean AS beside, b.low AS beside_low,
        b.high AS beside_high, b.mean - a.mean AS difference
    FROM comparisons c
    JOIN rates b ON b.trace = c.trace AND b.scene = c.scene
    LEFT JOIN rates a ON a.trace = c.trace AND a.scene = c.alone AND a.member = b.member AND a.event = b.event AND a.part = b.part
    WHERE c.scene GLOB $scene
)
SELECT
    *, difference - sqrt((beside - beside_low) ** 2 + (alone_high - alone) ** 2) AS difference_low,
    difference + sqrt((beside_high - beside) ** 2 + (alone - alone_low) ** 2) AS difference_high
FROM compared
ORDER BY trace, scene, member, event, coalesce(abs(difference), beside) DESC, beside DESC, operation
