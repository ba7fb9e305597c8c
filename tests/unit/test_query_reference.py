"""Every named query against plain loops over the same tables, of a trace in which everything happens."""

import numpy as np
import pytest

from castmates.timeline.model import Making
from castmates.timeline.queries.asking import ask, named, query_of, values_of
from castmates.timeline.queries.database import TraceFolder, database
from castmates.timeline.tables import write
from tests.unit.query_reference import KEYS, Reference, differences

PATH = "path"  # tests/unit/test_path_states.py
LEAD, OTHER = "job@0", "noise@1"
ALONE, CORUN = "alone", f"corun:{LEAD}+{OTHER}"
MS = 1_000_000
SCENES = (ALONE, CORUN, CORUN, ALONE)  # two recordings of each
LOSS = (24 * MS, 25 * MS)  # in the third scene
DETAILS = {
    "running": [""],
    "runnable": ["idle", OTHER, LEAD, "", "unknown"],
    "preempted": [OTHER, "sshd"],
    "blocked": ["futex", "futex", "poll", "io"],
    "unknown": ["futex", "sleep", ""],
}


class Made:
    """Ten milliseconds of each scene, of which eight are recorded; without scenes as other programs record."""

    def __init__(self, imported):
        self.dice, self.making, self.imported = np.random.default_rng(7), Making(), imported
        self.making.about = {"lead": "" if imported else LEAD, "mix": "job+noise", "sources": [
            {"name": "perf", "events": {"states": 90, "faults": 10}, "lost": 25, "bytes": 7, "alignment_ns": 40},
            {"name": "torch", "events": {}, "lost": 0, "reason": "none"}]}  # fmt: skip
        run = self.making.track("run", "x")
        self.member = {name: self.making.track("member", name, member=name) for name in (LEAD, OTHER)}
        self.cpu = self.making.track("cpu", "cpu1", cpu=1)
        names = {"main": LEAD, "pool-1": LEAD, "pool-2": LEAD, "kernel": OTHER}
        self.threads = {
            name: self.making.track("thread", name, self.member[member], member=member, tid=100 + number)
            for number, (name, member) in enumerate(names.items())
        }
        for place, scene in enumerate(SCENES):
            self.scene(run, scene, 10 * place * MS, 10 * (place + 1) * MS)
        beats = np.arange(0, 40 * MS, 700_000)
        if not imported:
            self.beats(LEAD, beats, np.arange(len(beats)) + 5.0)
            self.beats(OTHER, (own := beats[(beats > 10 * MS) & (beats < 30 * MS)]), 100.0 * np.arange(len(own)))
        profiled = np.arange(2 * MS, 38 * MS, 900_000)
        self.making.intervals(
            t0_ns=profiled, t1_ns=profiled + 800_000, track=self.member[LEAD], kind="step", name="step", source="torch",
            value=np.arange(len(profiled)),
        )  # fmt: skip

    def beats(self, member, at, count):
        beat = {"kind": "heartbeat", "name": "step", "source": "heartbeat"}
        self.making.instants(t_ns=at, track=self.member[member], value=count, **beat)

    def scene(self, run, scene, begin, end):
        first, last = begin + MS, end - MS
        if not self.imported:
            whole = [(first, LOSS[0]), (LOSS[1], last)] if first < LOSS[0] < last else [(first + 1000, last)]
            spans = [("scene", begin, end), ("recording", first, last), *(("whole", *each) for each in whole)]
            for kind, t0, t1 in spans:
                self.making.intervals(t0_ns=[t0], t1_ns=[t1], track=run, kind=kind, name=scene)
            early = {"kind": "syscall", "name": "read", "detail": "began before", "value": [3.0]}
            self.making.intervals(t0_ns=[whole[0][0]], t1_ns=[whole[0][0] + 99], track=self.threads["main"], **early)
        for thread, track in self.threads.items():
            if scene == CORUN or thread in ("main", "pool-1"):  # the other one of the pool does nothing alone
                self.thread(track, scene, *self.chain(track, begin, end))
        for member in self.member if scene == CORUN else (LEAD,):
            self.readings(self.member[member], begin, end)
        at = self.times(6, begin, end)
        irq = {"kind": "irq", "name": "timer", "source": "ftrace"}
        self.making.intervals(t0_ns=at, t1_ns=at + 3000, track=self.cpu, **irq)

    def times(self, many, begin, end):
        return np.sort(self.dice.choice(np.arange(begin, end - 40_000, 10), many, replace=False))

    def chain(self, track, begin, end):
        """States without gaps; a wait ends with a wake-up, or nobody saw how."""
        edges = np.array([begin, *self.times(80, begin + 100, end), end])
        after = {"running": ["preempted", "blocked", "unknown"], "preempted": ["running"], "runnable": ["running"],
                 "blocked": ["runnable"], "unknown": ["running"]}  # fmt: skip
        names = ["running"]
        for _ in edges[2:]:
            names.append(str(self.dice.choice(after[names[-1]])))
        detail = [str(self.dice.choice(DETAILS[name])) for name in names]
        state = {"kind": "state", "name": names, "detail": detail, "cpu": self.dice.integers(0, 2, len(names))}
        self.making.intervals(t0_ns=edges[:-1], t1_ns=edges[1:], track=track, source="perf", **state)
        woken = edges[1:-1][np.array(names[:-1]) == "blocked"]
        who = [str(each) for each in self.dice.choice(["main", "interrupt"], len(woken))]
        self.making.instants(t_ns=woken, track=track, kind="wakeup", name="woken", detail=who)
        return edges, np.flatnonzero(np.array(names) == "running")

    def thread(self, track, scene, edges, runs):
        """Operations, which begin and end while the thread runs, and what the kernel does for it."""
        middles = (edges[runs] + edges[runs + 1]) // 2
        for place in range(0, len(middles) - 4, 5):
            outer, inner = middles[[place, place + 3]], middles[[place + 1, place + 2]]
            for depth, (t0, t1) in enumerate((outer, inner)):
                name = ("step/MatMul", "step/Add" if scene == ALONE or place % 2 else "step/Copy")[depth]
                operation = {"kind": "operation", "name": name, "detail": name[5:], "depth": [depth]}
                self.making.intervals(t0_ns=[t0], t1_ns=[t1], track=track, source="torch", **operation)
        at, begin, end = self.times(30, edges[0], edges[-1]), edges[0], edges[-1]
        at[0] = begin  # of an imported trace its first moment, which counts
        value = self.dice.choice([-11.0, 0.0, 5.0, np.nan, -1e6], 30)
        name = self.dice.choice(["futex", "read"], 30)
        self.making.intervals(t0_ns=at, t1_ns=at + 900, track=track, kind="syscall", name=name, value=value)
        self.making.intervals(t0_ns=at, t1_ns=at + 80, track=track, kind="softirq", name="rcu", cpu=np.arange(30) % 2)
        for kind, words in (("fault", ["user", "kernel"]), ("migration", ["cpu0->cpu1", "cpu1->cpu0"])):
            detail = self.dice.choice(words, 9)
            self.making.instants(t_ns=self.times(9, begin, end), track=track, kind=kind, name=kind, detail=detail)

        for name, period in (("cache-misses", 1000.0), ("minor-faults", 1.0)):
            at = self.times(40, begin, end)
            self.making.instants(t_ns=at, track=track, kind="count", name=name, value=period, source="perf")

    def readings(self, track, begin, end):
        starts = self.times(20, begin, end)[::2]
        lasts = np.minimum(60_000, np.diff([*starts, end]))
        name = np.resize(["input", "compute"], len(starts))
        self.making.intervals(t0_ns=starts, t1_ns=starts + lasts, track=track, kind="phase", name=name)
        for name, unit, source in (("llc", "B", "resctrl"), ("cycles", "", "counters"), ("busy", "", "numbers")):
            at = np.sort(np.concatenate([starts + 5, self.times(30, begin, end)]))
            for where in (track, self.cpu):
                value = self.dice.random(len(at))
                self.making.samples(t_ns=at, track=where, name=name, value=value, unit=unit, source=source)


@pytest.mark.parametrize("imported", [False, True])
def test_named_queries_answer_what_plain_loops_over_the_tables_find(tmp_path, imported):
    timeline = Made(imported).making.made()
    write(timeline, tmp_path)
    reference, found = Reference(timeline), []
    with database([TraceFolder("x", tmp_path)]) as connection:
        for name, query in named().items():
            if name == PATH:
                continue
            answer = ask(connection, query_of(name).sql, values_of(query, [])).read_pandas()
            assert len(answer) > 0 or (imported and name == "heartbeats")
            found += differences(name, answer, reference.answer(name))
    assert not found
    assert {*KEYS, PATH} == set(named())
