-- How fast members were while they were recorded: units of progress over time. Between two heartbeats progress is even, and
-- what lies before the first or after the last one is left out. Members that a scene does not run have no row.
--
-- trace: the trace
-- scene: the scene
-- member: the member
-- units: steps or other units of progress
-- seconds: the time that they took
-- rate: units in a second
-- seen_rate: the same in the stretches in which no event was lost; NULL where there is none
WITH stretches AS (
    SELECT trace, scene, recording, t0_ns, t1_ns, false AS is_seen FROM recordings
    UNION ALL BY NAME
    SELECT trace, scene, recording, t0_ns, t1_ns, true AS is_seen FROM seen
), pieces AS (
    SELECT
        trace, member, t_ns, count, lead(t_ns) OVER each AS next_ns, lead(count) OVER each AS next_count
    FROM marks
    WINDOW each AS (PARTITION BY trace, member ORDER BY t_ns)
), ranges AS (
    SELECT trace, member, min(t_ns) AS first_ns, max(t_ns) AS last_ns FROM marks GROUP BY ALL
), ours AS (
    SELECT
        s.trace, s.scene, s.is_seen, r.member, greatest(s.t0_ns, r.first_ns) AS t0_ns, least(s.t1_ns, r.last_ns) AS t1_ns
    FROM stretches s
    JOIN ranges r ON r.trace = s.trace AND r.first_ns < s.t1_ns AND r.last_ns > s.t0_ns
    JOIN files.traces t ON t.trace = s.trace
    WHERE t.lead = '' OR r.member = t.lead OR NOT regexp_full_match(s.scene, '(alone|alone-again|placebo)([:@].*)?')
), edges AS (
    SELECT trace, scene, is_seen, member, t0_ns AS t_ns, -1 AS sign FROM ours
    UNION ALL BY NAME
    SELECT trace, scene, is_seen, member, t1_ns AS t_ns, 1 AS sign FROM ours
), counted AS (
    SELECT
        e.*, p.count + CASE WHEN p.next_ns > p.t_ns
            THEN (p.next_count - p.count) * (e.t_ns - p.t_ns) / (p.next_ns - p.t_ns) ELSE 0 END AS count
    FROM edges e ASOF JOIN pieces p ON p.trace = e.trace AND p.member = e.member AND p.t_ns <= e.t_ns
), made AS (
    SELECT
        trace, scene, member, sum(sign * count) FILTER (NOT is_seen) AS units,
        sum(sign * t_ns::HUGEINT) FILTER (NOT is_seen) / 1e9 AS seconds, sum(sign * count) FILTER (is_seen) AS seen_units,
        sum(sign * t_ns::HUGEINT) FILTER (is_seen) / 1e9 AS seen_seconds
    FROM counted
    GROUP BY ALL
)
SELECT
    trace, scene, member, units, seconds, units / seconds AS rate,
    CASE WHEN seen_seconds > 0 THEN seen_units / seen_seconds END AS seen_rate
FROM made
WHERE units > 0 AND seconds > 0
