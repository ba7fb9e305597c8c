-- How far each member was at moments that show it: heartbeats, or for members without any where steps begin, and the last
-- one ends.
--
-- trace: the trace
-- t_ns: when
-- member: the member
-- count: its units of progress up to then
WITH beats AS (
    SELECT
        trace, t_ns, member,
        CASE WHEN bool_or(coalesce(isnan(count), true)) OVER each THEN row_number() OVER (each ORDER BY t_ns) ELSE count END AS count,
        count(*) OVER each AS beats
    FROM heartbeats
    WINDOW each AS (PARTITION BY trace, member)
), shown AS (
    SELECT trace, t_ns, member, count FROM beats WHERE beats > 1
), begun AS (
    SELECT i.trace, i.t0_ns, i.t1_ns, t.member
    FROM files.intervals i JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
    WHERE i.kind = 'step' AND i.depth = 0 AND (i.trace, t.member) NOT IN (SELECT (trace, member) FROM shown)
), edges AS (
    SELECT trace, t0_ns AS t_ns, member FROM begun
    UNION ALL BY NAME
    SELECT trace, max(t1_ns) AS t_ns, member FROM begun GROUP BY trace, member
)
FROM shown
UNION ALL BY NAME
SELECT trace, t_ns, member, row_number() OVER (PARTITION BY trace, member ORDER BY t_ns) - 1 AS count FROM edges
