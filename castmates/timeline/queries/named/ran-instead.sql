-- Who ran instead
-- Who ran on the CPU that a member's threads waited for: milliseconds of a second that was recorded, and how often.
--
-- member [*]: members whose threads waited, by a pattern
-- scene [*]: scenes, by a pattern
SELECT
    s.trace, s.scene, s.member, s.state, CASE s.instead
        WHEN '' THEN 'not known' WHEN 'idle' THEN 'nobody: the CPU was idle' WHEN 'unknown' THEN 'not known' ELSE s.instead
    END AS ran_instead,
    sum(s.ms) / any_value(r.seen_seconds) AS ms_per_s, sum(s.ms) / any_value(r.seen_steps) AS ms_per_step,
    count(*) FILTER (s.begins) / any_value(r.seen_seconds) AS times_per_s, max(s.ms) AS longest_ms
FROM states s JOIN recorded r ON r.trace = s.trace AND r.scene = s.scene
WHERE s.state IN ('runnable', 'preempted') AND s.member GLOB $member AND s.scene GLOB $scene
GROUP BY s.trace, s.scene, s.member, s.state, ran_instead
ORDER BY s.trace, s.scene, ms_per_s DESC, s.member, s.state, ran_instead
