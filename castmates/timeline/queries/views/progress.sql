-- How fast members were while they were recorded: units of progress between the first and the last heartbeat of each
-- recording, over the time between them. Of members without heartbeats the begins of steps count in their place.
--
-- trace: the trace
-- scene: the scene
-- member: the member
-- units: steps or other units of progress
-- seconds: the time that they took
-- rate: units in a second
WITH beats AS (
    SELECT trace, scene, recording, member, max(count) - min(count) AS units, (max(t_ns) - min(t_ns)) / 1e9 AS seconds
    FROM heartbeats
    WHERE scene IS NOT NULL
    GROUP BY ALL
), begun AS (
    SELECT i.trace, r.scene, r.recording, t.member, count(*) - 1 AS units, (max(i.t0_ns) - min(i.t0_ns)) / 1e9 AS seconds
    FROM files.intervals i
    JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
    JOIN recordings r ON r.trace = i.trace AND i.t0_ns >= r.t0_ns AND i.t0_ns < r.t1_ns
    WHERE i.kind = 'step' AND (i.trace, t.member) NOT IN (SELECT (trace, member) FROM beats)
    GROUP BY ALL
)
SELECT trace, scene, member, sum(units) AS units, sum(seconds) AS seconds, sum(units) / sum(seconds) AS rate
FROM (FROM beats UNION ALL BY NAME FROM begun)
WHERE units > 0 AND seconds > 0
GROUP BY ALL
