-- Wake-ups of members' threads in recordings, and how long each then waited in the queue of a CPU.
--
-- trace: the trace
-- t_ns: when
-- member: the member
-- thread: the thread that was woken
-- tid: its number
-- cpu: the CPU that it was put on
-- woken_by: who woke it
-- latency_us: from the wake-up until it ran; NULL where it ran already, or not again in this recording
-- scene: the scene that was recorded
WITH woken AS (
    SELECT i.trace, i.t_ns, i.track, i.cpu, i.detail AS woken_by, r.scene, r.t1_ns AS last_ns
    FROM files.instants i
    JOIN recordings r ON r.trace = i.trace AND i.t_ns >= r.t0_ns AND i.t_ns < r.t1_ns
    WHERE i.kind = 'wakeup'
), ran AS (
    SELECT trace, track, t0_ns, t1_ns FROM files.intervals WHERE kind = 'state' AND name = 'running'
), before AS (
    SELECT w.*, r.t1_ns AS until_ns
    FROM woken w ASOF LEFT JOIN ran r ON r.trace = w.trace AND r.track = w.track AND r.t0_ns < w.t_ns
), after AS (
    SELECT b.*, r.t0_ns AS ran_ns
    FROM before b ASOF LEFT JOIN ran r ON r.trace = b.trace AND r.track = b.track AND r.t0_ns >= b.t_ns
)
SELECT
    a.trace, a.t_ns, t.member, t.name AS thread, t.tid, a.cpu, a.woken_by,
    CASE WHEN a.ran_ns < a.last_ns AND coalesce(a.until_ns <= a.t_ns, true) THEN (a.ran_ns - a.t_ns) / 1e3 END AS latency_us,
    a.scene
FROM after a
JOIN files.tracks t ON t.trace = a.trace AND t.track = a.track
