"""The program `known` as a process: it does portions of a task when asked to, and gives its own account of them."""

import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from castmates.errors import CastmatesError
from castmates.linux.processes import read_process
from castmates.trials.counters.tasks import Account, Trial

PATIENCE_S = 60.0
REST_S = 0.0002


class CannotHere(Exception):
    """The task has no known answer on this machine; why."""


class Own(NamedTuple):
    """What the kernel reported to the program about a portion, by getrusage and the clock of the process."""

    minor: int
    major: int
    waits: int
    pushes: int
    cpu_ns: int

    def of(self, account: Account | None) -> float | None:
        """Return the part that an event is compared with."""
        if account is None:
            return None
        parts = {"minor faults": self.minor, "major faults": self.major, "switches": self.waits + self.pushes}
        return float(parts.get(account, self.cpu_ns))


def words(program: Path, trial: Trial, cpu: int | None, directory: Path) -> list[str]:
    """Return the command line of a task."""
    more = [f"bytes={trial.bytes}"] if trial.bytes else []
    more += [] if cpu is None else [f"cpu={cpu}"]
    return [str(program), trial.task, f"directory={directory}", *more]


class Known:
    """The process; `go` lets it do a portion and waits for its end."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.pid = process.pid

    def go(self, units: int) -> Own:
        """Do so many units."""
        if self._process.stdin is None:
            raise CastmatesError("known has no standard input")
        try:
            self._process.stdin.write(f"{units}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise CastmatesError(f"known ended with status {self._process.wait()} before its task was done") from None
        own = account_of(self.line())
        self._await_rest()
        return own

    def _await_rest(self) -> None:
        """Wait until it waits for its next line: what it did until then would count in the next portion."""
        deadline = time.monotonic() + PATIENCE_S
        while (process := read_process(self.pid)) and process.state != "S" and time.monotonic() < deadline:
            time.sleep(REST_S)

    def line(self) -> str:
        """Wait for its next line."""
        if self._process.stdout is None:
            raise CastmatesError("known has no standard output")
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            if not waiting.select(PATIENCE_S):
                raise CastmatesError(f"known did not get on within {PATIENCE_S:g} s: is this machine busy?")
        line = self._process.stdout.readline().strip()
        if line.startswith("cannot: "):
            raise CannotHere(line.removeprefix("cannot: "))
        if not line:
            raise CastmatesError(f"known ended with status {self._process.wait()} before its task was done")
        return line


@contextmanager
def known(command: Sequence[str]) -> Iterator[Known]:
    """Start the program and wait until it is ready; at the end it is killed."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        program = Known(process)
        program.line()
        yield program
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue


def account_of(line: str) -> Own:
    """Read the program's account."""
    words = line.split()
    if len(words) != 1 + len(Own._fields) or words[0] != "done":
        raise CastmatesError(f"known printed '{line}' where its account was expected; build it anew.")
    return Own(*map(int, words[1:]))


def quiet_cpu() -> int:
    """Return the last of our CPUs: the first ones serve more interrupts."""
    return max(os.sched_getaffinity(0))
