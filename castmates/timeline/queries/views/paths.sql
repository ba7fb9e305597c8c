-- The critical path of the lead's steps, and what the thread that carried each stretch of it did: a row per step, stretch,
-- state and reason. The rows of a step add up to it. It is that of the schedule where the lead has a graph, and else that of
-- who woke whom.
--
-- trace: the trace
-- scene: the scene that was recorded
-- recording: which recording of the scene, from 1
-- step: its number, as heartbeats count it
-- place: of the stretch in its step, from 0
-- part: before, batch, operations, other operations (of no node of the graph), between operations, after; without a graph own thread, other threads
-- operation: what runs, or is waited for; empty before and after the path
-- type: its type
-- thread: the thread's name
-- tid: the thread's number
-- t0_ns: begin of the stretch
-- t1_ns: end of the stretch
-- state: running, runnable, preempted, blocked, unknown
-- reason: what a blocked thread waits in; of an unknown state why it is not known, as far as that shows; without a graph, who ran instead of a thread that waited to run
-- ns: how long
SELECT
    p.trace, p.scene, p.recording, p.step, p.place, p.part, p.operation, p.type, t.name AS thread, t.tid, p.t0_ns, p.t1_ns,
    p.state, p.reason, p.ns
FROM files.paths p
LEFT JOIN files.tracks t ON t.trace = p.trace AND t.track = p.track
