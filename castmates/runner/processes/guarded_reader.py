"""A heartbeat reader that a workload cannot hurt, whatever it does to its file."""

from itertools import pairwise
from pathlib import Path

from castmates.runner.processes.mapped_file import identity_of
from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import Beats, HeartbeatError, State


class GuardedReader(heartbeat.Reader):
    """Looks at the file before it touches the mapping: to read behind the end of a cut file would kill the runner."""

    def __init__(self, path: Path, member: str) -> None:
        super().__init__(path)
        self._file, self._member = path, member
        self._identity = identity_of(path)

    @property
    def state(self) -> State:
        """What the workload last reported of itself."""
        self._check()
        return super().state

    @property
    def head(self) -> int:
        """How many records were ever written."""
        self._check()
        return super().head

    def beats(self, since: int = 0) -> Beats:
        """Read the records from number `since` on, which must go forward in time and in units."""
        beats = super().beats(since)
        if any(after[0] < before[0] or after[1] < before[1] for before, after in pairwise(beats.records)):
            raise HeartbeatError(f"{self._member} {_SPOILT}: its records do not go forward")
        return beats

    def _check(self) -> None:
        if identity_of(self._file) != self._identity:
            raise HeartbeatError(f"{self._member} {_SPOILT}: it was removed, replaced or cut")


_SPOILT = f"has spoilt its heartbeat file (${heartbeat.VARIABLE}, see castmates help heartbeat)"
