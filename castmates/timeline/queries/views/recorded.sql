-- How long each scene was recorded, and how fast the lead was meanwhile: what makes scenes of different length comparable.
--
-- trace: the trace
-- scene: the scene
-- recordings: how many recordings
-- seconds: how long they took, all together
-- steps: steps of the lead in them, to a part of a step: its rate times the seconds; NULL where nothing shows it
SELECT r.trace, r.scene, count(*) AS recordings, sum(r.seconds) AS seconds, sum(r.seconds) * any_value(p.rate) AS steps
FROM recordings r
JOIN files.traces t ON t.trace = r.trace
LEFT JOIN progress p ON p.trace = r.trace AND p.scene = r.scene AND p.member = t.lead
GROUP BY r.trace, r.scene
