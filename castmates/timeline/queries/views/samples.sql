-- Readings of numbers: occupancy, bandwidth, frequency, counters.
--
-- trace: the trace
-- t_ns: when
-- track: what it was read of
-- whose: the name of that track: a member or a CPU
-- name: llc_occupancy_bytes, cpu_ghz ...
-- value: the number
-- unit: its unit
-- source: who read it
-- scene: the scene that was recorded then; NULL outside of recordings
SELECT s.trace, s.t_ns, s.track, t.name AS whose, s.name, s.value, s.unit, s.source, r.scene
FROM files.samples s
JOIN files.tracks t ON t.trace = s.trace AND t.track = s.track
LEFT JOIN recordings r ON r.trace = s.trace AND s.t_ns >= r.t0_ns AND s.t_ns < r.t1_ns
