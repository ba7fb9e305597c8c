-- The traces that are asked: a row each.
--
-- trace: its name, which is its folder's: the mix, and the partition after @ where there is one
-- study: the study that it belongs to
-- mix: the mix that was recorded
-- partition: the partition that it was recorded under
-- lead: the member whose loss is studied
-- status: measured, imported, failed ...
-- platform: where its numbers come from: measured, emulated ...
-- host: the machine that recorded it
-- kernel: its kernel
-- cpu_model: its processor
-- started: when the recording began
-- folder: where its files are
-- origin_ns: its first moment, on the clock of all times
-- end_ns: its last moment
SELECT trace, study, mix, partition, lead, status, platform, host, kernel, cpu_model, started, folder, origin_ns, end_ns
FROM files.traces
