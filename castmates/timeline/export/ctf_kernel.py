"""What the kernel does, as events of LTTng's kernel tracer, CPU by CPU."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from castmates.timeline.export.ctf_streams import Array, Records, Shape
from castmates.timeline.export.ctf_switches import FOREIGN, IDLE, Switches, switches_of
from castmates.timeline.model import Timeline
from castmates.timeline.perf.moments import SOFT
from castmates.timeline.span import start

NAME = 16  # bytes of a thread's name, the last of them zero
CONTEXT = (("tid", "<i4"), ("pid", "<i4"), ("procname", f"S{NAME}"))
IN_KERNEL = frozenset({"state", "syscall", "irq", "softirq"})
INSTANTS_IN_KERNEL = frozenset({"wakeup", "migration", "fault"})
PRIORITY = 20  # of usual threads: priorities are not recorded
# The order of what happens on a CPU at one moment: what ends, who is woken, the switch, what begins.
FIRST, ENDS, WAKES, SWITCHES, BEGINS = range(5)
LATER = 1 << 39  # of what begins at a moment, what ends at the same moment comes before the rest
_TASK = (("comm", f"S{NAME}"), ("tid", "<i4"), ("prio", "<i4"))
SWITCH = Shape(
    "sched_switch",
    (
        ("prev_comm", f"S{NAME}"),
        ("prev_tid", "<i4"),
        ("prev_prio", "<i4"),
        ("prev_state", "<i8"),
        ("next_comm", f"S{NAME}"),
        ("next_tid", "<i4"),
        ("next_prio", "<i4"),
    ),
)
WAKING = Shape("sched_waking", (*_TASK, ("target_cpu", "<i4")))
STARTED = Shape("sched_wakeup_new", (*_TASK, ("target_cpu", "<i4")))
MIGRATE = Shape("sched_migrate_task", (*_TASK, ("orig_cpu", "<i4"), ("dest_cpu", "<i4")))
IRQ_ENTRY = Shape("irq_handler_entry", (("irq", "<i4"), ("name", "S32")))
IRQ_EXIT = Shape("irq_handler_exit", (("irq", "<i4"), ("ret", "<i4")))
SOFTIRQ_ENTRY, SOFTIRQ_EXIT = (Shape(f"irq_softirq_{end}", (("vec", "<u4"),)) for end in ("entry", "exit"))
FAULT_FIELDS = (("address", "<u8"), ("ip", "<u8"), ("error_code", "<u8"))
FAULTS = {who: Shape(f"x86_exceptions_page_fault_{who}", FAULT_FIELDS) for who in ("user", "kernel")}
DUMP = Shape(
    "lttng_statedump_process_state",
    (
        *((name, "<i4") for name in ("tid", "vtid", "pid", "vpid", "ppid", "vppid")),
        ("name", f"S{NAME}"),
        *((name, "<i4") for name in ("type", "mode", "submode", "status", "ns_level")),
    ),
)


def kernel_streams(timeline: Timeline) -> Iterator[tuple[int, Sequence[Records]]]:
    """Yield each CPU with its events."""
    kernel = _Kernel(timeline)
    for cpu in kernel.cpus():
        yield cpu, kernel.records(cpu)


def numbers_of(cells: pd.Series) -> Array:
    """Numbers without gaps: -1 where there is none."""
    numbers: Array = cells.fillna(-1).to_numpy(np.int64)
    return numbers


class _Kernel:
    """The events of a timeline, with the CPU of each."""

    def __init__(self, timeline: Timeline) -> None:
        tracks, rows = timeline.tracks, timeline.intervals
        self._begin = start(timeline)
        self._tid, self._pid = numbers_of(tracks["tid"]), numbers_of(tracks["pid"])
        self._comm = np.array([str(name).encode()[: NAME - 1] for name in tracks["name"]] or [b""], f"S{NAME}")
        known = self._tid >= 0
        of_thread = known[rows["track"].to_numpy()] if len(rows) else np.empty(0, bool)
        self._switches: Switches = switches_of(timeline, rows[(rows["kind"] == "state") & of_thread])
        self._calls = rows[(rows["kind"] == "syscall") & of_thread]
        self._irqs = rows[rows["kind"].isin(["irq", "softirq"]) & rows["cpu"].notna()]
        moments = timeline.instants
        there = known[moments["track"].to_numpy()] if len(moments) else np.empty(0, bool)
        self._moments = moments[moments["kind"].isin(INSTANTS_IN_KERNEL) & there]
        self._threads = np.flatnonzero(known & (tracks["kind"] == "thread").to_numpy())
        self._places = self._where_calls()
        self._cpus = self._found()

    def cpus(self) -> list[int]:
        """Those on which anything happened."""
        return self._cpus

    def _found(self) -> list[int]:
        numbers = [self._switches.cpu, *self._places, numbers_of(self._irqs["cpu"]), self._at(self._moments)]
        return sorted(set(np.concatenate(numbers).tolist()))

    def _at(self, table: pd.DataFrame) -> Array:
        found: Array = np.maximum(numbers_of(table["cpu"]), 0)
        return found

    def _where_calls(self) -> tuple[Array, Array]:
        """The CPUs on which calls begin and end: a thread may return on another one."""
        track, given = self._calls["track"].to_numpy(), self._at(self._calls)
        return (
            self._switches.cpu_at(track, self._calls["t0_ns"].to_numpy(), given, False),
            self._switches.cpu_at(track, self._calls["t1_ns"].to_numpy(), given, True),
        )

    def records(self, cpu: int) -> Sequence[Records]:
        """The events of a CPU."""
        dump = [self._dump()] if cpu == self._cpus[0] else []
        own = [*dump, *self._interrupted(cpu), *self._happened(cpu)]
        return [self._switched(cpu), *self._called(cpu), *(self._in_thread(cpu, each) for each in own)]

    def _in_thread(self, cpu: int, records: Records) -> Records:
        """Events in the thread that runs on the CPU then."""
        if "c_tid" in records.columns:
            return records
        own = self._switches.on(cpu)
        place = np.searchsorted(own.t, records.t, "right") - 1
        who = own.next[np.maximum(place, 0)] if len(own.t) else np.full(len(records.t), IDLE)
        tid, comm = self._task(np.where(place >= 0, who, IDLE))
        return replace(records, columns={**records.columns, "c_tid": tid, "c_pid": tid, "c_procname": comm})

    def _who(self, track: Array) -> dict[str, Array]:
        tid = self._tid[track]
        return {
            "c_tid": tid,
            "c_pid": np.where(self._pid[track] >= 0, self._pid[track], tid),
            "c_procname": self._comm[track],
        }

    def _dump(self) -> Records:
        """All threads with their processes, at the beginning."""
        own, zero = self._threads, np.zeros(len(self._threads), np.int64)
        who = self._who(own)
        columns = {
            "tid": who["c_tid"],
            "vtid": who["c_tid"],
            "pid": who["c_pid"],
            "vpid": who["c_pid"],
            "name": self._comm[own],
        }
        return Records(DUMP, zero + self._begin, zero + FIRST, np.arange(len(own)), columns)

    def _switched(self, cpu: int) -> Records:
        own = self._switches.on(cpu)
        before, after = (self._task(each) for each in (own.prev, own.next))
        columns = {"prev_comm": before[1], "prev_tid": before[0], "prev_state": own.state, "prev_prio": PRIORITY}
        columns |= {"next_comm": after[1], "next_tid": after[0], "next_prio": PRIORITY}
        columns |= {"c_tid": before[0], "c_pid": before[0], "c_procname": before[1]}
        return Records(SWITCH, own.t, np.full(len(own.t), SWITCHES), np.arange(len(own.t)), columns)

    def _task(self, who: Array) -> tuple[Array, Array]:
        """Number and name of a thread by its track; what is not a track is the idle thread or another program."""
        foreign = np.array([name.encode()[: NAME - 1] for name in self._switches.others], f"S{NAME}")
        is_track = who >= 0
        other = np.where(is_track, 0, -who - 1)
        tid = np.where(is_track, self._tid[np.maximum(who, 0)], np.where(other == 0, 0, FOREIGN + other))
        return tid, np.where(is_track, self._comm[np.maximum(who, 0)], foreign[other])

    def _called(self, cpu: int) -> Iterator[Records]:
        table, (begins, ends) = self._calls, self._places
        empty = (table["t0_ns"] == table["t1_ns"]).to_numpy()
        row = np.arange(len(table))
        for name in table["name"].cat.remove_unused_categories().cat.categories:
            called = (table["name"] == name).to_numpy()
            enter, leave = called & (begins == cpu), called & (ends == cpu)
            who = self._who(table["track"].to_numpy())
            yield Records(
                Shape(f"syscall_entry_{name}"),
                table["t0_ns"].to_numpy()[enter],
                np.full(int(enter.sum()), BEGINS),
                2 * row[enter] + LATER * ~empty[enter],
                {key: column[enter] for key, column in who.items()},
            )
            value = np.nan_to_num(table["value"].to_numpy()[leave]).astype(np.int64)
            yield Records(
                Shape(f"syscall_exit_{name}", (("ret", "<i8"),)),
                table["t1_ns"].to_numpy()[leave],
                np.where(empty[leave], BEGINS, ENDS),
                2 * row[leave] + 1,
                {key: column[leave] for key, column in who.items()} | {"ret": value},
            )

    def _interrupted(self, cpu: int) -> Iterator[Records]:
        for kind, entry, leave in (("irq", IRQ_ENTRY, IRQ_EXIT), ("softirq", SOFTIRQ_ENTRY, SOFTIRQ_EXIT)):
            own = self._irqs[(self._irqs["kind"] == kind) & (self._irqs["cpu"] == cpu)]
            names = own["name"].cat.remove_unused_categories()
            words = list(names.cat.categories)
            numbers = [
                SOFT.index(word) if kind == "softirq" and word in SOFT else place for place, word in enumerate(words)
            ]
            number = np.array(numbers or [0])[names.cat.codes.to_numpy()]
            columns: dict[str, Any] = {"irq": number, "vec": number, "ret": 1}
            columns["name"] = np.array([word.encode()[:31] for word in words] or [b""], "S32")[
                names.cat.codes.to_numpy()
            ]
            row, depth = np.arange(len(own)), own["depth"].to_numpy()
            empty = (own["t0_ns"] == own["t1_ns"]).to_numpy()
            begin = (depth << 40) + 2 * row + LATER * ~empty
            yield Records(entry, own["t0_ns"].to_numpy(), np.full(len(own), BEGINS), begin, columns)
            within = np.where(empty, begin + 1, (-depth << 40) + row)
            yield Records(leave, own["t1_ns"].to_numpy(), np.where(empty, BEGINS, ENDS), within, columns)

    def _happened(self, cpu: int) -> Iterator[Records]:
        own = self._moments[self._at(self._moments) == cpu]
        for kind, shapes in (
            ("wakeup", (WAKING, STARTED)),
            ("migration", (MIGRATE,)),
            ("fault", tuple(FAULTS.values())),
        ):
            table = own[own["kind"] == kind]
            words = table["name" if kind == "wakeup" else "detail"].astype(str).to_numpy()
            which = {"wakeup": words == "started", "fault": words == "kernel"}.get(kind, np.zeros(len(table), bool))
            for number, shape in enumerate(shapes):
                yield self._moment(shape, table[which == bool(number)], cpu)

    def _moment(self, shape: Shape, table: pd.DataFrame, cpu: int) -> Records:
        track = table["track"].to_numpy()
        columns: dict[str, Any] = {
            "comm": self._comm[track],
            "tid": self._tid[track],
            "prio": PRIORITY,
            "target_cpu": cpu,
        }
        if shape is MIGRATE:
            path = table["detail"].astype(str).str.extract(r"cpu(\d+)->cpu(\d+)").fillna("0").astype(int)
            columns |= {"orig_cpu": path[0].to_numpy(), "dest_cpu": path[1].to_numpy()}
        if shape in FAULTS.values():
            columns |= self._who(track)
        rank = BEGINS if shape in FAULTS.values() else WAKES
        return Records(shape, table["t_ns"].to_numpy(), np.full(len(table), rank), np.arange(len(table)), columns)
