"""The processes of a launch, and the means to run any subset of them."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from castmates.linux.processes import threads_of
from castmates.protocols import Held
from castmates.runner.processes.freezer import Freezer, let_go, let_stand
from castmates.runner.processes.launch import Running, WorkloadFailed
from castmates.runner.rounds.hardware import Hardware
from castmates.study.spec import Share
from castmates.workloads.heartbeat import State

LOOK = 1.0  # seconds; how long we sleep at most without looking after the members, whose heartbeats fill a ring
LEAVE = 5.0  # seconds that members have to end by themselves: a chase of 700 MB takes two to check itself


class Stage:
    """The processes, which of them run, and what watches them."""

    def __init__(
        self,
        cast: Iterable[Running],
        freezer: Freezer,
        hardware: Hardware,
        check: Callable[[], None],
        evictors: Mapping[str, int] | None = None,
    ) -> None:
        self.cast: dict[str, Running] = {process.name: process for process in cast}
        self.evictors = evictors or {}  # processes that empty caches, each with the bytes that it writes for that
        self.freezer = freezer
        self.hardware = hardware
        self.shares: tuple[Share, ...] = ()  # in force
        self._check = check
        self._moving: set[str] = set()  # all begin frozen

    def guard_orphan(self, file: Path) -> None:
        """Let a file that a member leaves go, should the runner be killed; without processes there is none."""

    def held(self) -> dict[str, Held]:
        """Everyone, as allocators, monitors and counters know them."""
        held = {}
        for name, process in self.cast.items():
            group = self.freezer.group_of(name)
            held[name] = Held(process.pid, process.start.cpus, str(group) if group else None)
        return held

    def now_ns(self) -> int:
        """Return the time on the clock that the heartbeats are stamped with."""
        return time.monotonic_ns()

    def apply_shares(self, shares: tuple[Share, ...]) -> bool:
        """Put these shares of caches and bandwidth in force; True where a member has lost ways."""
        lost = self.hardware.apply_shares(shares)
        self.shares = shares
        return lost

    def switch(self, names: Sequence[str]) -> None:
        """Freeze and thaw until exactly these processes run."""
        leaving, coming = sorted(self._moving - set(names)), [name for name in names if name not in self._moving]
        let_stand(self.cast[name] for name in leaving)
        self._announce(names)
        for name in leaving:
            self.freezer.freeze(name)
        let_go(self.cast[name] for name in coming)
        for name in coming:
            self.freezer.thaw(name)
        self._moving = set(names)

    def exchange(self, names: Sequence[str]) -> None:
        """Pause and let go until exactly these run, as quickly as can be; who escaped is found by `switch`."""
        wanted = set(names)
        leaving, coming = sorted(self._moving - wanted), [name for name in names if name not in self._moving]
        let_stand(self.cast[name] for name in leaving)
        self._announce(names)
        if leaving:
            self.freezer.pause(leaving)
        if coming:
            let_go(self.cast[name] for name in coming)
            self.freezer.let_go(coming)
        self._moving = wanted

    def _announce(self, names: Sequence[str]) -> None:
        """Let services know of the change, before anyone is frozen or thawed: it ends their schedule of requests.

        Else what was due while they were frozen would flood them, or the queue of one scene be served in the next.
        """
        for name in self._moving:
            if (requests := self.cast[name].requests) is not None:
                requests.scene_ends(self.now_ns())
        for name in set(names) - self._moving:
            if (requests := self.cast[name].requests) is not None:
                requests.scene_begins()

    def rest_until(self, t_ns: int) -> None:
        """Sleep and read nothing, as long as that is short."""
        self.sleep_until(t_ns - int(LOOK * 1e9))
        if (left := t_ns - self.now_ns()) > 0:
            time.sleep(left / 1e9)

    def look_after(self) -> None:
        """End the launch when any process, running or frozen, has ended, or when the launch is no longer wanted."""
        self._check()
        for process in self.cast.values():
            if ended := process.ended():
                raise WorkloadFailed.of(process, ended)

    def sleep_until(self, t_ns: int) -> None:
        """Sleep, and keep up with the heartbeats meanwhile.

        Looks are rare: on a small machine this process sits on an antagonist's CPU, and each look costs it.
        """
        while (left := (t_ns - self.now_ns()) / 1e9) > 0:
            time.sleep(min(left, LOOK))
            self.read_beats()
            self.look_after()

    def forget_beats(self) -> None:
        """Forget all heartbeats so far."""
        for process in self.cast.values():
            process.forget_beats()

    def read_beats(self) -> None:
        """Read the new heartbeats of those who move."""
        for name in self._moving:
            self.cast[name].read_beats()

    def cpus_of_threads(self, name: str) -> set[int]:
        """Every CPU that some thread of this process, or of its children, may run on."""
        allowed: set[int] = set()
        for pid in self.freezer.stragglers(name):
            for thread in threads_of(pid):
                try:
                    allowed |= os.sched_getaffinity(thread)
                except ProcessLookupError:
                    continue
        return allowed

    def dismiss(self) -> list[str]:
        """Ask everyone to end, so that a program that checks its own result can report that it is wrong.

        Returns those still running when our patience was over: whether their result was right is not known.
        """
        self.look_after()
        self.switch(list(self.cast))
        for process in self.cast.values():
            process.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + LEAVE
        while time.monotonic() < deadline and not _all_ended(self.cast.values()):
            time.sleep(0.02)
        for process in self.cast.values():
            if process.reader.state is State.FAILED:
                raise WorkloadFailed.of(process, "found its own result to be wrong")
        for process in self.cast.values():
            process.read_requests()
        return [name for name, process in self.cast.items() if not _all_ended([process])]


def _all_ended(cast: Iterable[Running]) -> bool:
    return all(process.ended() or process.reader.state in (State.FINISHED, State.FAILED) for process in cast)
