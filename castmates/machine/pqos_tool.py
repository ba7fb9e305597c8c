"""Runs Intel's pqos: one at a time, under a time-out, in its own process group, which is killed as a whole."""

import csv
import fcntl
import os
import re
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
            why = complaint(answer.output, answer.errors)
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


# What pqos prints: classes and cores, versions, complaints, and series of readings as CSV.

CacheMask = tuple[int, int]  # of data and of code; the same where the processor does not distinguish them

_CLASS = r"C(?:L)?OS"  # newer versions write CLOS
_DOMAIN = re.compile(rf"{_CLASS} definitions for (Socket|Domain ID|L3 Cluster \(or Core Complex\)) (\d+):")
_MASK = re.compile(
    rf"L3CA {_CLASS}(\d+) => (?:MASK 0x([0-9a-f]+)|DATA 0x([0-9a-f]+), ?CODE 0x([0-9a-f]+))", re.IGNORECASE
)
_THROTTLE = re.compile(rf"(?<!S)MBA {_CLASS}(\d+) => (\d+)(%| MBps)?")
_CORE = re.compile(rf"Core (\d+), .*?L3ID (\d+) => {_CLASS}(\d+)")
_SOCKET = re.compile(r"Core information for socket (\d+):")
_VERSION = re.compile(r"PQoS (Tool|Library) version: (\S+)", re.IGNORECASE)

# Lines that explain nothing: pqos prints the first two with every call, and the others beside the cause.
_NOTHING = ("NOTE:", "CAT or CMT & MBM", "WARN:", "Allocation configuration error", "Allocation association error")


@dataclass(frozen=True)
class State:
    """What is in force on the whole machine."""

    masks: dict[tuple[int, int], CacheMask]  # by last-level cache and class
    throttles: dict[tuple[int, int], int]  # by cache and class
    unit: str  # of the throttles: "%", "MiB/s" (which pqos calls MBps) or, AMD's, "1/8 GB/s"; "" without any
    cores: dict[int, tuple[int, int]]  # CPU -> its last-level cache and its class


@dataclass(frozen=True)
class Reading:
    """One line of a series."""

    stamp: str  # pqos' own time, to the second
    cpus: str  # as pqos writes them: "3"
    values: dict[str, float]  # by column; one that it left empty is not there


def parse_state(text: str) -> State:
    """Read what `pqos -s` prints."""
    masks: dict[tuple[int, int], CacheMask] = {}
    throttles: dict[tuple[int, int], int] = {}
    cores: dict[int, tuple[int, int]] = {}
    unit, domain, socket, by_socket = "", 0, 0, False
    for line in text.splitlines():
        if match := _DOMAIN.search(line):
            domain, by_socket = int(match[2]), match[1] == "Socket"
        elif match := _SOCKET.search(line):
            socket = int(match[1])
        elif match := _MASK.search(line):
            data = int(match[2] or match[3], 16)
            masks[domain, int(match[1])] = data, int(match[4], 16) if match[4] else data
        elif match := _THROTTLE.search(line):
            throttles[domain, int(match[1])] = int(match[2])
            unit = {"%": "%", " MBps": "MiB/s"}.get(match[3] or "", "1/8 GB/s")
        elif match := _CORE.search(line):
            # Where classes are listed by socket, a cache is known by it, and the caches' own numbers may be others.
            cores[int(match[1])] = socket if by_socket else int(match[2]), int(match[3])
    return State(masks, throttles, unit, cores)


def parse_version(text: str) -> str:
    """Read what `pqos --version` prints: the tool's, and the library's where it differs."""
    versions = {what.lower(): version for what, version in _VERSION.findall(text)}
    tool, library = versions.get("tool", "unknown"), versions.get("library", "unknown")
    return tool if library in (tool, "unknown") else f"{tool} with library {library}"


def parse_readings(text: str) -> list[Reading]:
    """Read what `pqos -u csv` prints, by its header: which columns there are depends on events, interface and version.

    A last line without its end was cut when the tool was ended.
    """
    lines = text.split("\n")[:-1]
    begin = next((number for number, line in enumerate(lines) if line.startswith("Time,")), len(lines))
    readings = []
    for row in csv.DictReader(lines[begin:]):
        values = {name: _float(cell) for name, cell in row.items() if name not in ("Time", "Core", None)}
        known = {name: value for name, value in values.items() if value is not None}
        readings.append(Reading(row.get("Time") or "", row.get("Core") or "", known))
    return readings


def complaint(output: str, errors: str) -> str:
    """Turn what pqos prints when it fails into part of one sentence."""
    lines = [line.strip() for line in (*errors.splitlines(), *output.splitlines())]
    useful = [line for line in lines if line and not line.startswith(_NOTHING) and not line.endswith("- FAILED!")]
    chosen = list(dict.fromkeys(line.removeprefix("ERROR: ").rstrip("!. ") for line in useful))[:2]
    return "; ".join(chosen) or "it gave no reason"


def _float(cell: object) -> float | None:
    try:
        return float(str(cell))
    except ValueError:
        return None
