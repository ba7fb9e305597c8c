-- Phases with what threads did and what was read
-- How long each phase and each step of a member takes, and what it was like, on average; alone and beside others. How many
-- threads of the member run, wait for a CPU or are in a state that is not known comes from their states, which are exact:
-- of the executions (`readings`) in which no event was lost. Readings (occupancy, bandwidth ...) cover the time since the
-- reading before: one that does not lie whole in the phase belongs to no phase, and fewer than three show nothing (NULL).
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes to compare with alone, by a pattern
WITH parts AS (
    SELECT trace, scene, member, phase AS part, t0_ns, t1_ns, ms FROM phases WHERE scene IS NOT NULL AND member GLOB $member
    UNION ALL BY NAME
    SELECT trace, scene, member, 'step' AS part, t0_ns, t1_ns, ms FROM steps WHERE scene IS NOT NULL AND member GLOB $member
), lengths AS (
    SELECT trace, scene, member, part, count(*) AS times, avg(ms) AS ms FROM parts GROUP BY ALL
), changes AS (
    -- How many threads of a member are in each kind of state from a moment on, and their time in it until then.
    SELECT trace, member, name, t_ns, sum(change) AS change
    FROM (
        SELECT
            trace, member, unnest([t0_ns, t1_ns]) AS t_ns, unnest([1, -1]) AS change,
            CASE state WHEN 'running' THEN 'running' WHEN 'unknown' THEN 'not known' ELSE 'waiting for a CPU' END AS name
        FROM states
        WHERE state <> 'blocked' AND member GLOB $member
    )
    GROUP BY ALL
), counted AS (
    SELECT *, sum(change) OVER each AS threads, lag(t_ns) OVER each AS before_ns
    FROM changes
    WINDOW each AS (PARTITION BY trace, member, name ORDER BY t_ns)
), spent AS (
    SELECT *, coalesce(sum((threads - change) * (t_ns - before_ns)) OVER each, 0) AS ns
    FROM counted
    WINDOW each AS (PARTITION BY trace, member, name ORDER BY t_ns)
), whole AS (
    SELECT p.*
    FROM parts p
    JOIN seen s ON s.trace = p.trace AND p.t0_ns >= s.t0_ns AND p.t1_ns <= s.t1_ns
    JOIN (SELECT DISTINCT trace, scene, member FROM states) k
        ON k.trace = p.trace AND k.scene = p.scene AND k.member = p.member
), edges AS (
    SELECT w.*, n.name, unnest([t0_ns, t1_ns]) AS t_ns, unnest([-1, 1]) AS sign
    FROM whole w JOIN (SELECT DISTINCT trace, member, name FROM changes) n ON n.trace = w.trace AND n.member = w.member
), in_states AS (
    SELECT
        e.trace, e.scene, e.member, e.part, e.name, 'threads' AS unit, count(*) // 2 AS readings,
        sum(e.sign * coalesce(s.ns + s.threads * (e.t_ns - s.t_ns), 0)) / nullif(sum(e.sign * e.t_ns::HUGEINT), 0) AS value
    FROM edges e
    ASOF LEFT JOIN spent s ON s.trace = e.trace AND s.member = e.member AND s.name = e.name AND s.t_ns <= e.t_ns
    GROUP BY ALL
), readings AS (
    SELECT
        s.trace, s.scene, s.t_ns, s.name, s.unit, s.value, t.member,
        lag(s.t_ns) OVER (PARTITION BY s.trace, s.track, s.name, s.unit, s.source ORDER BY s.t_ns) AS since_ns
    FROM samples s JOIN tracks t ON t.trace = s.trace AND t.track = s.track
    -- A counter without a unit is what it has counted so far, of which a mean shows nothing.
    WHERE t.kind = 'member' AND NOT (s.source = 'counters' AND s.unit = '')
), asked AS (
    SELECT r.*, k.part
    FROM readings r JOIN (SELECT DISTINCT trace, member, part FROM parts) k ON k.trace = r.trace AND k.member = r.member
    WHERE r.scene IS NOT NULL
), placed AS (
    SELECT a.*, coalesce(a.t_ns <= p.t1_ns, false) AS inside
    FROM asked a
    ASOF LEFT JOIN parts p ON p.trace = a.trace AND p.member = a.member AND p.part = a.part AND p.t0_ns <= a.since_ns
), read AS (
    SELECT
        trace, scene, member, part, name, unit, count(*) FILTER (inside) AS readings,
        CASE WHEN count(*) FILTER (inside) >= 3 THEN avg(value) FILTER (inside) END AS value
    FROM placed
    GROUP BY ALL
), means AS (
    FROM in_states UNION ALL BY NAME FROM read
), named AS (
    SELECT DISTINCT trace, member, part, name, unit FROM means
), rows AS (
    -- A part has a row for each of its readings in every scene, or its time alone would stand apart from that beside.
    SELECT l.*, n.name, n.unit, m.value, m.readings
    FROM lengths l
    LEFT JOIN named n ON n.trace = l.trace AND n.member = l.member AND n.part = l.part
    LEFT JOIN means m ON m.trace = l.trace AND m.scene = l.scene AND m.member = l.member AND m.part = l.part
        AND m.name = n.name AND m.unit = n.unit
)
SELECT
    c.trace, c.scene, r.member, r.part, max(r.times) FILTER (r.scene = c.alone) AS alone_times,
    max(r.times) FILTER (r.scene = c.scene) AS beside_times, max(r.ms) FILTER (r.scene = c.alone) AS alone_ms,
    max(r.ms) FILTER (r.scene = c.scene) AS beside_ms, r.name AS reading, r.unit,
    max(r.value) FILTER (r.scene = c.alone) AS alone, max(r.value) FILTER (r.scene = c.scene) AS beside,
    max(r.readings) FILTER (r.scene = c.alone) AS alone_readings, max(r.readings) FILTER (r.scene = c.scene) AS beside_readings
FROM comparisons c JOIN rows r ON r.trace = c.trace AND r.scene IN (c.scene, c.alone)
WHERE c.scene GLOB $scene
GROUP BY c.trace, c.scene, r.member, r.part, r.name, r.unit
ORDER BY c.trace, c.scene, r.member, r.part = 'step', r.part, r.name, r.unit
