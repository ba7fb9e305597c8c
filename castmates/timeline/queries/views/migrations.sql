-- Moves of members' threads from one CPU to another, in recordings, where no event was lost.
--
-- trace: the trace
-- t_ns: when
-- member: the member
-- thread: the thread
-- tid: its number
-- from_cpu: where it came from
-- to_cpu: where it went
-- scene: the scene that was recorded
SELECT
    i.trace, i.t_ns, t.member, t.name AS thread, t.tid,
    TRY_CAST(regexp_extract(i.detail, 'cpu(\d+)->cpu(\d+)', 1) AS BIGINT) AS from_cpu,
    coalesce(TRY_CAST(regexp_extract(i.detail, 'cpu(\d+)->cpu(\d+)', 2) AS BIGINT), i.cpu) AS to_cpu,
    r.scene
FROM files.instants i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
JOIN seen r ON r.trace = i.trace AND i.t_ns >= r.t0_ns AND i.t_ns < r.t1_ns
WHERE i.kind = 'migration'
