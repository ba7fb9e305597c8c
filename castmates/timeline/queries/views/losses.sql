-- Where events were lost: what lies around these moments may lack something.
--
-- trace: the trace
-- t_ns: when it was noticed
-- track: whose events
-- whose: the name of that track
-- events: how many were lost
-- source: who lost them
-- scene: the scene that was recorded then; NULL outside of recordings
SELECT i.trace, i.t_ns, i.track, t.name AS whose, i.value AS events, i.source, r.scene
FROM files.instants i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
LEFT JOIN recordings r ON r.trace = i.trace AND i.t_ns >= r.t0_ns AND i.t_ns < r.t1_ns
WHERE i.kind = 'lost'
