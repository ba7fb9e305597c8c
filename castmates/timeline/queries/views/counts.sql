-- Samples of events of which one in so many was recorded, and page faults, of which each was; with the innermost operation
-- that the thread was in. In recordings, where no event was lost.
--
-- trace: the trace
-- t_ns: when
-- member: the member
-- thread: its thread
-- tid: the thread's number
-- cpu: where
-- event: cache-misses, page-faults ...
-- count: how many of it the sample stands for
-- step: the step that its framework profiled then; NULL outside of these, where operations are not known
-- operation: the innermost one; empty where there was none
-- type: its type
-- group: its kind of layer, with `, gradient` behind it where it is one; empty where that is not known
-- scene: the scene that was recorded
WITH sampled AS MATERIALIZED (
    SELECT
        i.trace, i.t_ns, i.track, t.member, t.name AS thread, t.tid, i.cpu, row_number() OVER () AS number, r.scene,
        CASE i.kind WHEN 'fault' THEN 'page-faults' ELSE i.name END AS event,
        CASE i.kind WHEN 'fault' THEN 1 ELSE i.value END AS count
    FROM files.instants i
    JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
    JOIN seen r ON r.trace = i.trace AND i.t_ns >= r.t0_ns AND i.t_ns < r.t1_ns
    WHERE i.kind IN ('count', 'fault')
), ours AS (
    SELECT trace, track, t0_ns, t1_ns, operation, type, depth FROM operations WHERE t1_ns > t0_ns
), levels AS (
    SELECT DISTINCT trace, track, depth FROM ours
), inside AS (
    -- Of each depth the last operation that had begun: the deepest of those that were not over is the innermost.
    SELECT s.number, arg_max((o.operation, o.type), o.depth) AS innermost
    FROM (SELECT trace, track, t_ns, number, depth FROM sampled JOIN levels USING (trace, track)) s
    ASOF JOIN ours o ON o.trace = s.trace AND o.track = s.track AND o.depth = s.depth AND o.t0_ns <= s.t_ns
    WHERE s.t_ns < o.t1_ns
    GROUP BY s.number
)
SELECT
    s.trace, s.t_ns, s.member, s.thread, s.tid, s.cpu, s.event, s.count, p.step, coalesce(i.innermost[1], '') AS operation,
    coalesce(i.innermost[2], '') AS type, coalesce(g."group", '') AS "group", s.scene
FROM sampled s
LEFT JOIN inside i ON i.number = s.number
LEFT JOIN profiled_steps p ON p.trace = s.trace AND p.member = s.member AND s.t_ns >= p.t0_ns AND s.t_ns < p.t1_ns
LEFT JOIN files.groups g ON g.trace = s.trace AND g.operation = i.innermost[1] AND g.type = i.innermost[2]
