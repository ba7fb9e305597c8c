-- What is missing
-- What each source of a trace gave and lost, how far its clock may be off, and why it is missing.
SELECT trace, source, events, if(ran, lost, NULL) AS lost, lost / nullif(events + lost, 0) AS share_lost, bytes, if(ran, alignment_ns / 1e3, NULL) AS alignment_us, reason
FROM (SELECT *, events > 0 OR reason = '' AS ran FROM sources)
ORDER BY trace, lost DESC, source
