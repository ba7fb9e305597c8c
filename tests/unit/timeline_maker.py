"""Timelines made for tests and benchmarks: threads that run, wait and sleep, with what they do meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from castmates.timeline.model import Making, Timeline

SECOND = 1_000_000_000
MS = 1_000_000
SCENES = ("alone", "corun:lead@0+stream@1")
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


@dataclass(frozen=True)
class Thread:
    """What a thread does again and again, in milliseconds, and what the kernel does for it in each turn of that."""

    member: str
    name: str
    turn: Sequence[tuple[str, float, str]]  # state, how long, detail; the CPU is that of the thread
    cpu: int = 0
    scenes: Sequence[str] = SCENES
    calls: Mapping[str, float] = field(
        default_factory=dict
    )  # system calls at the begin of a turn, and how long each is
    faults: int = 0
    migrations: int = 0
    begins: float = 0.0  # where in its turn it is when a scene begins


def scripted(threads: Sequence[Thread], about: Mapping[str, Any] | None = None, step: float = 10.0) -> Timeline:
    """A timeline with known answers: two scenes of a second, of each of which the middle 0.8 s are recorded."""
    making = Making()
    members = {
        each.member: {"cpus": sorted({one.cpu for one in threads if one.member == each.member})} for each in threads
    }
    lead = next(iter(members))
    making.about = {"mix": "lead+stream", "members": members, "lead": lead, **(about or {})}
    run = making.track("run", "made")
    tracks = {member: making.track("member", member, member=member) for member in members}
    for cpu in sorted({each.cpu for each in threads}):
        making.track("cpu", f"cpu{cpu}", cpu=cpu)
    for number, scene in enumerate(SCENES):
        begin = (1 + 2 * number) * SECOND
        inner = {"t0_ns": begin + SECOND // 10, "t1_ns": begin + 9 * SECOND // 10}
        making.intervals(t0_ns=begin, t1_ns=begin + SECOND, track=run, kind="scene", name=scene)
        making.intervals(**inner, track=run, kind="recording", name=scene)
        ticks = begin + np.arange(0, SECOND + 1, int(step * MS))
        for member, track in tracks.items():
            if member == lead or "corun" in scene:
                count = np.arange(len(ticks), dtype=float) + number * 1000
                making.instants(t_ns=ticks, track=track, kind="heartbeat", name="step", value=count)
        for tid, thread in enumerate(threads):
            if scene in thread.scenes:
                _turns(making, thread, _track(making, tracks[thread.member], thread, tid), begin)
    return making.made()


def _track(making: Making, member: int, thread: Thread, tid: int) -> int:
    known = next((each["track"] for each in making.tracks() if each.get("tid") == 100 + tid), None)
    return making.track("thread", thread.name, member, member=thread.member, tid=100 + tid) if known is None else known


def _turns(making: Making, thread: Thread, track: int, begin: int) -> None:
    """The states of a scene without gaps, and what belongs to each turn."""
    lengths = np.array([round(each[1] * MS) for each in thread.turn])
    turn = int(lengths.sum())
    starts = np.arange(begin - round(thread.begins * MS), begin + SECOND, turn)
    inside = np.cumsum(lengths) - lengths
    t0, t1 = (starts[:, None] + inside).ravel(), (starts[:, None] + inside + lengths).ravel()
    kept = (t1 > begin) & (t0 < begin + SECOND)
    names, details = (np.tile([str(each[place]) for each in thread.turn], len(starts))[kept] for place in (0, 2))
    making.intervals(
        t0_ns=np.maximum(t0[kept], begin),
        t1_ns=np.minimum(t1[kept], begin + SECOND),
        track=track,
        kind="state",
        name=names,
        detail=details,
        cpu=np.full(len(names), thread.cpu),
    )
    turns = starts[(starts >= begin) & (starts < begin + SECOND)]
    for name, length in thread.calls.items():
        making.intervals(t0_ns=turns, t1_ns=turns + round(length * MS), track=track, kind="syscall", name=name)
    for kind, each, name in (("fault", thread.faults, "page fault"), ("migration", thread.migrations, "moved")):
        at = np.repeat(turns, each) + np.tile(np.arange(each), len(turns)) * 1000
        making.instants(t_ns=at, track=track, kind=kind, name=name, cpu=np.full(len(at), thread.cpu))
