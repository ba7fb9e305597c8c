-- What operations wait for
-- Of a call of each operation: how long its thread ran, waited for a CPU, was blocked and on what; alone and beside others.
-- Only calls that lie whole in a recording; what no state accounts for is unknown. The largest differences come first.
-- NULL where the operation has no call.
--
-- member [*]: members to show, by a pattern
-- operation [*]: operations to show, by a pattern
-- scene [*]: scenes to compare with alone, by a pattern
WITH parts AS (
    SELECT trace, scene, member, operation, type, state, reason, sum(ns) / 1e6 AS ms
    FROM operation_states
    WHERE member GLOB $member AND operation GLOB $operation
    GROUP BY ALL
), calls AS (
    SELECT trace, scene, member, operation, type, count(*) AS calls FROM operations WHERE scene IS NOT NULL GROUP BY ALL
), means AS (
    SELECT p.*, c.calls, p.ms / c.calls AS ms_per_call FROM parts p JOIN calls c USING (trace, scene, member, operation, type)
), compared AS (
    SELECT
        c.trace, c.scene, m.member, m.operation, m.type, m.state, m.reason,
        max(m.calls) FILTER (m.scene = c.alone) AS alone_calls, max(m.calls) FILTER (m.scene = c.scene) AS beside_calls,
        sum(m.ms_per_call) FILTER (m.scene = c.alone) AS alone_ms, sum(m.ms_per_call) FILTER (m.scene = c.scene) AS beside_ms
    FROM comparisons c JOIN means m ON m.trace = c.trace AND m.scene IN (c.scene, c.alone)
    WHERE c.scene GLOB $scene
    GROUP BY c.trace, c.scene, m.member, m.operation, m.type, m.state, m.reason
), whole AS (
    SELECT
        *, max(alone_calls) OVER each AS all_alone, max(beside_calls) OVER each AS all_beside,
        sum(coalesce(beside_ms, 0) - coalesce(alone_ms, 0)) OVER each AS longer_ms
    FROM compared
    WINDOW each AS (PARTITION BY trace, scene, member, operation, type)
)
SELECT
    trace, scene, member, operation, type, state, reason, all_alone AS alone_calls, all_beside AS beside_calls,
    CASE WHEN all_alone > 0 THEN coalesce(alone_ms, 0) END AS alone_ms_per_call,
    CASE WHEN all_beside > 0 THEN coalesce(beside_ms, 0) END AS beside_ms_per_call,
    beside_ms_per_call - alone_ms_per_call AS difference
FROM whole
ORDER BY
    trace, scene, abs(longer_ms) * coalesce(all_beside, all_alone) DESC, member, operation, type, beside_ms_per_call DESC,
    state, reason
