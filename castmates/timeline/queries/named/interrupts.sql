-- Interrupts
-- Which hit the members' threads or CPUs: how many in a second that was recorded, and how long they took.
--
-- scene [*]: scenes, by a pattern
SELECT
    i.trace, i.scene, i.member, i.cpu, i.kind, i.name, count(*) AS interrupts, count(*) / any_value(r.seen_seconds) AS per_s,
    1000 * sum(i.ms) / any_value(r.seen_seconds) AS us_per_s, 1000 * max(i.ms) AS longest_us
FROM interrupts i JOIN recorded r ON r.trace = i.trace AND r.scene = i.scene
WHERE i.scene GLOB $scene
GROUP BY i.trace, i.scene, i.member, i.cpu, i.kind, i.name
ORDER BY i.trace, i.scene, us_per_s DESC, i.cpu, i.kind, i.name
