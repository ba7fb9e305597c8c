"""Events of a kernel as columns, whichever tracer wrote them: what its readers fill, and timelines are made from."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from castmates.timeline.importers.account import Account
from castmates.timeline.importers.lines import Columns, Ints, Words, codes, integers
from castmates.timeline.syscalls import SOFT

RUNS, SLEEPS, DISK, DEAD = range(4)  # how a thread left its CPU
IRQ, SOFTIRQ = range(2)
WAKING, WAKEUP, STARTED = range(3)  # the waker's part of a wake-up, its end on the other CPU, and a first start
BEGIN, END, COUNTER, NOTE = range(4)  # kinds of marks that programs make
_WHEN = {"n": np.int64, "t": np.int64, "cpu": np.int16}  # the place in the trace; nanoseconds; -1 for no CPU
_WHO = _WHEN | {"tid": np.int32, "comm": np.int32}
Rows = dict[str, Ints]  # of some events: these five columns, of the thread that noted them
Named = tuple[pa.Array, pa.Array]  # number and name of a thread in each event, as texts


class KernelEvents:
    """What was read so far; names are numbers in `words`."""

    def __init__(self) -> None:
        self.words, self.account = Words(), Account()
        self.switches = Columns(**_WHO, state=np.int8, next=np.int32, next_comm=np.int32)
        self.wakes = Columns(**_WHO, by=np.int32, waker=np.int32, kind=np.int8)  # cpu: where it will run; by: a name
        self.migrations = Columns(**_WHO, origin=np.int16)  # cpu: where to
        self.calls = Columns(**_WHO, name=np.int32, enters=np.bool_, value=np.float64)
        self.interrupts = Columns(**_WHEN, kind=np.int8, name=np.int32, enters=np.bool_)
        self.faults = Columns(**_WHO, name=np.int32)
        self.marks = Columns(**_WHO, kind=np.int8, name=np.int32, group=np.int32, value=np.float64)
        self.lost = Columns(**_WHEN, count=np.int64)  # -1: not counted; t: when events go on
        self.processes: dict[int, int] = {}  # of threads

    def switch(self, rows: Rows, left: Named, state: pa.Array, came: Named) -> None:
        """Threads leave CPUs to others."""
        numbers, letters = codes(state)
        states = np.array([state_of(each) for each in letters] or [0], np.int8)
        came_tid, came_comm = self._named(came).values()
        self.switches.add(**rows | self._named(left), state=states[numbers], next=came_tid, next_comm=came_comm)

    def wake(self, rows: Rows, kind: int, woken: Named, cpu: pa.Array) -> None:
        """Threads are woken, to run on a CPU; whoever notes it wakes them."""
        where = self._named(woken) | {"cpu": integers(cpu)}
        self.wakes.add(**rows | where, by=rows["comm"], waker=rows["tid"], kind=kind)

    def migrate(self, rows: Rows, moved: Named, origin: pa.Array, cpu: pa.Array) -> None:
        """Threads move from one CPU to another."""
        self.migrations.add(**rows | self._named(moved) | {"cpu": integers(cpu)}, origin=integers(origin))

    def interrupt(self, rows: Rows, kind: int, enters: bool, line: pa.Array, name: pa.Array) -> None:
        """Interrupts begin or end: by name, or by line where they have none; soft ones by their vector."""
        if kind == SOFTIRQ:
            numbers, vectors = codes(line)
            names = np.array([self.words.number(softirq_of(each)) for each in vectors] or [0], np.int64)[numbers]
        else:
            names = self.words.take(pc.if_else(pc.equal(name, ""), line, name))
        self.interrupts.add(n=rows["n"], t=rows["t"], cpu=rows["cpu"], kind=kind, name=names, enters=enters)

    def _named(self, thread: Named) -> dict[str, Ints]:
        tid, comm = thread
        return {"tid": integers(tid), "comm": self.words.take(comm)}


def state_of(letters: str) -> int:
    """How a thread left its CPU, by the letters of ftrace, perf and LTTng: S, R+, D|K, Z …; a number is LTTng's."""
    if letters.lstrip("-").isdigit():
        number = int(letters) & 0xFF
        return RUNS if number == 0 else DISK if number & 2 else DEAD if number & (16 | 32) else SLEEPS
    first = letters[:1]
    return {"R": RUNS, "D": DISK, "X": DEAD, "Z": DEAD, "x": DEAD}.get(first, SLEEPS)


def softirq_of(vector: str) -> str:
    """The name of a soft interrupt by its number, as those of perf's recordings are called."""
    number = int(vector) if vector.isdigit() else -1
    return SOFT[number] if 0 <= number < len(SOFT) else f"softirq {vector}"
