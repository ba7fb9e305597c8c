"""The steps of a day: each is a command of ours in a process of its own, with an end; and what is kept of each."""

import hashlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final, Literal

import castmates
from castmates.english import duration, printable
from castmates.errors import CastmatesError
from castmates.files import make_folder, mapping_if_there, replace_text, writing
from castmates.hardware_day.bundle import Names, as_text
from castmates.linux import host
from castmates.linux.end_with_parent import end_with_parent
from castmates.linux.kernel_files import read_text
from castmates.linux.signals import ENDING, deaf, hear
from castmates.pipeline.outliving_command import ESCALATION
from castmates.protocols import Say

COMMAND = "castmates hardware-day"
DONE: Final = "done"
FAILED: Final = "failed"
NOT_HERE: Final = "not possible here"
NO_TIME: Final = "no time left"
ENDED: Final = "interrupted"
Status = Literal["done", "failed", "not possible here", "no time left", "interrupted"]
SETTLED = (DONE, NOT_HERE)  # what is not tried again
UNFINISHED = (FAILED, NO_TIME, ENDED)
MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
BY_KERNEL = ("capture", "verify-rdt", "sweep")  # steps that are done again under other words of the kernel
ENDING_S = sum(patience for _, patience in ESCALATION)  # that a command may take to end once its time is over
READ_S = 5.0  # that is waited for the last words of a command that has ended


@dataclass(frozen=True)
class Place:
    """Where the things of a day lie."""

    folder: Path
    cache: Path
    names: Names

    @property
    def steps_file(self) -> Path:
        """What became of each step."""
        return self.folder / "steps.json"

    @property
    def machine_file(self) -> Path:
        """By what this machine is told from others of its kind; it stays here."""
        return self.folder / ".machine.json"

    @property
    def capture_file(self) -> Path:
        """The machine itself."""
        return self.folder / "machine.json.gz"

    @property
    def page_file(self) -> Path:
        """What this machine is."""
        return self.folder / "index.html"

    @property
    def bundle_file(self) -> Path:
        """What is sent."""
        return self.folder / "bundle.tar.gz"

    @property
    def project(self) -> Path:
        """The folder in which the sweep runs."""
        return self.folder / "sweep"

    def record_file(self, name: str) -> Path:
        """The record of a trial, without names."""
        return self.folder / f"{name}.json"

    def keep(self, name: str, record: object) -> None:
        """Write such a record."""
        with writing(file := self.record_file(name)):
            replace_text(file, as_text(self.names.without(record)))

    def log_file(self, name: str) -> Path:
        """What a step printed; it stays here."""
        make_folder(self.folder / "logs")
        return self.folder / "logs" / f"{name}.log"


@dataclass(frozen=True)
class Step:
    """One step: about how long it takes, after how long it is ended, and how it is done."""

    name: str
    about: str
    seconds: float
    limit: float
    run: Callable[[Place, float, Say], str]  # within so many seconds; why it failed, "" where it did not
    cannot: str = ""  # why it cannot be done on this machine


@dataclass(frozen=True)
class Outcome:
    """What became of a step."""

    status: Status
    reason: str = ""
    at: str = ""
    seconds: float = 0.0
    words: str = ""  # a digest of the kernel's


@dataclass
class Diary:
    """What became of the steps of a day, on disk as soon as it is known."""

    place: Place
    machine: Mapping[str, Any]  # whose day it is
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    restored: str = ""  # how the machine was left
    salt: str = ""  # of digests; it stays here, so that they tell nobody anything

    @classmethod
    def of(cls, place: Place, machine: Mapping[str, Any]) -> "Diary":
        """Read the one of this folder, or begin one; one of another machine is an error."""
        kept = mapping_if_there(place.steps_file)
        machine = place.names.without(machine)
        here = mapping_if_there(place.machine_file)
        salt, found = str(here.get("salt") or secrets.token_hex(16)), _machine_id()
        is_another = bool(found and here.get("id")) and here["id"] != _digest(salt, found)
        if kept and (kept.get("machine") != machine or is_another):
            raise CastmatesError(
                f"{place.folder} holds the day of another machine or kernel; give the name of a new folder."
            )
        with suppress(TypeError, AttributeError):
            outcomes = {name: Outcome(**one) for name, one in kept.get("steps", {}).items()}
            return cls(place, machine, outcomes, salt=salt)
        raise CastmatesError(f"{place.steps_file} was not written by this version; give the name of a new folder.")

    def note(self, name: str, outcome: Outcome) -> None:
        """Keep what became of a step."""
        self.outcomes[name] = replace(outcome, words=self._words())
        self.write()

    def write(self) -> None:
        """Put it on disk."""
        if not self.place.machine_file.is_file():
            found = _machine_id()
            with writing(file := self.place.machine_file):
                replace_text(file, as_text({"salt": self.salt, "id": found and _digest(self.salt, found)}))
        steps = {name: asdict(one) for name, one in self.outcomes.items()}
        content = {
            "castmates": castmates.__version__,
            "machine": self.machine,
            "steps": steps,
            "restored": self.restored,
        }
        with writing(file := self.place.steps_file):
            replace_text(file, as_text({"command": COMMAND} | self.place.names.without(content)))

    def is_settled(self, step: Step) -> bool:
        """Whether a step is over and done with."""
        outcome = self.outcomes.get(step.name)
        if outcome is None or outcome.status not in SETTLED:
            return False
        return step.name not in BY_KERNEL or outcome.words == self._words()

    def _words(self) -> str:
        """What the kernel was started with: it decides what resctrl has."""
        return _digest(self.salt, host.command_line() or "")


def _machine_id() -> str:
    """What distinguishes this machine from others of its kind; "" where that cannot be read."""
    found = (read_text(file) or "" for file in MACHINE_IDS)
    return next((text for text in found if text not in ("", "uninitialized")), "")


def _digest(salt: str, text: str) -> str:
    return hashlib.sha256(f"{salt} {text}".encode()).hexdigest()[:16]


def follow(step: Step, diary: Diary, left: float, say: Say) -> None:
    """Do a step within the time that is left, and note what became of it; whatever happens in it ends nothing else."""
    at, begun = datetime.now().astimezone().isoformat(timespec="seconds"), time.monotonic()

    def note(status: Status, reason: str = "") -> None:
        seconds, reason = round(time.monotonic() - begun, 1), printable(reason)
        diary.note(step.name, Outcome(status, diary.place.names.without(reason), at, seconds))
        took = f" ({duration(seconds)})" if status in (DONE, FAILED) else ""
        say(f"{step.name}: {status}{took}{f': {reason}' if reason else ''}")

    if step.cannot:
        return note(NOT_HERE, step.cannot)
    if left < step.seconds:
        return note(NO_TIME, f"it takes about {duration(step.seconds)}, and {duration(max(0, left))} are left.")
    say(f"{step.name}: {step.about}, about {duration(step.seconds)}")
    try:
        why = step.run(diary.place, min(step.limit, left), say)
    except KeyboardInterrupt:
        note(ENDED, "the day was ended while it ran.")
        raise
    except (CastmatesError, OSError) as problem:
        why = str(problem)
    return note(FAILED, why) if why else note(DONE)


# A command of ours, in a process of its own.


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None  # None: it was ended, since its time was over
    printed: str
    why: str  # in a sentence; "" where it ended well


def bounded(
    words: Sequence[str], log: Path, seconds: float, say: Say, folder: Path | None = None, aloud: bool = True
) -> Ended:
    """Run `castmates` with these words for so long at most; it is ended in good order then, and where we are ended."""
    environment = os.environ | {
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join(
            [str(Path(castmates.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
    }
    child: subprocess.Popen[str] | None = None
    with log.open("w", encoding="utf-8") as kept:
        try:
            with _held():
                child = subprocess.Popen(
                    [sys.executable, "-P", "-m", "castmates", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    encoding="utf-8",
                    errors="replace",
                    cwd=folder,
                    env=environment,
                    start_new_session=True,  # Ctrl-C is for us, who end it in good order
                    preexec_fn=_begin(),
                )
                readers = [_Reader(child.stdout, kept, say if aloud else None), _Reader(child.stderr, kept, say)]
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            assert child is not None
            end(child)
            why = f"it was ended after {duration(seconds)}, since its time was over."
            return Ended(None, readers[0].text(), why)
        except BaseException:
            if child is not None:
                end(child)
            raise
        printed, said = (reader.text() for reader in readers)
    return Ended(child.returncode, printed, _why(child.returncode, said))


@contextmanager
def _held() -> Iterator[None]:
    """Let signals wait: what a handler raises while Python forks is lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> Callable[[], None]:
    end_too = end_with_parent(signal.SIGINT)

    def prepare() -> None:
        end_too()
        hear()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)

    return prepare


def _why(code: int, said: str) -> str:
    """The sentence that a command ended with."""
    if code == 0:
        return ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    own = [line.removeprefix("castmates: ") for line in lines if line.startswith("castmates: ")]
    return next(iter([*own[-1:], *lines[-1:]]), f"it ended with status {code}")


def end(child: "subprocess.Popen[str]") -> None:
    """Ask it to end, and insist; its warden then puts right what it could not."""
    with deaf():
        for number, patience in ESCALATION:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(patience)
                return


class _Reader:
    """Reads what a command prints, into its log and to the user."""

    def __init__(self, pipe: "IO[str] | None", log: IO[str], say: Say | None) -> None:
        assert pipe is not None
        self._pipe, self._log, self._say = pipe, log, say
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """All of it; who still holds the pipe after the command's end is not waited for."""
        self._thread.join(READ_S)
        return "".join(list(self._lines))

    def _read(self) -> None:
        with suppress(ValueError, OSError):
            for line in self._pipe:
                self._lines.append(line)
                self._log.write(line)
                self._log.flush()
                if self._say:
                    self._say(f"    {printable(line.rstrip())}")


@contextmanager
def signals_end_us() -> Iterator[None]:
    """Have SIGTERM and SIGHUP do what Ctrl-C does, so that everything is put right; what is ignored stays so."""

    def ask(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
