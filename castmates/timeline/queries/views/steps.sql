-- Steps of members, recorded or not: from each heartbeat to the next, which show all of them; of members without heartbeats
-- as they or their profiler report them.
--
-- trace: the trace
-- row: the interval's number in the trace; negative where it is made of heartbeats
-- t0_ns: begin
-- t1_ns: end
-- ms: how long it took
-- member: the member
-- step: its number: of one from heartbeats the count at its end
-- source: who reported it
-- scene: the scene in whose recording it lies whole; NULL for others
WITH beats AS (
    SELECT
        h.trace, -row_number() OVER (PARTITION BY h.trace ORDER BY h.t_ns, h.member) AS row,
        h.t_ns AS t0_ns, lead(h.t_ns) OVER each AS t1_ns, h.member, lead(h.count) OVER each AS step, 'heartbeat' AS source
    FROM heartbeats h
    WINDOW each AS (PARTITION BY h.trace, h.member ORDER BY h.t_ns)
), found AS (
    SELECT * FROM beats WHERE t1_ns IS NOT NULL
    UNION ALL BY NAME
    SELECT i.trace, i.row, i.t0_ns, i.t1_ns, t.member, i.value AS step, i.source
    FROM files.intervals i
    JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
    WHERE i.kind = 'step' AND (i.trace, t.member) NOT IN (SELECT (trace, member) FROM beats WHERE t1_ns IS NOT NULL)
)
SELECT i.trace, i.row, i.t0_ns, i.t1_ns, (i.t1_ns - i.t0_ns) / 1e6 AS ms, i.member, i.step, i.source, r.scene
FROM found i
LEFT JOIN recordings r ON r.trace = i.trace AND i.t0_ns >= r.t0_ns AND i.t1_ns <= r.t1_ns
