"""A service's requests file as the runner holds it: scenes are announced in it, and records are read out of it."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from castmates.runner.processes.mapped_file import MappedFile
from castmates.workloads import request_file

if TYPE_CHECKING:  # a launch waits for no heavy import
    import numpy as np
    import numpy.typing as npt


class RequestLog:
    """What became of the requests to a service, from its start on."""

    def __init__(self, path: Path) -> None:
        self._mapped, self._file = MappedFile(path, "requests"), request_file.Runners(path)
        self._seen = 0
        self._parts: list[bytes] = []
        self._overrun = self._impossible = 0  # records that were overwritten before they were read, or are none

    @classmethod
    def create(cls, path: Path) -> "RequestLog":
        """Make the file that the service is to write to."""
        request_file.create(path)
        return cls(path)

    @property
    def variables(self) -> dict[str, str]:
        """What shows the service where to write."""
        return {request_file.VARIABLE: str(self._mapped.path)}

    def scene_ends(self, now_ns: int) -> None:
        """Let a service that runs know that the scene is over: its schedule ends here, and begins anew."""
        if self._mapped.is_sound():
            self._file.scene_ends(now_ns)

    def scene_begins(self) -> None:
        """Let a service that was frozen begin its schedule anew, when it is thawed."""
        if self._mapped.is_sound():
            self._file.scene_begins()

    def read(self) -> None:
        """Take what was recorded since; the file holds only the latest."""
        if not self._mapped.is_sound():
            return
        head = self._file.head
        if head < self._seen:
            self._mapped.spoilt("its number of records went back")
            return
        chunk = self._file.read(self._seen)
        self._overrun += chunk.lost
        if chunk.data:
            self._parts.append(chunk.data)
        self._seen = chunk.head

    def records(self) -> "npt.NDArray[np.uint64]":
        """A row per request (due, sent, answered), in order; what cannot be one is left out and counted as lost.

        An answer may come any time later: a request may be on its way while the service stands frozen in other scenes.
        """
        import numpy as np

        every = np.frombuffer(b"".join(self._parts), dtype=np.uint64).reshape(-1, 3)
        due, sent, answered = every[:, 0], every[:, 1], every[:, 2]
        unsent, unanswered = sent == 0, answered == 0
        possible = (unsent & unanswered) | (~unsent & (sent >= due) & (unanswered | (answered >= sent)))
        possible &= np.maximum(due, answered) <= time.monotonic_ns()
        self._impossible = int((~possible).sum())
        kept: npt.NDArray[np.uint64] = every[possible]
        return kept

    @property
    def lost(self) -> int:
        """How many records are missing, as far as it is known: `records` finds those that are none."""
        return self._overrun + self._impossible

    @property
    def trouble(self) -> str:
        """Why nothing more is read."""
        return self._mapped.trouble

    def about(self) -> dict[str, object]:
        """Return what is missing."""
        return {"records": self._seen, "lost": self.lost} | ({"trouble": self.trouble} if self.trouble else {})
