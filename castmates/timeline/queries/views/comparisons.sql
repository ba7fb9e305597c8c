-- Which scenes are compared with the lead alone: every one but alone; a trace with one scene has only that one.
--
-- trace: the trace
-- scene: a scene in which others run too
-- alone: alone; NULL where it was not recorded
WITH there AS (SELECT DISTINCT trace, scene FROM recordings)
SELECT trace, scene, (SELECT max(s.scene) FROM there s WHERE s.trace = t.trace AND s.scene = 'alone') AS alone
FROM there t
WHERE scene <> 'alone' OR trace NOT IN (SELECT trace FROM there WHERE scene <> 'alone')
