-- Run-queue latency
-- From a wake-up until the thread ran, in microseconds, by member and scene. `waits` are all that ended with the thread on a
-- CPU after it was blocked, and `seen` is the share of them whose wake-up was seen: latencies are of these alone.
--
-- member [*]: members to show, by a pattern
-- thread [*]: threads, by a pattern
-- scene [*]: scenes, by a pattern
WITH ours AS (
    SELECT trace, scene, member, latency_us, 1 AS woken, 0 AS unwoken FROM wakeups
    WHERE member GLOB $member AND thread GLOB $thread AND scene GLOB $scene
    UNION ALL BY NAME
    SELECT trace, scene, member, 0 AS woken, 1 AS unwoken FROM states
    WHERE state = 'unknown' AND reason <> '' AND whole AND member GLOB $member AND thread GLOB $thread AND scene GLOB $scene
)
SELECT
    w.trace, w.scene, w.member, sum(w.woken) / any_value(r.seen_seconds) AS wakeups_per_s, count(w.latency_us) AS with_latency,
    count(w.latency_us) + sum(w.unwoken) AS waits, with_latency / nullif(waits, 0) AS seen,
    quantile_cont(w.latency_us, 0.5) AS p50_us, quantile_cont(w.latency_us, 0.95) AS p95_us,
    quantile_cont(w.latency_us, 0.99) AS p99_us, max(w.latency_us) AS max_us
FROM ours w JOIN recorded r ON r.trace = w.trace AND r.scene = w.scene
GROUP BY w.trace, w.scene, w.member
ORDER BY w.trace, w.scene, w.member
