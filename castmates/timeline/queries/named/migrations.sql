-- Migrations
-- Moves of threads from one CPU to another, per member, scene and direction, in a second that was recorded.
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes, by a pattern
SELECT
    m.trace, m.scene, m.member, m.from_cpu, m.to_cpu, count(*) AS migrations, count(*) / any_value(r.seen_seconds) AS per_s,
    count(*) / any_value(r.seen_steps) AS per_step, count(DISTINCT m.tid) AS threads
FROM migrations m JOIN recorded r ON r.trace = m.trace AND r.scene = m.scene
WHERE m.member GLOB $member AND m.scene GLOB $scene
GROUP BY m.trace, m.scene, m.member, m.from_cpu, m.to_cpu
ORDER BY m.trace, m.scene, m.member, migrations DESC, m.from_cpu, m.to_cpu
