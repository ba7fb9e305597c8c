-- What each source recorded, and what it lost: a row per trace and source, from the record of the trace.
--
-- trace: the trace
-- source: perf, tensorflow, heartbeat, runner ...
-- events: how many events it gave
-- lost: how many events it lost
-- bytes: the size of what it recorded
-- alignment_ns: how far its clock may be off
-- reason: why it is missing; empty if it is there
SELECT trace, source, events, lost, bytes, alignment_ns, reason FROM files.sources
