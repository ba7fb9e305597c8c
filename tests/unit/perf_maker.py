"""Makes recordings as perf writes them (perf.data), record by record, and long ones by repeating short ones."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

MEMBER, OTHER = 100, 900  # processes: a member's, and one that is nobody's
SAMPLE_TYPE = 1 << 16 | 1 << 0 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10  # identifier ip tid time cpu period raw
PLAIN_TYPE = SAMPLE_TYPE & ~(1 << 10)
FLAGS = 1 << 18 | 1 << 25 | 1 << 26  # a trailer behind every record, a chosen clock, switches
COMMON = (("common_type", "u2"), ("common_flags", "u1"), ("common_preempt_count", "u1"), ("common_pid", "i4"))
FIELDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "sched:sched_switch": (
        ("prev_comm", "S16"),
        ("prev_pid", "i4"),
        ("prev_prio", "i4"),
        ("prev_state", "i8"),
        ("next_comm", "S16"),
        ("next_pid", "i4"),
        ("next_prio", "i4"),
    ),
    "sched:sched_waking": (("comm", "S16"), ("pid", "i4"), ("prio", "i4"), ("target_cpu", "i4")),
    "sched:sched_wakeup": (("comm", "S16"), ("pid", "i4"), ("prio", "i4"), ("target_cpu", "i4")),
    "raw_syscalls:sys_enter": (("id", "i8"), ("args", "S48")),
    "raw_syscalls:sys_exit": (("id", "i8"), ("ret", "i8")),
    "irq:softirq_entry": (("vec", "u4"),),
    "irq:softirq_exit": (("vec", "u4"),),
}
EVENTS = ("dummy:uk", *FIELDS, "page-faults/period=1/")
Row = Mapping[str, object] | tuple[()]
_OUT, _PREEMPTED = 1 << 13, 1 << 14


class PerfData:
    """A recording that is being made; times are nanoseconds."""

    def __init__(self, events: tuple[str, ...] = EVENTS, start: int = 10**12, clock: int = 1) -> None:
        self.events, self.start, self.clock = events, start, clock
        self.data = bytearray()
        self.times: list[int] = []  # places of times in the data
        self.records = 0

    def sample(
        self, name: str, time: int, tid: int, cpu: int, fields: Row = (), pid: int = MEMBER, mode: int = 1
    ) -> None:
        """A sample of an event; fields that are left out are 0."""
        number = next(place for place, event in enumerate(self.events) if event.startswith(name))
        body = struct.pack("<QQIIQIIQ", 1000 + number, 0, pid, tid, self.start + time, cpu, 0, 1)
        if name in FIELDS:
            layout = np.dtype([*COMMON, *FIELDS[name]])
            row = np.zeros(1, layout)
            row["common_pid"] = tid
            for field, value in dict(fields).items():
                row[field] = value
            raw = row.tobytes()
            padding = -(len(raw) + 4) % 8
            body += struct.pack("<I", len(raw) + padding) + raw + bytes(padding)
        self._record(9, mode, body, 32)

    def switch(self, time: int, tid: int, cpu: int, out: bool, preempted: bool = False, pid: int = MEMBER) -> None:
        """Perf's own record of a switch."""
        self._record(
            14, (_OUT if out else 0) | (_PREEMPTED if preempted else 0), self._trailer(time, tid, cpu, pid), 16
        )

    def leave(self, time: int, tid: int, cpu: int, state: int, to: int, name: str = "") -> None:
        """A thread leaves its CPU to another: the scheduler's event, and a moment later perf's own record."""
        fields = {"prev_pid": tid, "prev_state": state, "next_pid": to, "next_comm": name.encode()}
        self.sample("sched:sched_switch", time, tid, cpu, fields)
        self.switch(time + 1, tid, cpu, out=True, preempted=not state)

    def wake(
        self, time: int, tid: int, cpu: int, by: int = MEMBER, pid: int = MEMBER, flags: int = 0, to: int = 0
    ) -> None:
        """A thread is woken, as the kernel reports it: twice."""
        for later, name in enumerate(("sched:sched_waking", "sched:sched_wakeup")):
            self.sample(name, time + later, by, cpu, {"pid": tid, "common_flags": flags, "target_cpu": to}, pid)

    def call(self, time: int, tid: int, cpu: int, number: int, ret: int | None = None) -> None:
        """The begin of a system call, or with `ret` its end."""
        if ret is None:
            self.sample("raw_syscalls:sys_enter", time, tid, cpu, {"id": number})
        else:
            self.sample("raw_syscalls:sys_exit", time, tid, cpu, {"id": number, "ret": ret})

    def task(self, kind: int, time: int, pid: int, parent: int, tid: int, by: int) -> None:
        """A thread begins (7) or ends (4)."""
        body = struct.pack("<IIIIQ", pid, parent, tid, by, self.start + time)
        self._record(kind, 0, body + self._trailer(time, by, 0, parent), 24, 40)

    def name(self, tid: int, name: str, pid: int = MEMBER) -> None:
        """A thread's name."""
        self._record(3, 0, struct.pack("<II16s", pid, tid, name.encode()) + self._trailer(-self.start, tid, 0, pid))

    def lost(self, time: int, cpu: int, count: int) -> None:
        """Records that a CPU's buffer had no room for."""
        self._record(2, 0, struct.pack("<QQ", 1000, count) + self._trailer(time, 0, cpu, 0), 32)

    def held_back(self, time: int, event: str) -> None:
        """The kernel holds an event back that comes too often."""
        self._record(
            5, 0, struct.pack("<QQQ", 0, 1000 + self.events.index(event), 0) + self._trailer(time, 0, 0, 0), 48
        )

    def emptied(self) -> None:
        """A mark of perf: it has read the buffers of all CPUs."""
        self._record(68, 0, b"")

    def lost_by_event(self, time: int, cpu: int, count: int) -> None:
        """What the kernel counts of one event at the end of a recording, without when they were lost."""
        self._record(13, 0, struct.pack("<Q", count) + self._trailer(time, 0, cpu, 0), 24)

    def write(self, file: Path, repeats: int = 1, period: int = 0) -> int:
        """Write the file, its records again and again, a period later each time; their number."""
        attrs, ids = b"", b""
        ids_at = 104 + 144 * len(self.events)
        for number, event in enumerate(self.events):
            attrs += self._attr(event) + struct.pack("<QQ", ids_at + 8 * number, 8)
            ids += struct.pack("<Q", 1000 + number)
        begin = ids_at + len(ids)
        size = len(self.data) * repeats
        sections = {
            1: self._formats(),
            3: _text("host"),
            4: _text("6.18"),
            5: _text("6.1"),
            6: _text("x86_64"),
            12: self._names(),
        }
        flags = sum(1 << bit for bit in sections)
        head = b"PERFILE2" + struct.pack("<8Q", 104, 144, 104, len(attrs), begin, size, 0, 0)
        head += flags.to_bytes(32, "little")
        with file.open("wb") as stream:
            stream.write(head + attrs + ids)
            self._repeated(stream, repeats, period)
            at, table, texts = begin + size + 16 * len(sections), b"", b""
            for text in sections.values():
                table += struct.pack("<QQ", at + len(texts), len(text))
                texts += text
            stream.write(table + texts)
        return self.records * repeats

    def _repeated(self, stream: BinaryIO, repeats: int, period: int, at_once: int = 2000) -> None:
        words = np.frombuffer(bytes(self.data), "<u8")
        places = np.array(self.times, np.int64) // 8
        for first in range(0, repeats, at_once):
            many = np.tile(words, (min(at_once, repeats - first), 1))
            many[:, places] += (np.arange(first, first + len(many), dtype=np.uint64) * np.uint64(period))[:, None]
            stream.write(many.tobytes())

    def _record(self, kind: int, misc: int, body: bytes, *times_at: int) -> None:
        self.times += [len(self.data) + place for place in times_at]
        self.data += struct.pack("<IHH", kind, misc, 8 + len(body)) + body
        self.records += 1

    def _trailer(self, time: int, tid: int, cpu: int, pid: int) -> bytes:
        return struct.pack("<IIQIIQ", pid, tid, self.start + time, cpu, 0, 1000)

    def _attr(self, event: str) -> bytes:
        tracepoint = event in FIELDS
        software = 2 if "fault" in event else 9 if "dummy" in event else 0
        kind, config = (2, 300 + list(FIELDS).index(event)) if tracepoint else (int(software > 0), software)
        sample = SAMPLE_TYPE if tracepoint else PLAIN_TYPE
        period = int(event.partition("period=")[2].partition("/")[0] or 1)
        attr = struct.pack("<IIQQQQQ", kind, 128, config, period, sample, 0, FLAGS)
        return attr.ljust(92, b"\0") + struct.pack("<i", self.clock) + bytes(32)

    def _names(self) -> bytes:
        parts = [struct.pack("<II", len(self.events), 128)]
        for number, event in enumerate(self.events):
            name = event.encode().ljust(64, b"\0")
            parts.append(self._attr(event) + struct.pack("<II", 1, len(name)) + name + struct.pack("<Q", 1000 + number))
        return b"".join(parts)

    def _formats(self) -> bytes:
        texts = []
        for number, (event, fields) in enumerate(FIELDS.items()):
            layout = np.dtype([*COMMON, *fields])
            lines = []
            for field in layout.names:
                kind, offset = layout.fields[field][:2]
                words = f"char {field}[{kind.itemsize}]" if kind.kind == "S" else f"int {field}"
                signed = int(kind.kind == "i")
                lines.append(f"\tfield:{words};\toffset:{offset};\tsize:{kind.itemsize};\tsigned:{signed};\n")
            lines.insert(len(COMMON), "\n")
            texts.append(f'name: {event.split(":")[1]}\nID: {300 + number}\nformat:\n{"".join(lines)}\nprint fmt: ""\n')
        return b"\x17\x08\x44tracing0.6\0" + "".join(texts).encode()


def _text(text: str) -> bytes:
    return struct.pack("<I", 64) + text.encode().ljust(64, b"\0")


def ping_pong(threads: int = 4) -> tuple[PerfData, int, int]:
    """Threads on two CPUs that take turns, by a lock: a recording to repeat, its period, and the events in it."""
    made = PerfData()
    period = 20_000 * threads
    for turn in range(threads):
        tid, other, cpu, at = MEMBER + turn, MEMBER + (turn + 2) % threads, turn % 2, 20_000 * turn
        made.switch(at, tid, cpu, out=False)
        made.call(at + 500, tid, cpu, 202, 0)
        made.sample("page-faults", at + 1000, tid, cpu, mode=2)
        made.sample("irq:softirq_entry", at + 2000, tid, cpu, {"vec": 9})
        made.sample("irq:softirq_exit", at + 2500, tid, cpu, {"vec": 9})
        made.call(at + 3000, tid, cpu, 1)
        made.call(at + 4000, tid, cpu, 1, 8)
        made.wake(at + 5000, other, cpu, by=tid, to=other % 2)
        made.call(at + 6000, tid, cpu, 202)
        made.leave(at + 7000, tid, cpu, 1, other)
    return made, period, made.records
