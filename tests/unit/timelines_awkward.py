"""A timeline of everything that is hard to export: ties, empty intervals, long uptime, tracks without numbers."""

from castmates.timeline.model import Making, Registry, Timeline

LONG = 9_000_000_000_000_000  # 104 days of uptime


def awkward() -> Timeline:
    """A few rows, each of which has its reason."""
    making = Making()
    tracks = Registry(making)
    run, lead, beside = tracks.run("dlrm-train"), tracks.member("lead@0"), tracks.member("stream@1")
    tracks.process(500, "python", "lead@0")
    tracks.process(510, "loader", "lead@0")
    pool = tracks.thread(501, 500, "pool", "lead@0")
    other = tracks.thread(511, 510, "pool", "lead@0")
    stream = tracks.thread(600, 600, "stream", "stream@1")
    cpu, gpu = tracks.cpu(3), tracks.device("stream 7", "lead@0")
    bare = [making.track("thread", "worker"), making.track("thread", "worker")]  # imported, and two of one name
    making.about = {
        "study": "first-look",
        "mix": "dlrm-train+stream",
        "members": {"lead@0": {"workload": "dlrm-train", "pid": 500}, "stream@1": {"workload": "stream"}},
        "lead": "lead@0",
        "sources": [{"name": "perf", "lost": 7}],
        "clocks": [{"at": "begin", "steady_ns": LONG, "real_ns": 17}],
        "kernel": "6.18.0",
    }
    rows = [  # begin, end, track, kind, name, depth, cpu, value, detail
        (0, 1000, run, "scene", "alone", 0, None, None, ""),
        (1000, 2000, run, "scene", "corun:dlrm-train+stream", 0, None, None, ""),
        (100, 200, pool, "state", "running", 0, 3, None, ""),
        (200, 300, pool, "state", "blocked", 0, None, None, "futex"),  # begins where the one before ends
        (300, 300, pool, "state", "runnable", 0, 3, None, "stream@1"),  # takes no time
        (300, 400, pool, "state", "running", 0, 3, None, ""),
        (350, 500, stream, "state", "running", 0, 3, None, ""),  # on the same CPU at once
        (100, 400, pool, "operation", "a/MatMul", 0, None, None, "MatMul"),
        (100, 400, pool, "operation", "b", 1, None, None, ""),  # begins and ends with the one around it
        (100, 250, pool, "operation", "c", 2, None, 3.5, ""),
        (250, 400, pool, "operation", "c", 2, None, None, ""),
        (150, 350, pool, "syscall", "futex", 0, None, -110.0, ""),  # crosses the states
        (120, 130, other, "syscall", "read", 0, 1, 0.0, "größer: “7”"),
        (110, 190, lead, "step", "step", 0, None, 41.0, ""),
        (105, 115, cpu, "irq", "timer", 0, 3, None, ""),
        (500, 900, gpu, "kernel", "gemm", 0, None, None, ""),
        (10, 60, bare[0], "slice", "one", 0, None, None, ""),
        (20, 90, bare[1], "slice", "two", 0, None, None, ""),  # would cross the other's on a line of both
    ]
    for begin, end, track, kind, name, depth, where, value, detail in rows:
        making.intervals(
            t0_ns=[LONG + begin], t1_ns=[LONG + end], track=track, kind=kind, name=name, depth=depth, cpu=where,
            value=value, detail=detail, source="test",
        )  # fmt: skip
    making.instants(t_ns=[LONG + 150], track=pool, kind="wakeup", name="woken", detail="stream", cpu=3, value=600.0)
    making.instants(t_ns=[LONG + 151], track=pool, kind="wakeup", name="woken", detail="elsewhere", value=99.0)
    making.instants(t_ns=[LONG + 160], track=pool, kind="migration", name="migrated", detail="cpu1->cpu3")
    making.instants(t_ns=[LONG + 190], track=lead, kind="heartbeat", name="step", value=41.0)
    making.instants(t_ns=[LONG + 1900], track=run, kind="lost", name="lost", value=7.0)
    making.samples(t_ns=[LONG + 1, LONG + 2], track=beside, name="llc_occupancy_bytes", value=[1e6, -0.0], unit="B")
    making.samples(t_ns=[LONG + 1], track=cpu, name="cpu_ghz", value=[2.5], unit="GHz")
    making.stacks(t_ns=[LONG + 150], track=pool, weight=1e6, stack="main;run;größer")
    return making.made()
