-- What each operation's thread did during it: a row per operation that lies whole in a recording, state and reason.
-- The rows of an operation add up to its time; what no state accounts for is unknown.
--
-- trace: the trace
-- row: the operation's interval
-- operation: its name
-- type: its type
-- depth: how many operations it lies in
-- member: the member
-- thread: the thread that ran it
-- tid: the thread's number
-- t0_ns: begin of the operation
-- t1_ns: end of the operation
-- state: running, runnable, preempted, blocked, unknown
-- reason: what a blocked thread waits in; of an unknown state too, where its wake-up was not seen
-- ns: how long, with the operations inside of it
-- scene: the scene that was recorded
WITH known AS (
    SELECT trace, row, state, reason, sum(t1_ns - t0_ns)::BIGINT AS ns FROM operation_pieces GROUP BY ALL
), left_over AS (
    SELECT o.trace, o.row, 'unknown' AS state, '' AS reason, o.t1_ns - o.t0_ns - coalesce(k.ns, 0) AS ns
    FROM operations o
    LEFT JOIN (SELECT trace, row, sum(ns)::BIGINT AS ns FROM known GROUP BY ALL) k ON k.trace = o.trace AND k.row = o.row
    WHERE o.scene IS NOT NULL
), parts AS (
    SELECT trace, row, state, reason, sum(ns)::BIGINT AS ns
    FROM (FROM known UNION ALL BY NAME SELECT * FROM left_over WHERE ns <> 0)
    GROUP BY ALL
)
SELECT
    o.trace, o.row, o.operation, o.type, o.depth, o.member, o.thread, o.tid, o.t0_ns, o.t1_ns,
    p.state, p.reason, p.ns, o.scene
FROM parts p JOIN operations o ON o.trace = p.trace AND o.row = p.row
