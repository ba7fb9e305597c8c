-- Phases with readings
-- How long each phase and each step of a member takes, and what was read of the member while it ran, on average: occupancy,
-- bandwidth, time on CPUs …; alone beside others. Readings belong to the phase in which they were taken.
--
-- member [*]: members to show, by a pattern
-- scene [*]: scenes to compare with solo, by a pattern
WITH parts AS (
    SELECT trace, scene, member, phase AS part, t0_ns, t1_ns, ms FROM phases WHERE scene IS NOT NULL AND member GLOB $member
    UNION ALL BY NAME
    SELECT trace, scene, member, 'step' AS part, t0_ns, t1_ns, ms FROM steps WHERE scene IS NOT NULL AND member GLOB $member
), lengths AS (
    SELECT trace, scene, member, part, count(*) AS times, avg(ms) AS ms FROM parts GROUP BY ALL
), readings AS (
    SELECT s.trace, s.t_ns, s.name, s.unit, s.value, t.member
    FROM samples s JOIN tracks t ON t.trace = s.trace AND t.track = s.track
    -- A counter without a unit is what it has counted so far, of which a mean shows nothing.
    WHERE t.kind = 'member' AND s.scene IS NOT NULL AND NOT (s.source = 'counters' AND s.unit = '')
), asked AS (
    SELECT r.*, k.part
    FROM readings r JOIN (SELECT DISTINCT trace, member, part FROM parts) k ON k.trace = r.trace AND k.member = r.member
), inside AS (
    SELECT a.trace, a.member, a.part, a.name, a.unit, a.value, a.t_ns, p.scene, p.t1_ns
    FROM asked a
    ASOF JOIN parts p ON p.trace = a.trace AND p.member = a.member AND p.part = a.part AND p.t0_ns <= a.t_ns
), means AS (
    SELECT trace, scene, member, part, name, unit, avg(value) AS value, count(*) AS readings
    FROM inside
    WHERE t_ns < t1_ns
    GROUP BY ALL
), named AS (
    SELECT DISTINCT trace, member, part, name, unit FROM means
), rows AS (
    -- A part has a row for each of its readings in every scene, or its time alone would stand apart from that beside.
    SELECT l.*, n.name, n.unit, m.value, m.readings
    FROM lengths l
    LEFT JOIN named n ON n.trace = l.trace AND n.member = l.member AND n.part = l.part
    LEFT JOIN means m ON m.trace = l.trace AND m.scene = l.scene AND m.member = l.member AND m.part = l.part
        AND m.name = n.name AND m.unit = n.unit
)
SELECT
    c.trace, c.scene, r.member, r.part, max(r.times) FILTER (r.scene = c.alone) AS alone_times,
    max(r.times) FILTER (r.scene = c.scene) AS beside_times, max(r.ms) FILTER (r.scene = c.alone) AS alone_ms,
    max(r.ms) FILTER (r.scene = c.scene) AS beside_ms, r.name AS reading, r.unit,
    max(r.value) FILTER (r.scene = c.alone) AS alone, max(r.value) FILTER (r.scene = c.scene) AS beside,
    max(r.readings) FILTER (r.scene = c.alone) AS alone_readings, max(r.readings) FILTER (r.scene = c.scene) AS beside_readings
FROM comparisons c JOIN rows r ON r.trace = c.trace AND r.scene IN (c.scene, c.alone)
WHERE c.scene GLOB $scene
GROUP BY c.trace, c.scene, r.member, r.part, r.name, r.unit
ORDER BY c.trace, c.scene, r.member, r.part = 'step', r.part, r.name, r.unit
