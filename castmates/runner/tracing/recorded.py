"""What a trace launch comes to: what was recorded of its scenes, before it is put together."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from castmates.linux.end_with_parent import end_with_parent
from castmates.linux.open_files import raise_limit
from castmates.linux.signals import hear
from castmates.protocols import Count, Sample
from castmates.runner.outcome import Outcome
from castmates.runner.profiles.rounds import Taken
from castmates.study.spec import Scene

Span = tuple[int, int]  # CLOCK_MONOTONIC, nanoseconds
Pair = tuple[int, int, int]  # the steady and the real clock at one moment, and how far apart they may have been read
NOTHING: Span = (0, 0)


@dataclass
class Events:
    """What perf recorded, or why it did not."""

    file: Path | None = None
    span: Span = NOTHING  # in which all its events were on
    reason: str = ""  # why there are none
    ended_early: str = ""  # why it recorded for a shorter time than was wanted
    command: Sequence[str] = ()


@dataclass
class Recorded:
    """One recording of a scene; times in nanoseconds of CLOCK_MONOTONIC."""

    scene: Scene
    round: int  # from 1
    switch_ns: int = 0  # when the scene was set
    end_ns: int = 0  # when it was left
    before: Span = NOTHING  # usual steps, with nothing recorded but heartbeats
    span: Span = NOTHING  # the recording
    after: Span = NOTHING  # usual steps again
    events: dict[str, Events] = field(default_factory=dict)  # by recorder: perf, stacks, latencies
    profile: Taken | None = None  # of the lead's framework; None where it was not asked
    threads: Mapping[int, int] = field(default_factory=dict)  # a line of that profile -> the system's thread
    pids: dict[str, list[int]] = field(default_factory=dict)  # by member, at the begin and the end of the recording
    processes: dict[int, int] = field(default_factory=dict)  # members' threads -> their processes, at these moments
    beats: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by member: time and units
    beats_lost: dict[str, int] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    totals: list[Sample] = field(default_factory=list)  # read at both edges of the recording
    counts: list[Count] = field(default_factory=list)
    masks: list[tuple[int, str, str]] = field(default_factory=list)  # moment, partition, who has what
    clocks: list[tuple[str, Pair]] = field(default_factory=list)  # at its begin and its end
    reason: str = ""  # why it was given up


@dataclass
class Traced(Outcome):
    """What a trace launch comes to."""

    recorded: list[Recorded] = field(default_factory=list)
    pids: set[int] = field(default_factory=set)  # every process of a member that was seen
    graph: bytes | None = None  # that the lead left of its step

    def fail(self, reason: str) -> None:
        """Note that a workload failed."""
        super().fail(reason)
        self.recorded.clear()


# `perf record` on the members of a scene: started before, switched on and off at moments that it confirms.

ANSWER = 20.0  # seconds that perf may take to open its events, and to answer
WRITE = 60.0  # seconds that it may take to write the rest of its file
SIZE_REACHED = "perf size limit reached"
ENDING = 5.0  # seconds from the end of its answers to its own
WORDS = 2000  # bytes of what it wrote, from the beginning and from the end


class PerfRecorder:
    """One `perf record`; what goes wrong is in `events.reason`, and nothing is raised."""

    def __init__(self, command_of: Callable[[str], Sequence[str]], file: Path) -> None:
        """`command_of` makes the command line that records into `file`, and takes orders through what it is given."""
        self.events = Events()
        self._command_of = command_of
        self._file, self._said = file, file.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: IO[bytes] | None = None
        self._answers: IO[bytes] | None = None
        self._is_cut = False  # whether it ended by itself, sooner than it was to

    def start(self) -> bool:
        """Let perf open its events, switched off; whether it did."""
        orders, to_perf = os.pipe()
        from_perf, answers = os.pipe()
        words = self.events.command = tuple(self._command_of(f"fd:{orders},{answers}"))
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._said.open("wb") as said:
                self._process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    pass_fds=(orders, answers),
                    start_new_session=True,  # a Ctrl-C is ours to handle
                    preexec_fn=_begin(),
                )
        except OSError as problem:
            self.events.reason = f"perf cannot be started ({problem.strerror})"
        finally:
            os.close(orders)
            os.close(answers)
        self._orders, self._answers = os.fdopen(to_perf, "wb", 0), os.fdopen(from_perf, "rb", 0)
        return self._process is not None and self._order("ping")

    def switch_on(self) -> bool:
        """Let it record from now on; whether it does."""
        if self.events.reason or not self._order("enable"):
            return False
        self.events.span = (time.monotonic_ns(), 0)
        return True

    @property
    def is_over(self) -> bool:
        """Whether it has ended by itself: its file has reached its size, or it failed."""
        return bool(self.events.span[0]) and self._process is not None and self._process.poll() is not None

    @property
    def is_full(self) -> bool:
        """Whether it has switched itself off because its file has reached its size; it may still be writing."""
        return bool(self.events.span[0]) and SIZE_REACHED in self._words()

    def switch_off(self) -> None:
        """Let it record no more, and write the rest of its file; safe where it never began."""
        begun, now = self.events.span[0], time.monotonic_ns()
        self.events.span = (begun, now if begun else 0)  # before the order: until now everything was on
        self._is_cut = self.is_full or self.is_over
        if begun and not self.is_over:
            self._order("disable", fails=False)
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def finish(self, rest: Callable[[], None]) -> Events:
        """Report what there is, once its file is written; `rest` is called again and again until then."""
        events, process = self.events, self._process
        if process is None:
            return events
        deadline = time.monotonic() + WRITE
        try:
            while process.poll() is None and time.monotonic() < deadline:
                rest()
            if process.poll() is None:
                events.reason = events.reason or f"perf did not end within {WRITE:.0f} s"
        finally:
            self.kill()
        words = self._words()
        if self._is_cut and SIZE_REACHED in words:
            events.ended_early = f"its file reached {self._file.stat().st_size / 1e6:,.1f} MB ('trace.most')"
        elif self._is_cut:
            events.ended_early = _reason(words)
        if not events.reason and not events.span[0]:
            events.reason = _reason(words)
        if not events.reason:
            events.file = self._file if self._file.is_file() and self._file.stat().st_size else None
            events.reason = "" if events.file else _reason(words)
        return events

    def kill(self) -> None:
        """End it whatever it does, and let go of everything; safe to call twice."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._orders, self._answers):
            if pipe is not None:
                pipe.close()

    def _order(self, word: str, fails: bool = True) -> bool:
        """Give an order, and wait until it is carried out."""
        assert self._process is not None
        assert self._orders is not None
        assert self._answers is not None
        try:
            self._orders.write(f"{word}\n".encode())
        except OSError:
            pass
        else:
            deadline = time.monotonic() + ANSWER
            while (left := deadline - time.monotonic()) > 0:
                if select.select([self._answers], [], [], min(left, 0.1))[0]:
                    if self._answers.read(64):
                        return True
                    with suppress(subprocess.TimeoutExpired):
                        self._process.wait(ENDING)
                    break  # it has ended
                if self._process.poll() is not None:
                    break
        if fails:
            ended = self._process.poll() is not None
            self.events.reason = _reason(self._words()) if ended else f"perf did not answer within {ANSWER:.0f} s"
        return False

    def _words(self) -> str:
        """What perf wrote on its standard error."""
        try:
            written = self._said.read_bytes()
        except OSError:
            return ""
        kept = written if len(written) <= 2 * WORDS else written[:WORDS] + written[-WORDS:]
        return kept.decode(errors="replace")


def _begin() -> Callable[[], None]:
    end = end_with_parent(signal.SIGKILL)

    def prepare() -> None:
        end()
        raise_limit()
        hear()  # it is ended by SIGINT, whatever we ignore

    return prepare


def _reason(words: str) -> str:
    """Why perf failed, by its own first words."""
    lines = [line.strip() for line in words.splitlines() if line.strip() and not line.startswith("[")]
    lines = [line for line in lines if set(line) - set("-= ") and line.lower() != "error:"]
    return f"perf failed: {' '.join(lines[:2]).rstrip('.')}" if lines else "perf failed, and gave no reason"
