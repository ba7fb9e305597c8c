-- System calls
-- Per member, scene and call: how many in a second that was recorded, how long they took, waiting included, how many failed.
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes, by a pattern
-- name [*]: calls to show, by a pattern
SELECT
    s.trace, s.scene, s.member, s.name, count(*) AS calls, count(*) / any_value(r.seen_seconds) AS calls_per_s,
    sum(s.ms) / any_value(r.seen_seconds) AS ms_per_s, sum(s.ms) / any_value(r.seen_steps) AS ms_per_step,
    1000 * avg(s.ms) AS mean_us, 1000 * max(s.ms) AS longest_us, count(*) FILTER (s.failed) AS failed
FROM syscalls s JOIN recorded r ON r.trace = s.trace AND r.scene = s.scene
WHERE s.member GLOB $member AND s.scene GLOB $scene AND s.name GLOB $name
GROUP BY s.trace, s.scene, s.member, s.name
ORDER BY s.trace, s.scene, s.member, ms_per_s DESC, s.name
