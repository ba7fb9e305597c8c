-- How long each scene was recorded, and how fast the lead was meanwhile: what makes scenes of different length comparable.
--
-- trace: the trace
-- scene: the scene
-- recordings: how many recordings
-- seconds: how long they took, all together
-- steps: steps of the lead in them, to a part of a step: its rate times the seconds; NULL where nothing shows it
-- seen_seconds: of these seconds, in which no event was lost: what states, calls, faults and wake-ups are counted in
-- seen_steps: steps of the lead in those; NULL where nothing shows it
WITH whole AS (
    SELECT trace, scene, sum(seconds) AS seconds FROM seen GROUP BY ALL
), every AS (
    SELECT trace, scene, count(*) AS recordings, sum(seconds) AS seconds FROM recordings GROUP BY ALL
)
SELECT
    r.trace, r.scene, r.recordings, r.seconds, r.seconds * p.rate AS steps,
    coalesce(w.seconds, 0) AS seen_seconds, w.seconds * p.seen_rate AS seen_steps
FROM every r
JOIN files.traces t ON t.trace = r.trace
LEFT JOIN whole w ON w.trace = r.trace AND w.scene = r.scene
LEFT JOIN progress p ON p.trace = r.trace AND p.scene = r.scene AND p.member = t.lead
