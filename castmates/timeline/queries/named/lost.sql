-- What is missing
-- What each source of a trace gave and lost, how far its clock may be off, and why it is missing.
SELECT trace, source, events, lost, lost / nullif(events + lost, 0) AS share_lost, bytes, alignment_ns / 1e3 AS alignment_us, reason
FROM sources
ORDER BY trace, lost DESC, source
