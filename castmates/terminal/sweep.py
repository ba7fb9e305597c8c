"""What is known of a sweep while it runs: launches that are done, at work and to come, and how long it still takes."""

import json
import os
import secrets
import select
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json
from castmates.runner.outcome import VARIABLE
from castmates.study.spec import Launch
from castmates.terminal.preview.duration import ANALYSIS

# The notes that launches send between their rounds (castmates/runner/outcome.py).

LONGEST = 65536  # bytes


@dataclass(frozen=True)
class Note:
    """What a launch has come to so far."""

    study: str
    launch: str  # Launch.path
    state: Literal["waiting", "launching", "measuring", "ended"]
    round: int = 0  # the last one that is over
    rounds: int = 0  # that are wanted without a rejected window
    clean: int = 0
    kept: int = 0  # windows
    rejected: int = 0
    because: Mapping[str, int] = field(default_factory=dict)
    who: Mapping[str, int] = field(default_factory=dict)
    status: str = ""
    reason: str = ""
    seconds: float = 0.0


class Inbox:
    """The socket that notes come to; jobs find its name in their environment."""

    def __init__(self) -> None:
        name = f"castmates-{os.getpid()}-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(f"\0{name}")  # abstract: gone with this process, however it ends
        self._name = name
        os.environ[VARIABLE] = name

    def wait(self, seconds: float | None) -> None:
        """Until there is something to read, at most so long."""
        with suppress(OSError, ValueError):  # it was closed meanwhile
            select.select([self._socket], [], [], seconds)

    def notes(self) -> list[Note]:
        """Everything that has come."""
        found = []
        with suppress(OSError):  # nothing more is there
            while True:
                if note := read_note(self._socket.recv(LONGEST)):
                    found.append(note)
        return found

    def wake(self) -> None:
        """Have `wait` return."""
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(b"", f"\0{self._name}")

    def close(self) -> None:
        """Receive nothing any more."""
        if os.environ.get(VARIABLE) == self._name:
            del os.environ[VARIABLE]
        self._socket.close()


def recorded(folder: StudyFolder, launch: Launch) -> Note | None:
    """The last note of a launch as its record has it: no note comes from another machine."""
    try:
        facts = read_json(folder.record_file(launch))
        return Note(
            study=launch.study,
            launch=launch.path,
            state="ended",
            clean=facts["rounds"],
            kept=facts["windows"] - facts["windows_rejected"],
            rejected=facts["windows_rejected"],
            status=_cleaned(facts["status"]),
            reason=_cleaned(facts["reason"] or ""),
            seconds=facts["seconds"]["total"],
        )
    except (CastmatesError, KeyError, TypeError):
        return None


def read_note(message: bytes) -> Note | None:
    """The note, or None of anything else: everybody on this machine may write to the socket."""
    try:
        facts = json.loads(message)
        note = Note(**{key: _cleaned(value) for key, value in facts.items()})
        numbers = [note.round, note.rounds, note.clean, note.kept, note.rejected]
        numbers += [*note.because.values(), *note.who.values()]
        is_note = all(isinstance(number, int) for number in numbers) and isinstance(note.seconds, int | float)
        words = (note.study, note.launch, note.state, note.status, note.reason)
        return note if is_note and all(isinstance(word, str) for word in words) else None
    except (ValueError, TypeError, AttributeError):
        return None


def _cleaned(value: Any) -> Any:  # noqa: ANN401 (as JSON has it)
    """The same without what a terminal would obey."""
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    return "".join(letter for letter in value if letter.isprintable()) if isinstance(value, str) else value


BUSY = ("measuring", "waiting")  # it, or the launch that it waits for


@dataclass
class LaunchProgress:
    """One launch, from when it is planned until it has ended."""

    launch: Launch
    expected: float  # seconds
    begun: float = 0.0
    seconds: float = 0.0  # that it took
    note: Note | None = None  # the last one
    failed: bool = False  # the job did, and nothing was recorded


@dataclass
class Windows:
    """How many windows count, and what the others were rejected for."""

    kept: int = 0
    rejected: int = 0
    because: Counter[str] = field(default_factory=Counter)
    who: Counter[str] = field(default_factory=Counter)

    def add(self, note: Note | None) -> None:
        """Count those of a launch."""
        if note is not None:
            self.kept += note.kept
            self.rejected += note.rejected
            self.because.update(note.because)
            self.who.update(note.who)


@dataclass
class Analysis:
    """The time in which at least one of its jobs runs: launches that are made apart may come between them."""

    begun: float | None = None  # when its first job did
    _spent: float = 0.0
    _jobs: int = 0
    _since: float = 0.0

    def begin(self, now: float) -> None:
        """One of its jobs begins."""
        self.begun = now if self.begun is None else self.begun
        self._since = self._since if self._jobs else now
        self._jobs += 1

    def end(self, now: float) -> None:
        """One of its jobs has ended, well or not."""
        self._spent = self.seconds(now) if self._jobs == 1 else self._spent
        self._jobs -= 1

    def seconds(self, now: float) -> float:
        """How long it has taken by now."""
        return self._spent + (now - self._since if self._jobs else 0.0)


class Sweep:
    """The launches of a sweep; nothing here takes longer the more of them there are, but for the beginning."""

    def __init__(self, launches: Iterable[Launch], seconds_of: Callable[[Launch], float], at_once: int) -> None:
        self.waiting = {launch.path: LaunchProgress(launch, seconds_of(launch)) for launch in launches}
        self.at_work: dict[str, LaunchProgress] = {}
        self.done = 0  # launches, failed ones too
        self._failed: dict[str, LaunchProgress] = {}  # those that were not begun again
        self.first_begun: float | None = None
        self.analysis = Analysis()
        self._seconds_of, self._at_once = seconds_of, at_once
        self._to_come = sum(progress.expected for progress in self.waiting.values())
        self._expected_done = 0.0
        self._windows = Windows()

    @property
    def failed(self) -> int:
        """How many launches have failed."""
        return len(self._failed)

    @property
    def total(self) -> int:
        """How many launches there are, as far as it is known."""
        return len(self.waiting) + len(self.at_work) + self.done

    def add(self, launches: Iterable[Launch]) -> None:
        """More launches are wanted."""
        for launch in launches:
            if launch.path not in self.waiting and launch.path not in self.at_work:
                self.waiting[launch.path] = LaunchProgress(launch, self._seconds_of(launch))
                self._to_come += self.waiting[launch.path].expected

    def begin(self, launch: Launch, now: float) -> None:
        """A launch begins; on a cluster also one that failed before."""
        if earlier := self._failed.pop(launch.path, None):
            self.done -= 1
            self._expected_done -= earlier.expected
        self.add([launch])
        progress = self.waiting.pop(launch.path)
        progress.begun = now
        self._to_come -= progress.expected
        self.at_work[launch.path] = progress
        if self.first_begun is None:
            self.first_begun = now

    def note(self, note: Note) -> None:
        """A launch has sent a note."""
        if progress := self.at_work.get(note.launch):
            progress.note = note

    def end(self, path: str, now: float, failed: bool = False) -> LaunchProgress | None:
        """A launch has ended."""
        progress = self.at_work.pop(path, None)
        if progress is not None:
            progress.seconds, progress.failed = now - progress.begun, failed
            self._windows.add(None if failed else progress.note)
            self._expected_done += progress.expected
            self.done += 1
            if failed:
                self._failed[path] = progress
        return progress

    def lacks_result(self, path: str) -> bool:
        """Whether a launch at work has sent no last note: those of other nodes do not come."""
        progress = self.at_work.get(path)
        return progress is not None and (progress.note is None or progress.note.state != "ended")

    @property
    def windows(self) -> Windows:
        """Those of all launches, so far."""
        ended = self._windows
        windows = Windows(ended.kept, ended.rejected, Counter(ended.because), Counter(ended.who))
        for progress in self.at_work.values():
            windows.add(progress.note)
        return windows

    @property
    def is_measuring(self) -> bool:
        """Whether a real launch is in its rounds, or another sweep measures: nothing should run beside it."""
        return any(
            progress.launch.design.model is None and progress.note is not None and progress.note.state in BUSY
            for progress in self.at_work.values()
        )

    def share(self, now: float) -> float:
        """How much of the launches is done, by the seconds that they were expected to take."""
        all_of_it = self._expected_done + self._to_come + sum(progress.expected for progress in self.at_work.values())
        return self._worked(now) / all_of_it if all_of_it else 1.0

    def seconds_left(self, now: float) -> float:
        """How long the rest takes, at the pace of what is done; before that, at the expected one."""
        launches = self._to_come + sum(progress.expected for progress in self.at_work.values())
        launches -= self._worked(now) - self._expected_done
        return launches * self._pace(now) + max(ANALYSIS - self.analysis.seconds(now), 1.0)

    def _worked(self, now: float) -> float:
        """Expected seconds that are behind us; a launch that takes longer than expected has not ended."""
        return self._expected_done + sum(
            min(now - progress.begun, 0.95 * progress.expected) for progress in self.at_work.values()
        )

    def _pace(self, now: float) -> float:
        """Seconds by the clock for each expected one; the first launch or two weigh no more than the expectation."""
        usual = 1 / self._at_once
        if self.first_begun is None or not self.done:
            return usual
        trust = (self._expected_done / self.done) * self._at_once
        return (now - self.first_begun + usual * trust) / (self._worked(now) + trust)
