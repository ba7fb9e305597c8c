"""Receives the notes that launches send between their rounds (castmates/runner/progress.py)."""

import json
import os
import secrets
import select
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json
from castmates.runner.progress import VARIABLE
from castmates.study.spec import Launch

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
