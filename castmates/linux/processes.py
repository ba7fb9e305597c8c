"""Follow a launched process with all that came from it, through /proc, and stop, continue or kill the whole family."""

import contextlib
import os
import signal
import stat
import time
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from castmates.linux.kernel_files import read_kernel, read_pairs, read_text

TICK_S = 1 / os.sysconf("SC_CLK_TCK")  # in which the kernel counts CPU time
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PAUSE_S = 0.0005
_STUCK_S = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the kernel's process table."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    threads: int
    born: int  # start time in ticks since boot: with the pid it names a process for ever

    @property
    def alive(self) -> bool:
        """False for what has ended; a dead leader with living threads is alive."""
        return self.state not in "ZX" or self.threads > 1


def parse_stat(line: bytes) -> tuple[int, list[bytes]]:
    """Split a /proc/<pid>/stat line into the pid and the fields from the state on (the name may hold anything)."""
    head, _, tail = line.rpartition(b")")
    return int(head.split(b" ", 1)[0]), tail.split()


def read_process(pid: int) -> Process | None:
    """Read one process, or None where there is none (any more)."""
    try:
        own, f = parse_stat(stat_line(pid))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(own, int(f[1]), int(f[2]), int(f[3]), f[0].decode(), int(f[17]), int(f[19]))


def living(pid: int) -> list[bytes] | None:
    """Read a process's stat line, from the state on; None where it and all its threads have ended."""
    try:
        fields = parse_stat(stat_line(pid))[1]
    except OSError:
        return None
    return None if fields[0] in b"ZX" and int(fields[17]) <= 1 else fields


def tree_of(leader: int) -> Iterator[tuple[int, list[int]]]:
    """Yield a process and its descendants, each with its threads; what has ended or is hidden is left out."""
    queue = [leader]
    while queue:
        pid = queue.pop()
        try:
            threads = numbers_in(f"/proc/{pid}/task")
        except OSError:
            continue
        yield pid, threads
        for tid in threads:
            try:
                queue += children_of(pid, tid)
            except OSError:
                continue


def cpu_seconds_of_tree(leader: int) -> float:
    """Return the CPU time of a process and its descendants, with that of children that they waited for."""
    ticks = 0
    for pid, _ in tree_of(leader):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, parse_stat(stat_line(pid))[1][11:15]))
    return ticks * TICK_S


def read_table() -> dict[int, Process]:
    """Read the whole process table."""
    entries = (read_process(pid) for pid in numbers())
    return {process.pid: process for process in entries if process}


def numbers() -> list[int]:
    """List the processes that there are."""
    return numbers_in("/proc")


def stat_line(pid: int) -> bytes:
    """Read a process's line of the table; OSError where it has ended."""
    return read_kernel(f"/proc/{pid}/stat")


def thread_stat_line(pid: int, tid: int) -> bytes:
    """Read a thread's line of the table; OSError where it has ended."""
    return read_kernel(f"/proc/{pid}/task/{tid}/stat")


def children_of(pid: int, tid: int) -> list[int]:
    """List the processes that a thread has started and that have not been waited for; OSError where it has ended."""
    return [int(child) for child in read_kernel(f"/proc/{pid}/task/{tid}/children").split()]


def switches_of(pid: int, tid: int) -> tuple[int, int]:
    """Count a thread's voluntary and involuntary context switches: the last two lines of its status."""
    _, _, tail = read_kernel(f"/proc/{pid}/task/{tid}/status").rpartition(b"\nvoluntary_ctxt_switches:")
    voluntary, _, involuntary = tail.partition(b"\nnonvoluntary_ctxt_switches:")
    return int(voluntary), int(involuntary.split(b"\n", 1)[0])


def waited_ns_of(pid: int, tid: int) -> int:
    """Return how long a thread was ready to run and had no CPU, since its start; OSError where it has ended."""
    return ran_and_waited_ns_of(pid, tid)[1]


def ran_and_waited_ns_of(pid: int, tid: int) -> tuple[int, int]:
    """Return how long a thread ran, and the same; OSError where it has ended."""
    ran, waited, _ = read_kernel(f"/proc/{pid}/task/{tid}/schedstat").split()
    return int(ran), int(waited)


def waits_are_counted() -> bool:
    """Check whether the kernel counts that: without CONFIG_SCHED_INFO there is no file; switched off, it has zeros."""
    try:
        return int(read_kernel("/proc/self/schedstat").split()[2]) > 0
    except (OSError, IndexError, ValueError):
        return False


def status_of(pid: int | str = "self", root: Path = Path("/")) -> dict[str, str]:
    """Return the lines of a process's status by their keys; empty where it has ended."""
    return read_pairs(root / f"proc/{pid}/status")


def cpu_ns_of_process(pid: int) -> int | None:
    """Return the CPU time of a process, of its ended threads too; None where it has ended."""
    (used,) = cpu_ns_of_processes([pid])
    return used


def cpu_ns_of_processes(pids: Iterable[int]) -> list[int | None]:
    """Return the CPU time of each process, of its ended threads too; None where it has ended.

    A loop in Python would take half as long again as the kernel's calls.
    """
    found: list[int | None] = []
    clocks = iter([(~pid << 3) | 2 for pid in pids])
    while True:
        try:
            found.extend(map(time.clock_gettime_ns, clocks))  # which keeps those before one that has ended
        except OSError:
            found.append(None)
        else:
            return found


def resident_bytes(pid: int) -> int | None:
    """Return how much of a process's memory is there; None where it has ended."""
    try:
        return int(read_kernel(f"/proc/{pid}/statm").split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return None


def name_of(pid: int) -> str | None:
    """Return the name of the program that a process runs; None where it has ended."""
    return read_text(Path(f"/proc/{pid}/comm"))


def user_of(pid: int) -> int | None:
    """Return the real user of a process; None where it has ended, or is hidden."""
    words = status_of(pid).get("Uid", "").split()
    return int(words[0]) if words else None


def held_by_root(pid: int, file: os.stat_result) -> bool:
    """Check whether root itself has a file open, in a process that locked it; only root sees that.

    Not where a user has locked it and then started a program such as sudo, or ended and left the lock to a child.
    """
    with contextlib.suppress(OSError):
        if user_of(pid) != 0 or Path(f"/proc/{pid}/exe").stat().st_mode & stat.S_ISUID:
            return False
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.path.samestat(each.stat(), file):
                    return True
    return False


def shows_resctrl_groups() -> bool:
    """Check whether the kernel shows in which groups a thread is: from 5.6 on, with CONFIG_PROC_CPU_RESCTRL."""
    return Path("/proc/self/cpu_resctrl_groups").exists()


def resctrl_groups_of(tid: int) -> str:
    """Read in which groups of resctrl a thread is, as `res:` and `mon:`; OSError where it has ended."""
    return read_kernel(f"/proc/{tid}/cpu_resctrl_groups").decode()


def threads_of(pid: int) -> list[int]:
    """List the threads of a process; empty where it has ended."""
    try:
        return numbers_in(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []


def numbers_in(folder: str) -> list[int]:
    """List the entries of a folder of /proc that are numbers."""
    with os.scandir(folder) as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


def is_stopped(pid: int) -> bool:
    """Check that no thread of a process can run: each is stopped or has ended."""
    for tid in threads_of(pid):
        try:
            state = parse_stat(thread_stat_line(pid, tid))[1][0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in (b"T", b"t", b"Z", b"X"):
            return False
    return True


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each; those that have ended or may not be signalled are left to the caller's check.

    What is not above 0 names no process: kill(2) would take it for our own group, or for everybody.
    """
    for pid in (pid for pid in pids if pid > 0):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class Family:
    """A session leader and everything that came from it, also what has left its session since it was last seen.

    What forks twice and calls setsid between two looks is not found; a cgroup has no such gap. See `marks.Adoption`.
    """

    def __init__(self, leader: int, born: int | None = None) -> None:
        self.leader = leader
        process = read_process(leader)
        self.born = born if born is not None else process.born if process else 0
        self._known: dict[int, int] = {leader: self.born}
        self._leader_stopped = False

    def living(self) -> list[Process]:
        """Look again and return every member that has not ended."""
        table = read_table()
        table.pop(os.getpid(), None)
        children: dict[int, list[int]] = {}
        for process in table.values():
            children.setdefault(process.parent, []).append(process.pid)
        queue = [pid for pid, born in self._known.items() if pid in table and table[pid].born == born]
        queue += self._fellows(table)
        family: dict[int, Process] = {}
        while queue:
            pid = queue.pop(0)  # parents first: who holds another by ptrace is looked at before whom it may let go
            if pid not in family:
                family[pid] = table[pid]
                queue += children.get(pid, [])
        self._known = {self.leader: self.born} | {pid: process.born for pid, process in family.items()}
        return [process for process in family.values() if process.alive]

    def threads(self) -> set[int]:
        """List the threads of everybody who has not ended."""
        return {tid for process in self.living() for tid in threads_of(process.pid)}

    def _fellows(self, table: dict[int, Process]) -> list[int]:
        """Return who shares the leader's group or session; the number is ours as long as no other process has it."""
        bearer = table.get(self.leader)
        if bearer and bearer.born != self.born:
            return []
        return [p.pid for p in table.values() if self.leader in (p.group, p.session) and p.born >= self.born]

    def _send_group(self, number: signal.Signals) -> None:
        """Signal the leader's process group, which the kernel does at one stroke, so that no fork slips through."""
        bearer = read_process(self.leader)
        if bearer is None or bearer.born == self.born:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, number)

    def stop(self, timeout_s: float) -> list[int]:
        """Stop everyone and return those who still run when the time is out.

        A parent in vfork cannot stop until its child has called exec, and a child that was stopped before never
        will: a process that still runs after a while is let go for a moment and stopped anew.
        """
        deadline = time.monotonic() + timeout_s
        attempt = time.monotonic()
        self._send_group(signal.SIGSTOP)
        while running := [p.pid for p in self.living() if not is_stopped(p.pid)]:
            now = time.monotonic()
            if now > deadline:
                return running
            if now - attempt > _STUCK_S:
                self.resume()
                time.sleep(_PAUSE_S)
                attempt = time.monotonic()
                self._send_group(signal.SIGSTOP)
            send(running, signal.SIGSTOP)
            time.sleep(_PAUSE_S)
        return []

    def resume(self) -> None:
        """Let everyone go on."""
        self._send_group(signal.SIGCONT)
        send([p.pid for p in self.living()], signal.SIGCONT)

    def pause(self) -> None:
        """Ask all who are known to stop: the leader's process group at one stroke, and who has left it."""
        self._leader_stopped = False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, signal.SIGSTOP)
        send(self._others(), signal.SIGSTOP)

    def paused(self) -> bool:
        """Check whether all who were asked to stop stand still; the leader must be a child of ours, and have run.

        The kernel reports a stopped child when the last of its threads has stopped, so nothing of /proc is read.
        """
        if not self._leader_stopped:
            try:
                status = os.waitid(os.P_PID, self.leader, os.WSTOPPED | os.WNOHANG)
            except ChildProcessError:
                return False
            self._leader_stopped = status is not None
        return self._leader_stopped and all(is_stopped(pid) for pid in self._others())

    def let_go(self) -> None:
        """Let all who are known go on."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, signal.SIGCONT)
        send(self._others(), signal.SIGCONT)

    def _others(self) -> list[int]:
        return [pid for pid in self._known if pid != self.leader]

    def kill(self, timeout_s: float) -> list[int]:
        """Kill everyone, stopped first so that none escapes by forking; return those left when the time is out."""
        deadline = time.monotonic() + timeout_s
        self.stop(min(1.0, timeout_s))
        while left := [p.pid for p in self.living()]:
            if time.monotonic() > deadline:
                return left
            self._send_group(signal.SIGKILL)
            send(left, signal.SIGKILL)
            time.sleep(_PAUSE_S)
        return []


# The numbers of a process's threads from the addresses of their control blocks (pthread_t), read in its memory.
#
# The C library keeps a thread's number in its block, at one place for all threads, which its versions put elsewhere: it
# is found by that at this place every block has the number of a thread that the process has, each another one.

BLOCK = 2048  # bytes of a control block that are looked at


def tids_of(pid: int, addresses: Collection[int]) -> Mapping[int, int]:
    """The thread of each address; those of which the process shows nothing are left out."""
    there = set(threads_of(pid))
    blocks = _blocks(pid, addresses)
    if not there or not blocks:
        return {}
    words = {address: array("I", block) for address, block in blocks.items()}
    fits = Counter(place for each in words.values() for place, word in enumerate(each) if word in there)
    for place, count in fits.most_common():
        found = {address: each[place] for address, each in words.items() if each[place] in there}
        if len(set(found.values())) == count:
            return found
    return {}


def _blocks(pid: int, addresses: Collection[int]) -> dict[int, bytes]:
    found = {}
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for address in addresses:
            with contextlib.suppress(OSError, OverflowError):
                block = os.pread(memory.fileno(), BLOCK, address)
                if len(block) == BLOCK:
                    found[address] = block
    return found
