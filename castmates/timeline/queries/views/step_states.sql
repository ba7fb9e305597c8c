-- What each thread of a member did during each of its steps: a row per step that lies whole in a recording, thread,
-- state and reason. The rows of a step and a thread add up to the step's time, or its part until the thread ended; what no
-- state accounts for is unknown.
--
-- trace: the trace
-- row: the step's interval
-- step: its number
-- member: the member
-- track: the thread's track
-- thread: the thread's name
-- tid: its number
-- t0_ns: begin of the step
-- t1_ns: end of the step
-- state: running, runnable, preempted, blocked, unknown
-- reason: what a blocked thread waits in; of an unknown state too, where its wake-up was not seen
-- ns: how long
-- scene: the scene that was recorded
WITH chain AS MATERIALIZED (
    SELECT
        trace, track, t0_ns, t1_ns, state, reason,
        row_number() OVER (PARTITION BY trace, track ORDER BY t0_ns) AS number
    FROM states
), lives AS (
    -- The last state of a thread lasts until its stretch ends, unless the thread ends.
    SELECT c.trace, c.track, CASE WHEN any_value(e.t1_ns) IS NULL THEN max(c.t1_ns) END AS ended_ns
    FROM (SELECT trace, track, max(t1_ns) AS t1_ns FROM chain GROUP BY ALL) c
    LEFT JOIN seen e ON e.trace = c.trace AND e.t1_ns = c.t1_ns
    GROUP BY ALL
), ours AS MATERIALIZED (
    SELECT s.trace, s.row, t.track, s.t0_ns, least(s.t1_ns, coalesce(l.ended_ns, s.t1_ns)) AS t1_ns
    FROM steps s
    JOIN files.tracks t ON t.trace = s.trace AND t.member = s.member
    JOIN lives l ON l.trace = t.trace AND l.track = t.track
    WHERE s.scene IS NOT NULL AND s.t0_ns < coalesce(l.ended_ns, s.t1_ns)
), begun AS (
    SELECT o.*, s.number AS first
    FROM ours o ASOF LEFT JOIN chain s ON s.trace = o.trace AND s.track = o.track AND s.t0_ns <= o.t0_ns
), ended AS (
    SELECT b.*, s.number AS last
    FROM begun b ASOF JOIN chain s ON s.trace = b.trace AND s.track = b.track AND s.t0_ns < b.t1_ns
), spread AS (
    SELECT trace, row, track, t0_ns, t1_ns, unnest(range(coalesce(first, 1), last + 1)) AS number FROM ended
), known AS (
    SELECT
        p.trace, p.row, p.track, s.state, s.reason,
        sum(least(p.t1_ns, s.t1_ns) - greatest(p.t0_ns, s.t0_ns))::BIGINT AS ns
    FROM spread p
    JOIN chain s ON s.trace = p.trace AND s.track = p.track AND s.number = p.number
    WHERE s.t0_ns < p.t1_ns AND p.t0_ns < s.t1_ns
    GROUP BY ALL
), left_over AS (
    SELECT o.trace, o.row, o.track, 'unknown' AS state, '' AS reason, o.t1_ns - o.t0_ns - coalesce(k.ns, 0) AS ns
    FROM ours o
    LEFT JOIN (SELECT trace, row, track, sum(ns)::BIGINT AS ns FROM known GROUP BY ALL) k
        ON k.trace = o.trace AND k.row = o.row AND k.track = o.track
), parts AS (
    SELECT trace, row, track, state, reason, sum(ns)::BIGINT AS ns
    FROM (FROM known UNION ALL BY NAME SELECT * FROM left_over WHERE ns <> 0)
    GROUP BY ALL
)
SELECT
    s.trace, s.row, s.step, s.member, t.track, t.name AS thread, t.tid, s.t0_ns, s.t1_ns, p.state, p.reason, p.ns, s.scene
FROM parts p
JOIN steps s ON s.trace = p.trace AND s.row = p.row
JOIN files.tracks t ON t.trace = p.trace AND t.track = p.track
