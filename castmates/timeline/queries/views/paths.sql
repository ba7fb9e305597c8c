-- The path of the schedule of the lead's traced steps, and what the thread that carried each stretch of it did: a row per step,
-- stretch, state and reason. The rows of a step add up to it. Empty for a lead without a graph.
--
-- trace: the trace
-- scene: the scene that was recorded
-- recording: which recording of the scene, from 1
-- step: its number, as heartbeats count it
-- place: of the stretch in its step, from 0
-- part: before, batch, operations, other operations (of no node of the graph), between operations, after
-- operation: what runs, or is waited for; empty before and after the path
-- type: its type
-- thread: the thread's name
-- tid: the thread's number
-- t0_ns: begin of the stretch
-- t1_ns: end of the stretch
-- state: running, runnable, preempted, blocked, unknown
-- reason: what a blocked thread waits in; of an unknown state why it is not known, as far as that shows
-- ns: how long
SELECT
    p.trace, p.scene, p.recording, p.step, p.place, p.part, p.operation, p.type, t.name AS thread, t.tid, p.t0_ns, p.t1_ns,
    p.state, p.reason, p.ns
FROM files.paths p
LEFT JOIN files.tracks t ON t.trace = p.trace AND t.track = p.track
