"""Timelines made for tests and benchmarks: threads that run, wait and sleep, with what they do meanwhile."""

import numpy as np

from castmates.timeline.model import Making, Timeline

SECOND = 1_000_000_000
SCENES = ("solo", "corun:lead@0+stream@1")
NAMES = {"operation": "model/dense/MatMul", "syscall": "futex"}


def made(events: int = 2000, seed: int = 1, seconds: float = 2.0, threads: int = 4) -> Timeline:
    """A timeline of about so many rows: per thread a chain of states without gaps, and syscalls while it runs."""
    dice, making, span = np.random.default_rng(seed), Making(), int(seconds * SECOND)
    run = making.track("run", "dlrm-train beside stream")
    half = span // 2
    making.intervals(t0_ns=[0, half], t1_ns=[half, span], track=run, kind="scene", name=list(SCENES), source="runner")
    member = making.track("member", "lead@0", member="lead@0")
    for cpu in range(2):
        making.track("cpu", f"cpu{cpu}", cpu=cpu)
    making.about = {"format": 1, "mix": "lead+stream", "members": {"lead@0": {}, "stream@1": {}}, "lead": "lead@0"}
    each = max(4, events // threads // 3)
    for thread in range(threads):
        track = making.track("thread", f"worker {thread}", member, member="lead@0", pid=100, tid=101 + thread)
        edges = np.sort(dice.choice(span, each + 1, replace=False))
        state = np.resize(["running", "runnable", "running", "blocked", "running", "preempted"], each)
        detail = np.where(
            state == "blocked", "futex", np.where(np.isin(state, ["runnable", "preempted"]), "stream@1", "")
        )
        making.intervals(
            t0_ns=edges[:-1],
            t1_ns=edges[1:],
            track=track,
            kind="state",
            name=state,
            detail=detail,
            cpu=np.full(each, thread % 2),
            source="perf",
        )
        at = np.flatnonzero(state == "running")
        begin, length = edges[:-1][at], np.diff(edges)[at]
        for kind, name in NAMES.items():
            making.intervals(
                t0_ns=begin + length // 4,
                t1_ns=begin + length // 2,
                track=track,
                kind=kind,
                name=name,
                source="perf" if kind == "syscall" else "tensorflow",
            )
        woken = edges[:-1][state == "runnable"]
        making.instants(
            t_ns=woken, track=track, kind="wakeup", name="woken", cpu=thread % 2, detail="worker", source="perf"
        )
        making.stacks(
            t_ns=begin,
            track=track,
            cpu=thread % 2,
            event="cpu-clock",
            weight=1e6,
            stack="main;run;MatMul",
            source="perf",
        )
    ticks = np.arange(0, span, SECOND // 50)
    making.instants(
        t_ns=ticks, track=member, kind="heartbeat", name="step", value=np.arange(len(ticks)), source="heartbeat"
    )
    making.samples(
        t_ns=ticks, track=member, name="cpu_ghz", value=dice.normal(3, 0.1, len(ticks)), unit="GHz", source="runner"
    )
    return making.made()
