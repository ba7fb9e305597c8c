-- Each operation that lies whole in a recording, cut into the states that its thread was in meanwhile.
--
-- trace: the trace
-- row: the operation's interval
-- operation: its name
-- type: its type
-- depth: how many operations it lies in
-- member: the member
-- thread: the thread that ran it
-- tid: the thread's number
-- t0_ns: begin of the piece
-- t1_ns: end of the piece
-- state_t0_ns: begin of the whole state
-- state_t1_ns: end of the whole state
-- state: running, runnable, preempted, blocked, unknown
-- reason: what a blocked thread waits in; of an unknown state too, where its wake-up was not seen
-- instead: who ran on the CPU that it waited for
-- scene: the scene that was recorded

WITH chain AS MATERIALIZED (
    -- The first and the last state that an operation touches are found by sorting, not by trying all pairs.
    SELECT
        trace, track, t0_ns, t1_ns, state, reason, instead,
        row_number() OVER (PARTITION BY trace, track ORDER BY t0_ns) AS number
    FROM states
), ours AS MATERIALIZED (
    SELECT trace, row, track, t0_ns, t1_ns FROM operations WHERE scene IS NOT NULL
), begun AS (
    SELECT o.*, s.number AS first
    FROM ours o ASOF LEFT JOIN chain s ON s.trace = o.trace AND s.track = o.track AND s.t0_ns <= o.t0_ns
), ended AS (
    SELECT b.*, s.number AS last
    FROM begun b ASOF JOIN chain s ON s.trace = b.trace AND s.track = b.track AND s.t0_ns < b.t1_ns
), spread AS (
    SELECT trace, row, track, t0_ns, t1_ns, unnest(range(coalesce(first, 1), last + 1)) AS number FROM ended
)
SELECT
    o.trace, o.row, o.operation, o.type, o.depth, o.member, o.thread, o.tid,
    greatest(p.t0_ns, s.t0_ns) AS t0_ns, least(p.t1_ns, s.t1_ns) AS t1_ns,
    s.t0_ns AS state_t0_ns, s.t1_ns AS state_t1_ns, s.state, s.reason, s.instead, o.scene
FROM spread p
JOIN chain s ON s.trace = p.trace AND s.track = p.track AND s.number = p.number
JOIN operations o ON o.trace = p.trace AND o.row = p.row
WHERE s.t0_ns < p.t1_ns AND p.t0_ns < s.t1_ns
