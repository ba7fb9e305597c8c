"""Counts the steps of this process: ready after its warm-up, then a heartbeat for each; traces them when asked to."""

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from castmates.workloads import heartbeat

# What is known of the program that is followed, in a file that `castmates profile` reads while it tries it.

VARIABLE = "CASTMATES_ATTACHED"  # names the file; without it, nothing is written


class Status:
    """Facts of this process; the file appears whole each time."""

    def __init__(self) -> None:
        self._file = os.environ.get(VARIABLE) or None
        self._facts: dict[str, object] = {}
        self._calls: Counter[str] = Counter()

    @property
    def wanted(self) -> bool:
        """Whether anybody reads it."""
        return self._file is not None

    @property
    def framework(self) -> bool:
        """Whether the program has imported one that is followed."""
        return any(name in self._facts for name in FRAMEWORKS)

    def note(self, **facts: object) -> None:
        """Add facts, or change them."""
        self._facts |= facts
        if self._file is not None and self._counts(Path(self._file)):
            content = self._facts | {"pid": os.getpid(), "python": sys.version.split()[0], "calls": dict(self._calls)}
            unfinished = Path(f"{self._file}.{os.getpid()}.{threading.get_ident()}")
            with suppress(OSError):  # who reads it is gone
                unfinished.write_text(json.dumps(content), encoding="utf-8")
                unfinished.replace(self._file)

    def _counts(self, file: Path) -> bool:
        """Whether this process is nearer to training than the one that wrote the file: it may have started that one."""
        try:
            other = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return True
        return other.get("pid") == os.getpid() or _nearness(self._facts) > _nearness(other)

    def called(self, function: str) -> None:
        """Count a call of a function that may be the program's step."""
        self._calls[function] += 1
        if self._calls[function] in (3, 30) or self._calls[function] % 300 == 0:
            self.note()


FRAMEWORK = "CASTMATES_FRAMEWORK"  # names the one whose steps count; without it, the first that makes a step
FRAMEWORKS = {
    "tensorflow": "TensorFlow",
    "torch": "PyTorch",
    "jax": "JAX",
}  # modules that are followed, and their names


def _nearness(facts: Mapping[str, object]) -> int:
    """How near a process is to training: it has imported a framework, it has made steps."""
    return 2 * bool(facts.get("steps")) + any(name in facts for name in FRAMEWORKS)


def say(sentence: str) -> None:
    """One line for the log."""
    with suppress(OSError, ValueError):  # stderr may be closed
        print(f"castmates: {sentence}", file=sys.stderr, flush=True)


WARM_UP_STEPS = 6  # the first of them traces and compiles
WARM_UP_SECONDS = 10.0  # from the first one on; where steps are long, fewer of them warm up


class Tracer(Protocol):
    """What traces the steps of a framework."""

    def step_is_over(self) -> None:
        """Look, between two steps, whether a trace is wanted."""


class Pulse:
    """The steps of one loop of one process: those of its forks, and of other threads, are not counted."""

    def __init__(self, status: Status, tracer: Callable[[str], Tracer | None], only: str = "") -> None:
        self.steps = 0
        self._only = only  # the framework whose steps count; "" for the first that makes one
        self._by = ""  # the one that makes them
        self.ready = False
        self._status = status
        self._choose = tracer
        self._tracer: Tracer | None = None
        self._beats: heartbeat.Writer | None = None
        self._thread = 0
        self._pid = os.getpid()
        self._first = 0.0
        self._over = False

    @property
    def own(self) -> bool:
        """Whether this is the process that is followed, and not a fork of it."""
        return not self._over and os.getpid() == self._pid

    @property
    def has_trainer(self) -> bool:
        """Whether a trainer makes the steps, such as Keras by PyTorch."""
        return "/" in self._by

    def takes(self, by: str) -> bool:
        """Whether steps of this framework, or of a trainer ("keras/jax"), count, or will if it makes the first one."""
        framework = by.rpartition("/")[2]
        return self.own and (by == self._by if self._by else self._only in ("", framework))

    def claim(self, by: str) -> None:
        """Count the steps of a trainer from now on, unless steps are ready: it is surer than what JAX called often."""
        if self.own and not self.ready and self._only in ("", by.rpartition("/")[2]) and self._by != by:
            self._by, self.steps, self._first = by, 0, time.monotonic()

    def step(self, by: str) -> None:
        """Note that one step is done; whatever fails is one line, and steps are no longer followed."""
        if not self.takes(by):
            return
        self._by = by
        with self.carefully():
            self._step()

    @contextmanager
    def carefully(self) -> Iterator[None]:
        """What fails inside is one line, and steps are no longer followed: the program must not end because of us."""
        try:
            yield
        except Exception as error:
            self._over = True
            say(f"steps are no longer followed: {type(error).__name__}: {error}")

    def _step(self) -> None:
        if not self._thread:
            self._begin()
        if self._over or threading.get_ident() != self._thread or self._beats is None:
            return
        self.steps += 1
        if self.ready:
            self._beats.beat()
            if self._tracer is not None:
                self._tracer.step_is_over()
        elif self.steps >= WARM_UP_STEPS or (self.steps > 1 and time.monotonic() - self._first > WARM_UP_SECONDS):
            self._tracer = self._choose(self._by.rpartition("/")[2])
            self.ready = True
            self._beats.ready()
        if self._status.wanted:
            self._status.note(steps=self.steps, ready=self.ready, framework=self._by.rpartition("/")[2])

    def _begin(self) -> None:
        self._thread, self._first = threading.get_ident(), time.monotonic()
        path = os.environ.get(heartbeat.VARIABLE) or None
        if path is not None and (other := writer_of(path)):
            self._over = True
            say(f"two processes make steps; only those of process {other} are followed, and not those of this one.")
            return
        self._beats = heartbeat.Writer(path)


def writer_of(path: str) -> int:
    """Another living process that reports its steps there; 0 where there is none."""
    with heartbeat.Reader(path) as reader:
        pid = reader.pid
    if pid in (0, os.getpid()):
        return 0
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return 0
    except PermissionError:
        return pid
    return pid
