-- The stretches in which events were recorded: only what lies in them counts, and times are cut at their edges.
-- A trace without any, such as an imported one, counts whole: by its scenes, or else from its first to its last moment.
--
-- trace: the trace
-- scene: the scene that was recorded; empty where a trace knows none
-- recording: its number in the trace, from 1
-- t0_ns: begin
-- t1_ns: end
-- seconds: how long it took
WITH kept AS (
    SELECT i.trace, i.t0_ns, i.t1_ns, coalesce(max(s.scene), any_value(i.name)) AS scene
    FROM files.intervals i
    LEFT JOIN scenes s ON s.trace = i.trace AND s.t0_ns <= (i.t0_ns + i.t1_ns) // 2 AND (i.t0_ns + i.t1_ns) // 2 < s.t1_ns
    WHERE i.kind = 'recording'
    GROUP BY i.trace, i.t0_ns, i.t1_ns
), by_scene AS (
    SELECT trace, t0_ns, t1_ns, scene FROM scenes WHERE trace NOT IN (SELECT trace FROM kept)
), whole AS (
    SELECT trace, origin_ns AS t0_ns, end_ns AS t1_ns, '' AS scene
    FROM files.traces
    WHERE trace NOT IN (SELECT trace FROM kept) AND trace NOT IN (SELECT trace FROM by_scene)
), found AS (
    FROM kept UNION ALL BY NAME FROM by_scene UNION ALL BY NAME FROM whole
)
SELECT
    trace, scene, row_number() OVER (PARTITION BY trace ORDER BY t0_ns) AS recording,
    t0_ns, t1_ns, (t1_ns - t0_ns) / 1e9 AS seconds
FROM found
WHERE t1_ns > t0_ns
