"""A member's phases file as the runner holds it: read while windows are open, kept as it was read."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from castmates.runner.processes.mapped_file import MappedFile
from castmates.workloads import phase_file, phase_records
from castmates.workloads.phase_file import Chunk, PhasesError
from castmates.workloads.phase_records import Names, Phase


class PhaseLog:
    """What a member reports of its phases, from its start on."""

    def __init__(self, path: Path, reader: phase_file.Reader) -> None:
        self._mapped, self._reader = MappedFile(path, "phases"), reader
        self._seen = 0
        self._parts: list[bytes] = []
        self._torn: list[int] = []  # before which part records were lost
        self.lost = 0  # overwritten before they were read
        self._known = Names()
        self.counters = reader.counters  # that the member was to read, each with how it fared
        self.lacks = reader.lacks  # what the numbers of some of them lack
        self._dropped = 0

    @classmethod
    def create(cls, path: Path, counters: Sequence[str]) -> "PhaseLog":
        """Make the file that the member is to write to; too many counters are a mistake in the catalogue."""
        phase_file.create(path, counters, ranges=False)
        return cls(path, phase_file.Reader(path))

    @property
    def variables(self) -> dict[str, str]:
        """What shows the member where to write."""
        return {phase_file.VARIABLE: str(self._mapped.path)}

    @property
    def trouble(self) -> str:
        """Why nothing more is read."""
        return self._mapped.trouble

    @property
    def names(self) -> Sequence[str]:
        """The phases in the order in which they first began, those around others before these."""
        return self._known.phases

    def forget(self) -> None:
        """Skip what was reported between two windows."""
        if self._mapped.is_sound():
            self._seen = self._reader.head

    def read(self) -> None:
        """Take what was reported since; the file holds only the latest."""
        if not self._mapped.is_sound():
            return
        try:
            chunk = self._reader.read(self._seen)
            self._look()
        except PhasesError as problem:
            self._mapped.spoilt(str(problem))
            return
        if chunk.lost:
            self.lost += chunk.lost
            self._torn.append(len(self._parts))
        if chunk.data:
            self._take(chunk)
        self._seen = chunk.head

    def parts(self) -> Iterator[tuple[list[Phase], bool]]:
        """Yield what was read, in order; and for each part whether records are missing before it."""
        torn = set(self._torn)
        for number, data in enumerate(self._parts):
            yield list(phase_records.phases_in(data, self._known, len(self.counters))), number in torn

    def about(self) -> dict[str, object]:
        """Return what was reported and what is missing."""
        about: dict[str, object] = {"names": self.names, "lost": self.lost, "not_recorded": self._dropped}
        trouble = self.trouble or ("" if self.names else "it reported no phase")
        more = {"counters": self.counters, "trouble": trouble}
        return about | {key: value for key, value in more.items() if value}

    def _look(self) -> None:
        """Take what stands in front of the records, after these."""
        self._known, self.counters = Names.of(self._reader), self._reader.counters
        self.lacks, self._dropped = self._reader.lacks, self._reader.dropped

    def _take(self, chunk: Chunk) -> None:
        self._parts.append(phase_records.without_payloads(chunk.data, len(self.counters))[0])
