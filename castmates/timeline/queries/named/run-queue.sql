-- Run-queue latency
-- From a wake-up until the thread ran, in microseconds, by member and scene.
--
-- member [*]: members to show, by a pattern
-- thread [*]: threads, by a pattern
-- scene [*]: scenes, by a pattern
SELECT
    w.trace, w.scene, w.member, count(*) / any_value(r.seen_seconds) AS wakeups_per_s, count(w.latency_us) AS with_latency,
    quantile_cont(w.latency_us, 0.5) AS p50_us, quantile_cont(w.latency_us, 0.95) AS p95_us,
    quantile_cont(w.latency_us, 0.99) AS p99_us, max(w.latency_us) AS max_us
FROM wakeups w JOIN recorded r ON r.trace = w.trace AND r.scene = w.scene
WHERE w.member GLOB $member AND w.thread GLOB $thread AND w.scene GLOB $scene
GROUP BY w.trace, w.scene, w.member
ORDER BY w.trace, w.scene, w.member
