-- Interrupts and what the kernel did after them, as far as they hit the members' threads or CPUs, in recordings, where no event
-- was lost. perf sees only those that hit a member's thread while it ran.
--
-- trace: the trace
-- t0_ns: begin
-- t1_ns: end
-- ms: how long it took
-- kind: irq, or softirq
-- name: which
-- cpu: where
-- member: whose thread it interrupted; empty where that is not known
-- scene: the scene that was recorded
SELECT
    i.trace, i.t0_ns, least(i.t1_ns, r.t1_ns) AS t1_ns, (least(i.t1_ns, r.t1_ns) - i.t0_ns) / 1e6 AS ms,
    i.kind, i.name, coalesce(i.cpu, t.cpu) AS cpu, t.member, r.scene
FROM files.intervals i
JOIN files.tracks t ON t.trace = i.trace AND t.track = i.track
JOIN seen r ON r.trace = i.trace AND i.t0_ns >= r.t0_ns AND i.t0_ns < r.t1_ns
WHERE i.kind IN ('irq', 'softirq')
