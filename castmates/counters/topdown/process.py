"""One `perf stat` that stands by, counts between two edges, and is always ended.

It starts disabled (-D -1) and obeys its control pipe: `enable` and `disable` come back acknowledged. Its print goes
into a file without a name, so that nothing is left, whichever process is killed.
"""

import io
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from castmates.linux.end_with_parent import end_with_parent

ACKNOWLEDGED = b"ack\n"
ENDS_WITHIN_S = 2.0


@dataclass(frozen=True)
class Answer:
    """What perf printed; `why` explains what went wrong, "" where nothing did."""

    text: str
    errors: str
    why: str = ""


class PerfProcess:
    """Drives one perf. Whatever fails is remembered in `why`, in words; nothing raises."""

    def __init__(self, program: str, words: Sequence[str]) -> None:
        """Start it: `words` are all its options but those of the control pipe and the output."""
        self.why = ""
        self.ended_by_itself = False  # it would not run; else it was slow
        self.ended = False
        self.heard_ns = 0  # when it last acknowledged, CLOCK_MONOTONIC
        self._heard = b""
        self._output: IO[bytes] = io.BytesIO()
        self._errors: IO[bytes] = io.BytesIO()
        self._orders = self.hears = orders = answers = -1
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._output = tempfile.TemporaryFile()  # noqa: SIM115 – closed by `end`
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115
            orders, self._orders = os.pipe()
            self.hears, answers = os.pipe()
            os.set_blocking(self._orders, False)
            pipes = ["--control", f"fd:{orders},{answers}", "--log-fd", str(self._output.fileno())]
            self._process = subprocess.Popen(
                [program, "stat", "-D", "-1", *pipes, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=(orders, answers, self._output.fileno()),
                process_group=0,
                preexec_fn=end_with_parent(),
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/"},
            )
        except (OSError, subprocess.SubprocessError) as error:
            self.why = f"{program} cannot be started: {getattr(error, 'strerror', None) or error}"
        finally:
            for fd in (orders, answers):
                if fd >= 0:
                    os.close(fd)

    @property
    def pid(self) -> int | None:
        """Its number, for those that watch."""
        return self._process.pid if self._process else None

    def order(self, word: str) -> None:
        """Send `enable` or `disable`; the acknowledgement is awaited apart, so that several perfs go at once."""
        if self.why:
            return
        try:
            os.write(self._orders, word.encode() + b"\n")
        except OSError:
            self.fail(f"it did not take the command '{word}'")

    def obeyed(self, word: str, deadline: float) -> bool:
        """Wait for the acknowledgement of an order, until this time of the monotonic clock."""
        hear_all([self], word, deadline)
        return not self.why

    def listen(self, word: str) -> bool:
        """Read what it has printed; True where that was the acknowledgement, or nothing more can come."""
        more = os.read(self.hears, 64)
        self._heard = (self._heard + more).rstrip(b"\0")
        if self._heard.endswith(ACKNOWLEDGED):
            self._heard, self.heard_ns = b"", time.monotonic_ns()
        elif not more:
            self.fail(f"it closed its pipe before '{word}' was acknowledged")
        else:
            return False
        return True

    def fail(self, why: str) -> None:
        """Give it up, with its own last words where it has ended."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):  # it may be about to end
                self._process.wait(0.2)
            self.ended_by_itself = self._process.returncode is not None
        self.why = why
        if self._process is not None and self.ended_by_itself:
            self.why = f"it ended with status {self._process.returncode}: {last_words(_text(self._errors)) or why}"

    def end(self) -> Answer:
        """End it, with its print if it will give one, and by force if it will not; safe to call twice."""
        if self._process is not None:
            self._stop(self._process)
        text, errors = (_text(file) for file in (self._output, self._errors))
        for fd in (self._orders, self.hears):
            with suppress(OSError):
                os.close(fd)
        self._orders = self.hears = -1
        self.ended = True
        self._output.close()
        self._errors.close()
        return Answer(text, errors, self.why)

    def _stop(self, process: "subprocess.Popen[bytes]") -> None:
        for number, patience in ((signal.SIGINT, ENDS_WITHIN_S), (signal.SIGKILL, ENDS_WITHIN_S)):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                self.why = self.why or f"it did not end within {ENDS_WITHIN_S:g} s and was killed"
                continue
            break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def hear_all(perfs: Iterable[PerfProcess], word: str, deadline: float) -> None:
    """Wait until each has acknowledged an order, or has failed, or the time is out."""
    waiting = {perf.hears: perf for perf in perfs if not perf.why}
    ears = select.poll()  # select() is lost where counters hold more than a thousand files
    for fd in waiting:
        ears.register(fd, select.POLLIN)
    while waiting:
        left = max(0.0, deadline - time.monotonic())  # at 0 what was already printed is still read
        for fd, _ in ears.poll(left * 1000):
            if waiting[fd].listen(word):
                ears.unregister(fd)
                del waiting[fd]
        if not left:
            for perf in waiting.values():
                perf.fail(f"it did not acknowledge '{word}' in time")
            return


def last_words(errors: str) -> str:
    """Return the line of perf's complaint that explains most: the first that names an error, else the first."""
    lines = [line.strip() for line in errors.splitlines() if line.strip(" \t\n\\_^'.-")]
    lines = [line for line in lines if not line.startswith(("Events enabled", "Events disabled", "Usage:"))]
    complaints = [line for line in lines if "rror" in line or "annot" in line or "unknown" in line or "ermi" in line]
    useful = [line for line in complaints if line not in ("Error:",)] or lines
    return useful[0][:200] if useful else ""


def _text(file: IO[bytes]) -> str:
    if file.closed:
        return ""
    file.seek(0)
    return file.read().decode(errors="replace")
