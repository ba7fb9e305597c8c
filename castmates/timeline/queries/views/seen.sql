-- The stretches in which perf recorded all that happened: recordings, without the times in which events were lost. States,
-- calls, faults, interrupts, moves and wake-ups count in them, and times are cut at their edges. A trace that does not
-- show them, such as an imported one, counts by its recordings.
--
-- trace: the trace
-- scene: the scene that was recorded; empty where a trace knows none
-- recording: the number of the recording
-- stretch: its number in the trace, from 1
-- t0_ns: begin
-- t1_ns: end
-- seconds: how long it took
WITH marked AS (
    SELECT DISTINCT trace, t0_ns, t1_ns FROM files.intervals WHERE kind = 'whole'
), found AS (
    SELECT r.trace, r.scene, r.recording, greatest(r.t0_ns, w.t0_ns) AS t0_ns, least(r.t1_ns, w.t1_ns) AS t1_ns
    FROM recordings r JOIN marked w ON w.trace = r.trace AND w.t0_ns < r.t1_ns AND w.t1_ns > r.t0_ns
    UNION ALL BY NAME
    SELECT trace, scene, recording, t0_ns, t1_ns FROM recordings WHERE trace NOT IN (SELECT trace FROM marked)
)
SELECT
    trace, scene, recording, row_number() OVER (PARTITION BY trace ORDER BY t0_ns) AS stretch,
    t0_ns, t1_ns, (t1_ns - t0_ns) / 1e9 AS seconds
FROM found
