"""How kernel versions differ in what resctrl answers."""

import errno
import os
import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Kernel:
    """The ways of one version."""

    name: str
    pads_values: bool  # schemata in columns: masks "00f", bandwidth " 50"; otherwise "f" and "50"
    tells_sparse: bool  # has info/L3/sparse_masks
    knows_debug: bool  # the mount option that shows every group's CLOSID and RMID
    renames: bool  # a monitoring group can be renamed and moved to another control group
    task_lists: bool  # "12,13" in one write to tasks, a text for each refusal; an empty write is no error
    rmid_first: bool  # mkdir takes an RMID before a CLOSID
    limbo_for_all: bool  # every freed RMID waits for the limbo worker, also one that has nothing in the cache
    clears_on_cpus: bool  # a write to cpus or cpus_list begins a new last_cmd_status; otherwise it appends
    clears_on_mkdir: bool
    mkdir_in_info: int  # errno
    cuts_mbps: bool = False  # MiB/s are rounded up to the step of per cent and cut to 32 bits (before 2b5648416e47)
    forgets_lost_counts: bool = True  # of ids that the hardware does not track any more (since 15292f1b4c55)
    assigns_counters: bool = False  # has mbm_assign_mode, where the hardware has such counters
    allocates_io: bool = False  # has io_alloc, where the hardware has it
    knows_clusters: bool = True  # sub-NUMA nodes have folders, and mon_L3_* is their sum; else it is the first one's


V6_1 = Kernel(
    name="6.1",
    pads_values=True,
    tells_sparse=False,
    knows_debug=False,
    renames=False,
    task_lists=False,
    rmid_first=True,
    limbo_for_all=False,
    clears_on_cpus=False,
    clears_on_mkdir=False,
    mkdir_in_info=errno.EPERM,
    knows_clusters=False,
)
V6_1_90 = replace(V6_1, name="6.1.90", cuts_mbps=True, forgets_lost_counts=False)  # by the sources
V6_12 = Kernel(
    name="6.12",
    pads_values=True,
    tells_sparse=True,
    knows_debug=True,
    renames=True,
    task_lists=True,
    rmid_first=False,
    limbo_for_all=True,
    clears_on_cpus=False,
    clears_on_mkdir=False,
    mkdir_in_info=errno.EPERM,
)
V7_2 = Kernel(
    name="7.2",
    pads_values=False,
    tells_sparse=True,
    knows_debug=True,
    renames=True,
    task_lists=True,
    rmid_first=False,
    limbo_for_all=True,
    clears_on_cpus=True,
    clears_on_mkdir=True,
    mkdir_in_info=errno.ENODEV,
    assigns_counters=True,
    allocates_io=True,
)


# The machine's processes and threads, as far as resctrl knows them: who has which CLOSID and RMID.


@dataclass(eq=False, slots=True)
class Thread:
    """One thread; a process's first thread has its pid."""

    tid: int
    pid: int
    uid: int
    gid: int
    closid: int = 0
    rmid: int = 0


class Processes:
    """All of them; init (1) and kthreadd (2) are there from the beginning."""

    def __init__(self) -> None:
        self._threads: dict[int, dict[int, Thread]] = {}  # pid -> tid -> thread, in the order of their births
        for pid in (1, 2):
            self._threads[pid] = {pid: Thread(pid, pid, 0, 0)}

    def fork(self, parent: int = 1, pid: int | None = None, uid: int | None = None) -> int:
        """Begin a process that inherits its parent thread's groups, and its user unless one is given."""
        born = self._inherit(parent, self._number(pid), uid)
        born.pid = born.tid
        self._threads[born.pid] = {born.tid: born}
        return born.pid

    def clone(self, creator: int, tid: int | None = None) -> int:
        """Begin a thread in the process of the one that creates it, whose groups it inherits."""
        born = self._inherit(creator, self._number(tid), None)
        self._threads[born.pid][born.tid] = born
        return born.tid

    def exit(self, tid: int) -> None:
        """End a thread; a process ends with all its threads when it is its first one."""
        thread = self.thread(tid)
        if thread.tid == thread.pid:
            del self._threads[thread.pid]
        else:
            del self._threads[thread.pid][tid]

    def thread(self, tid: int) -> Thread:
        """Find a thread by its number."""
        thread = next((threads[tid] for threads in self._threads.values() if tid in threads), None)
        if thread is None:
            raise refusal(errno.ESRCH)
        return thread

    def threads(self, pid: int) -> list[int]:
        """Name the threads of a process: /proc/<pid>/task."""
        if pid not in self._threads:
            raise refusal(errno.ENOENT)
        return list(self._threads[pid])

    def __iter__(self) -> Iterator[Thread]:
        return (thread for threads in self._threads.values() for thread in threads.values())

    def _inherit(self, parent: int, tid: int, uid: int | None) -> Thread:
        source = self.thread(parent)
        user, group = (source.uid, source.gid) if uid is None else (uid, uid)
        return Thread(tid, source.pid, user, group, source.closid, source.rmid)

    def _number(self, wanted: int | None) -> int:
        tids = {thread.tid for thread in self}
        if wanted is None:
            return max(tids) + 1
        if wanted in tids:
            raise refusal(errno.EEXIST)
        return wanted


# info/last_cmd_status: the kernel's verdict on the last command of any process.

ROOM = 512  # bytes of its buffer


class Status:
    """A buffer that commands clear, or add to, and that takes no more once something did not fit."""

    def __init__(self) -> None:
        self._text = ""
        self._full = False

    def clear(self) -> None:
        """Begin a new command."""
        self._text, self._full = "", False

    def say(self, text: str) -> None:
        """Add a line."""
        line = text + "\n"
        if self._full or len((self._text + line).encode("utf-8", "surrogateescape")) >= ROOM:
            self._full = True
        else:
            self._text += line

    def show(self) -> str:
        """Return the text of the file."""
        return self._text or "ok\n"


# The kernel's own ways of reading and writing numbers and sets of CPUs, errno by errno.

BLANKS = " \t\n\v\f\r"
_DIGITS = {8: string.octdigits, 10: string.digits, 16: string.hexdigits}


def refusal(number: int) -> OSError:
    """Return what a system call fails with."""
    return OSError(number, os.strerror(number))


def c_string(data: bytes) -> str:
    """Read what was written up to its first NUL."""
    return data.decode("utf-8", "surrogateescape").split("\0", 1)[0]


def strip(text: str) -> str:
    """Take blanks off both ends: strim()."""
    return text.strip(BLANKS)


def unsigned(text: str, base: int, bits: int = 64) -> int:
    """Read a number as kstrtoul and its like do; base 0 takes it from the prefix."""
    number = _magnitude(text.removeprefix("+"), base)
    if number >> bits:
        raise refusal(errno.ERANGE)
    return number


def signed(text: str, base: int, bits: int = 32) -> int:
    """Read a number as kstrtoint does."""
    minus = text.startswith("-")
    number = _magnitude(text[1:] if minus else text.removeprefix("+"), base)
    if number > (1 << bits - 1) - (not minus):
        raise refusal(errno.ERANGE)
    return -number if minus else number


def _magnitude(text: str, base: int) -> int:
    hexadecimal = text[:2] in ("0x", "0X")
    if base == 0:
        base = 10 if not text.startswith("0") else 16 if hexadecimal and text[2:3] in string.hexdigits else 8
    if base == 16 and hexadecimal:
        text = text[2:]
    digits = re.match(f"[{_DIGITS[base]}]*", text)
    assert digits is not None
    if not digits[0]:
        raise refusal(errno.EINVAL)
    if int(digits[0], base) >> 64:
        raise refusal(errno.ERANGE)
    if text[digits.end() :] not in ("", "\n"):
        raise refusal(errno.EINVAL)
    return int(digits[0], base)


_NUMBER = r"(N|\d+)"
_REGION = re.compile(rf"(?:(?i:all)|{_NUMBER}-{_NUMBER})(?::{_NUMBER}/{_NUMBER})?|{_NUMBER}(?=[{BLANKS},]|$)", re.ASCII)


def parse_cpu_list(text: str, possible: int) -> frozenset[int]:
    """Read "0-3,8", with the steps ("0-7:1/2") and words ("all", "N") that the kernel knows too."""
    cpus: set[int] = set()
    position = 0
    while True:
        while text[position : position + 1] and text[position] in BLANKS + ",":
            position += 1
        if position == len(text):
            return frozenset(cpus)
        region = _REGION.match(text, position)
        if region is None:
            raise refusal(errno.EINVAL)
        cpus |= _region(region, possible)
        position = region.end()
        follows = text[position : position + 1]
        if not follows or follows == "\n":
            return frozenset(cpus)
        if follows not in BLANKS + ",":
            raise refusal(errno.EINVAL)


def _region(region: re.Match[str], possible: int) -> set[int]:
    first, last, used, step, single = (None if text is None else _cpu(text, possible) for text in region.groups())
    if single is not None:
        first = last = single
    first, last = (0 if first is None else first), (possible - 1 if last is None else last)
    used, step = (last + 1 if used is None else used), (last + 1 if step is None else step)
    if first > last or step == 0 or used > step:
        raise refusal(errno.EINVAL)
    if last >= possible:
        raise refusal(errno.ERANGE)
    return {cpu for start in range(first, last + 1, step) for cpu in range(start, min(start + used, last + 1))}


def _cpu(text: str, possible: int) -> int:
    if text == "N":
        return possible - 1
    if int(text) >> 32:
        raise refusal(errno.EOVERFLOW)
    return int(text)


def parse_cpu_mask(text: str, possible: int) -> frozenset[int]:
    """Read "ff,00000003": groups of 32 bits in hex, the highest first."""
    bits = 0
    words = [word for word in re.split(f"[{BLANKS},]+", text.split("\n", 1)[0]) if word]
    for place, word in enumerate(reversed(words)):
        if 32 * place >= possible:
            raise refusal(errno.EOVERFLOW)
        tail = word[-8:]
        if not set(tail) <= set(string.hexdigits):
            raise refusal(errno.EINVAL)
        if len(word) > 8 and word[-9] in string.hexdigits:
            raise refusal(errno.EOVERFLOW)
        if len(word) > 8:
            raise refusal(errno.EINVAL)
        bits |= int(tail, 16) << 32 * place
    if bits >> possible:
        raise refusal(errno.EOVERFLOW)
    return frozenset(cpu for cpu in range(possible) if bits >> cpu & 1)


def show_cpu_list(cpus: Iterable[int]) -> str:
    """Write CPUs as "0-3,8"."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(str(cpu) for cpu in run) for run in runs)


def show_cpu_mask(cpus: Iterable[int], possible: int) -> str:
    """Write CPUs in groups of 32 bits, as wide as all possible CPUs need."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = []
    for low in range(0, possible, 32):
        width = (min(32, possible - low) + 3) // 4
        words.append(f"{bits >> low & 0xFFFFFFFF:0{width}x}")
    return ",".join(reversed(words))
