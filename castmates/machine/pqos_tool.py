"""Runs Intel's pqos: one at a time, under a time-out, in its own process group, which is killed as a whole."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from castmates.errors import CastmatesError
from castmates.linux.end_with_parent import end_with_parent
from castmates.machine import pqos_text
from castmates.machine.lock import open_own_lock

Interface = Literal["msr", "os"]

TIMEOUT_S = 20.0
LOCK_S = 30.0
DYING_S = 2.0  # a pqos that hangs in the kernel cannot be killed; it is not waited for longer
PAUSE_S = 0.02
LOCK = "castmates-pqos.lock"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call of pqos came to."""

    status: int
    output: str
    errors: str


class Pqos:
    """The tool with one interface, which is named in every call: left to itself it would mount resctrl and take it."""

    def __init__(self, interface: Interface, program: str | None = None, lock: Path | None = None) -> None:
        path = program or shutil.which("pqos")
        if path is None:
            raise CastmatesError(
                "'cache.driver' is pqos, but there is no program 'pqos' here: install intel-cmt-cat, or write resctrl."
            )
        self.interface = interface
        self._program = path
        self._lock = lock or Path("/run" if os.access("/run", os.W_OK) else "/tmp") / LOCK

    def call(self, *words: str, timeout_s: float = TIMEOUT_S) -> str:
        """Run it once and return what it prints; everything that goes wrong is one sentence."""
        with self.alone():
            answer = self._run(words, timeout_s)
        if answer.status != 0:
            why = pqos_text.complaint(answer.output, answer.errors)
            raise CastmatesError(f"pqos {' '.join(words)} failed (exit {answer.status}): {why}.")
        return answer.output

    def start(self, output: IO[bytes], errors: IO[bytes], *words: str) -> "subprocess.Popen[bytes]":
        """Start one that goes on until `stop`; only the process that started it uses it as long as it runs."""
        try:
            return subprocess.Popen(
                [self._program, f"--iface={self.interface}", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGTERM),
                env={"PATH": os.defpath, "LC_ALL": "C", "RDT_IFACE": self.interface.upper()},
            )
        except OSError as error:
            raise CastmatesError(f"{self._program} cannot be started: {error.strerror}.") from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock on all our calls: libpqos refuses a second user of the machine."""
        try:
            fd = open_own_lock(self._lock)
        except OSError as error:
            raise CastmatesError(f"{self._lock} cannot be opened ({error.strerror}): pqos is for root alone.") from None
        try:
            _lock_within(fd, LOCK_S, self._lock)
            yield
        finally:
            os.close(fd)

    def _run(self, words: Sequence[str], timeout_s: float) -> Answer:
        # Files, not pipes: a child that lives on would keep a pipe open, and us waiting.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = self.start(output, errors, *words)
            try:
                status = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise CastmatesError(
                    f"pqos {' '.join(words)} did not end within {timeout_s:g} s and was killed; look whether another "
                    "pqos or its daemon is running."
                ) from None
            finally:
                stop(process, signal.SIGKILL)
            return Answer(status, _text(output), _text(errors))


def stop(process: "subprocess.Popen[bytes]", number: signal.Signals, patience_s: float = DYING_S) -> bool:
    """End a whole process group, by SIGKILL where the first signal does not help; False where it lives on."""
    for each in (number, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, each)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
        with suppress(ProcessLookupError):  # its children, whose group the dead leader still names
            os.killpg(process.pid, signal.SIGKILL)
        return True
    return False


def _lock_within(fd: int, seconds: float, path: Path) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise CastmatesError(
                    f"another pqos of castmates has been running for {seconds:g} s (lock {path}); end it first."
                ) from None
            time.sleep(PAUSE_S)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
