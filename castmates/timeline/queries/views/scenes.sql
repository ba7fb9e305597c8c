-- When which members ran: a row per stretch of a scene, recorded or not.
--
-- trace: the trace
-- t0_ns: begin
-- t1_ns: end
-- ms: how long it took
-- scene: alone, corun:<mix> ...
SELECT trace, t0_ns, t1_ns, (t1_ns - t0_ns) / 1e6 AS ms, name AS scene
FROM files.intervals
WHERE kind = 'scene'
