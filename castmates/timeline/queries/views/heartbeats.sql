-- Heartbeats of members, inside of recordings and outside.
--
-- trace: the trace
-- t_ns: when
-- member: whose
-- count: its units of progress up to then
-- scene: the scene that was recorded then; NULL outside of recordings
-- recording: the number of the recording; NULL outside
SELECT i.trace, i.t_ns, t.member, i.value AS count, r.scene, r.recording
FROM files.instants i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
LEFT JOIN recordings r ON r.trace = i.trace AND i.t_ns >= r.t0_ns AND i.t_ns < r.t1_ns
WHERE i.kind = 'heartbeat'
