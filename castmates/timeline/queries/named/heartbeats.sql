-- Progress of members
-- How fast each member was while it was recorded, alone and beside others. A trace is one launch under observation: losses are
-- measured by the rounds of the study.
--
-- member [*]: members to show, by a pattern
SELECT
    c.trace, c.scene, p.member, max(p.rate) FILTER (p.scene = c.alone) AS alone_per_s,
    max(p.rate) FILTER (p.scene = c.scene) AS beside_per_s, beside_per_s / alone_per_s AS ratio,
    sum(p.units) FILTER (p.scene = c.alone) AS alone_units, sum(p.units) FILTER (p.scene = c.scene) AS beside_units
FROM comparisons c JOIN progress p ON p.trace = c.trace AND p.scene IN (c.scene, c.alone)
WHERE p.member GLOB $member
GROUP BY c.trace, c.scene, p.member
ORDER BY c.trace, c.scene, p.member
