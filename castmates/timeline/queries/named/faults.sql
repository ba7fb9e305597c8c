-- Page faults
-- Per member and scene: how many in a second that was recorded, and in a step of the lead.
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes, by a pattern
SELECT
    f.trace, f.scene, f.member, f.name, f.detail, count(*) AS faults, count(*) / any_value(r.seen_seconds) AS per_s,
    count(*) / any_value(r.seen_steps) AS per_step, count(DISTINCT f.tid) AS threads
FROM faults f JOIN recorded r ON r.trace = f.trace AND r.scene = f.scene
WHERE f.member GLOB $member AND f.scene GLOB $scene
GROUP BY f.trace, f.scene, f.member, f.name, f.detail
ORDER BY f.trace, f.scene, f.member, faults DESC, f.name, f.detail
