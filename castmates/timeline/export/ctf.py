"""A timeline in the Common Trace Format 1.8, for Trace Compass and babeltrace2.

What the kernel does has the names and fields of LTTng's kernel tracer, and what programs do those of its tracer of user
space: two traces in one folder, on one clock. Switches are made from states: between two members that run on a CPU
stands who ran instead, where that is known, and otherwise the idle thread.
"""

import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates.errors import CastmatesError
from castmates.files import make_folder, writing
from castmates.timeline.export.ctf_placed import IDLE, NAME, Placed, names_of, numbers_of, placed
from castmates.timeline.export.ctf_streams import NONE, Array, Labels, Lost, Records, Shape, Trace, metadata
from castmates.timeline.model import MONOTONIC, REALTIME, UNKNOWN, Timeline, clock_of, pairs_of, start
from castmates.timeline.syscalls import SOFT

PROGRAM_CONTEXT = (("vpid", "<i4"), ("vtid", "<i4"), ("procname", f"S{NAME}"))
PROVIDER = "castmates"
BEYOND = 1 << 23  # tracks that are no threads have numbers from here: no thread has a larger one
ENDS, BEGINS = 0, 1  # at the same moment what ends comes first


def program_records(timeline: Timeline, placed: Placed) -> Sequence[Records]:
    """All events, in any order; what the kernel does is among them where it has no CPU."""
    return [
        *_intervals(timeline, placed.intervals_left),
        *_instants(timeline, placed.instants_left),
        *_samples(timeline),
    ]


def _intervals(timeline: Timeline, rows: Array) -> Iterator[Records]:
    table = timeline.intervals[rows]
    for kind in _kinds(table):
        own = table[table["kind"] == kind]
        context = _context(timeline, own["track"].to_numpy())
        name, detail = _labels(own, "name"), _labels(own, "detail")
        row, depth = np.arange(len(own)), own["depth"].to_numpy()
        empty = (own["t0_ns"] == own["t1_ns"]).to_numpy()
        columns = context | {"name": name[1], "detail": detail[1], "value": own["value"].to_numpy()}
        # Of what begins at a moment the outermost comes first, and of what ends the innermost; an interval without a
        # length ends right after it began.
        begin = (depth << 40) + 2 * row + LATER * ~empty
        yield Records(
            Shape(f"{PROVIDER}:{_word(kind)}_begin", (("name", name[0]), ("detail", detail[0]), ("value", "<f8"))),
            own["t0_ns"].to_numpy(),
            np.full(len(own), BEGINS),
            begin,
            columns,
        )
        yield Records(
            Shape(f"{PROVIDER}:{_word(kind)}_end", (("name", name[0]),)),
            own["t1_ns"].to_numpy(),
            np.where(empty, BEGINS, ENDS),
            np.where(empty, begin + 1, (-depth << 40) + row),
            columns,
        )


def _instants(timeline: Timeline, rows: Array) -> Iterator[Records]:
    table = timeline.instants[rows]
    for kind in _kinds(table):
        own = table[table["kind"] == kind]
        name, detail = _labels(own, "name"), _labels(own, "detail")
        columns = _context(timeline, own["track"].to_numpy()) | {"name": name[1], "detail": detail[1]}
        yield Records(
            Shape(f"{PROVIDER}:{_word(kind)}", (("name", name[0]), ("detail", detail[0]), ("value", "<f8"))),
            own["t_ns"].to_numpy(),
            np.full(len(own), BEGINS),
            np.arange(len(own)),
            columns | {"value": own["value"].to_numpy()},
        )


def _samples(timeline: Timeline) -> Iterator[Records]:
    own = timeline.samples
    name, unit = _labels(own, "name"), _labels(own, "unit")
    yield Records(
        Shape(f"{PROVIDER}:sample", (("name", name[0]), ("value", "<f8"), ("unit", unit[0]))),
        own["t_ns"].to_numpy(),
        np.full(len(own), BEGINS),
        np.arange(len(own)),
        _context(timeline, own["track"].to_numpy())
        | {"name": name[1], "unit": unit[1], "value": own["value"].to_numpy()},
    )


def _kinds(table: pd.DataFrame) -> list[str]:
    return list(table["kind"].cat.remove_unused_categories().cat.categories)


def _word(kind: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in kind)


def _labels(table: pd.DataFrame, column: str) -> tuple[Labels, Array]:
    """The words of a column as an enumeration, and the number of each row's."""
    words = table[column].cat.remove_unused_categories()
    return Labels(column, list(words.cat.categories) or [""]), words.cat.codes.to_numpy()


def _context(timeline: Timeline, track: Array) -> dict[str, Array]:
    """The thread of each row, or a number beyond those of threads."""
    tracks = timeline.tracks
    own = tracks["track"].to_numpy() + BEYOND
    tid = np.where(tracks["tid"].isna(), own, numbers_of(tracks["tid"]))
    pid = np.where(tracks["pid"].isna(), tid, numbers_of(tracks["pid"]))
    names = names_of(tracks)
    return {"c_vtid": tid[track], "c_vpid": pid[track], "c_procname": names[track]}


MARK = "castmates"  # in the environment of a trace: a folder with it is ours, and may be replaced
NAMES = {MONOTONIC: "monotonic", REALTIME: "realtime", UNKNOWN: "unknown"}  # of clocks, as LTTng has them


def write(timeline: Timeline, folder: Path) -> None:
    """Write the folder; it replaces one that this wrote before, and no other."""
    refuse_foreign(folder)
    make_folder(folder.parent)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}@{platform.node()}")
    with writing(folder):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            _write_traces(timeline, temporary)
            if folder.exists():
                shutil.rmtree(folder)
            temporary.rename(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def refuse_foreign(folder: Path) -> None:
    """Refuse to replace what this did not write."""
    if not folder.exists():
        return
    marked = any(f"{MARK} =" in _text(file) for file in folder.glob("*/metadata")) if folder.is_dir() else False
    if not marked and not (folder.is_dir() and not any(folder.iterdir())):
        raise CastmatesError(f"{folder} is there already, and no trace that Castmates wrote; give another --output.")


def _text(file: Path) -> str:
    return file.read_bytes()[: 1 << 16].decode("utf-8", "replace")


def _write_traces(timeline: Timeline, folder: Path) -> None:
    folder.mkdir(parents=True)
    about = timeline.about
    common = {MARK: str(about.get("versions", {}).get("castmates", "")), "hostname": str(about.get("host", "unknown"))}
    kernel, rows, lost = Trace(folder / "kernel", CONTEXT), placed(timeline), _lost(timeline)
    for cpu, records in kernel_streams(timeline, rows):
        kernel.stream(f"channel0_{cpu}", cpu, records, lost.get(cpu, NONE))
    _finish(kernel, timeline, common | {"domain": "kernel", "sysname": "Linux", "tracer_name": "lttng-modules"})
    programs = Trace(folder / "ust", PROGRAM_CONTEXT)
    programs.stream("channel0", 0, program_records(timeline, rows))
    _finish(programs, timeline, common | {"domain": "ust", "tracer_name": "lttng-ust"})


def _lost(timeline: Timeline) -> dict[int, Lost]:
    """By CPU: when events were lost, and how many; 1 where it is not known how many."""
    own = timeline.instants[(timeline.instants["kind"] == "lost") & timeline.instants["cpu"].notna()]
    counts = own["value"].fillna(1).clip(lower=1).to_numpy(np.int64)
    cpu, t = numbers_of(own["cpu"]), own["t_ns"].to_numpy()
    return {number: (t[cpu == number], counts[cpu == number]) for number in np.unique(cpu).tolist()}


def _finish(trace: Trace, timeline: Timeline, env: dict[str, str]) -> None:
    """Write the metadata last; a trace without events is no trace."""
    if not trace.shapes:
        shutil.rmtree(trace.folder)
        return
    numbers: dict[str, str | int] = {**env, "tracer_major": 2, "tracer_minor": 13, "tracer_patchlevel": 0}
    clock, offset = _clock(timeline)
    (trace.folder / "metadata").write_text(metadata(trace, numbers, clock, offset), encoding="utf-8")


def _clock(timeline: Timeline) -> tuple[str, int]:
    """The clock's name, and what has to be added to it for the time of day."""
    clock = clock_of(timeline.about)
    if clock == REALTIME:
        return NAMES[clock], 0
    own, real = pairs_of(timeline.about, 0)[0]
    return NAMES[clock], 0 if real is None else real - own


# What the kernel does, as events of LTTng's kernel tracer, CPU by CPU.

CONTEXT = (("tid", "<i4"), ("pid", "<i4"), ("procname", f"S{NAME}"))
PRIORITY = 20  # of usual threads: priorities are not recorded
# The order of what happens on a CPU at one moment: what ends, who is woken, the switch, what begins.
FIRST, _KERNEL_ENDS, WAKES, SWITCHES, _KERNEL_BEGINS = range(5)
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


def kernel_streams(timeline: Timeline, placed: Placed) -> Iterator[tuple[int, Sequence[Records]]]:
    """Yield each CPU with its events."""
    kernel = _Kernel(timeline, placed)
    for cpu in placed.cpus():
        yield cpu, kernel.records(cpu)


class _Kernel:
    """The events of a timeline, CPU by CPU."""

    def __init__(self, timeline: Timeline, placed: Placed) -> None:
        tracks = timeline.tracks
        self._begin = start(timeline)
        self._placed, self._who = placed, placed.threads.who
        self._tid, self._comm = placed.threads.tid, placed.threads.comm
        self._others = np.array([name.encode()[: NAME - 1] for name in placed.switches.others], f"S{NAME}")
        self._threads = np.flatnonzero((self._tid >= 0) & (tracks["kind"] == "thread").to_numpy())
        self._first = min(placed.cpus(), default=0)
        names = placed.calls["name"].cat.remove_unused_categories()
        self._names = list(names.cat.categories)
        self._enters, self._leaves = (_grouped(cpu, names.cat.codes.to_numpy()) for cpu in (placed.begins, placed.ends))

    def records(self, cpu: int) -> Sequence[Records]:
        """The events of a CPU."""
        dump = [self._dump()] if cpu == self._first else []
        own = [*dump, *self._interrupted(cpu), *self._happened(cpu)]
        return [self._switched(cpu), *self._called(cpu), *(self._in_thread(cpu, each) for each in own)]

    def _in_thread(self, cpu: int, records: Records) -> Records:
        """Events in the thread that runs on the CPU then."""
        if "c_tid" in records.columns:
            return records
        own = self._placed.switches.on(cpu)
        place = np.searchsorted(own["t"], records.t, "right") - 1
        who = own["next"][np.maximum(place, 0)] if len(own) else np.full(len(records.t), IDLE)
        return replace(records, columns={**records.columns, **self._on_cpu(np.where(place >= 0, who, IDLE))})

    def _on_cpu(self, who: Array) -> dict[str, Array]:
        return self._placed.threads.on_cpu(who, self._others)

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
        own = self._placed.switches.on(cpu)
        before, after = (self._on_cpu(own[side]) for side in ("prev", "next"))
        columns: dict[str, Any] = {
            "prev_comm": before["c_procname"],
            "prev_tid": before["c_tid"],
            "prev_state": own["state"],
        }
        columns |= {"next_comm": after["c_procname"], "next_tid": after["c_tid"]}
        columns |= {"prev_prio": PRIORITY, "next_prio": PRIORITY, **before}
        return Records(SWITCH, own["t"], np.full(len(own), SWITCHES), np.arange(len(own)), columns)

    def _called(self, cpu: int) -> Iterator[Records]:
        for code, name in enumerate(self._names):
            enter, leave = (rows.get((cpu, code), np.empty(0, np.int64)) for rows in (self._enters, self._leaves))
            table = self._placed.calls.iloc[enter]
            empty = (table["t0_ns"] == table["t1_ns"]).to_numpy()
            yield Records(
                Shape(f"syscall_entry_{name}"),
                table["t0_ns"].to_numpy(),
                np.full(len(table), _KERNEL_BEGINS),
                2 * enter + LATER * ~empty,
                self._who(table["track"].to_numpy()),
            )
            table = self._placed.calls.iloc[leave]
            empty = (table["t0_ns"] == table["t1_ns"]).to_numpy()
            value = np.nan_to_num(table["value"].to_numpy()).astype(np.int64)
            yield Records(
                Shape(f"syscall_exit_{name}", (("ret", "<i8"),)),
                table["t1_ns"].to_numpy(),
                np.where(empty, _KERNEL_BEGINS, _KERNEL_ENDS),
                2 * leave + 1,
                self._who(table["track"].to_numpy()) | {"ret": value},
            )

    def _interrupted(self, cpu: int) -> Iterator[Records]:
        for kind, entry, leave in (("irq", IRQ_ENTRY, IRQ_EXIT), ("softirq", SOFTIRQ_ENTRY, SOFTIRQ_EXIT)):
            own = self._placed.irqs
            own = own[(own["kind"] == kind) & (own["cpu"] == cpu)]
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
            yield Records(entry, own["t0_ns"].to_numpy(), np.full(len(own), _KERNEL_BEGINS), begin, columns)
            within = np.where(empty, begin + 1, (-depth << 40) + row)
            yield Records(
                leave, own["t1_ns"].to_numpy(), np.where(empty, _KERNEL_BEGINS, _KERNEL_ENDS), within, columns
            )

    def _happened(self, cpu: int) -> Iterator[Records]:
        here = self._placed.at == cpu
        own, wakers = self._placed.moments[here], self._placed.wakers[here]
        kinds, details = own["kind"].astype(str).to_numpy(), own["detail"].astype(str).to_numpy()
        started, kernel = (own["name"] == "started").to_numpy(), details == "kernel"
        for kind, second, shapes in (
            ("wakeup", started, (WAKING, STARTED)),
            ("migration", np.zeros(len(own), bool), (MIGRATE,)),
            ("fault", kernel, tuple(FAULTS.values())),
        ):
            for number, shape in enumerate(shapes):
                chosen = (kinds == kind) & (second == bool(number))
                yield self._moment(shape, own[chosen], wakers[chosen])

    def _moment(self, shape: Shape, table: pd.DataFrame, wakers: pd.DataFrame) -> Records:
        track = table["track"].to_numpy()
        columns: dict[str, Any] = {"comm": self._comm[track], "tid": self._tid[track], "prio": PRIORITY}
        if shape is MIGRATE:
            path = table["detail"].astype(str).str.extract(r"cpu(\d+)->cpu(\d+)").fillna("0").astype(int)
            columns |= {"orig_cpu": path[0].to_numpy(), "dest_cpu": path[1].to_numpy()}
        elif shape in FAULTS.values():
            columns |= self._who(track)
        else:
            columns |= {name: wakers[name].to_numpy() for name in ("c_tid", "c_pid")}
            columns["c_procname"] = wakers["c_procname"].to_numpy(f"S{NAME}")
            columns["target_cpu"] = np.maximum(numbers_of(table["cpu"]), 0)
        rank = _KERNEL_BEGINS if shape in FAULTS.values() else WAKES
        return Records(shape, table["t_ns"].to_numpy(), np.full(len(table), rank), np.arange(len(table)), columns)


def _grouped(cpu: Array, name: Array) -> dict[tuple[int, int], Array]:
    """The rows of each CPU and name, in order."""
    order = np.lexsort((name, cpu))
    first = np.flatnonzero(np.r_[True, (np.diff(cpu[order]) != 0) | (np.diff(name[order]) != 0)]) if len(cpu) else order
    parts = np.split(order, first[1:]) if len(cpu) else []
    return {(int(cpu[rows[0]]), int(name[rows[0]])): rows for rows in parts}
