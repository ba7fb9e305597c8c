"""A member's phases files where ranges are kept: one of version 2, and one of version 1 for who knows no other."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from castmates.runner.processes.phase_log import PhaseLog
from castmates.workloads import phase_file, range_file
from castmates.workloads.phase_file import Chunk, Phase, PhasesError
from castmates.workloads.phase_layout import EPOCH, RANGE, SECOND
from castmates.workloads.range_file import Names, Range

Part = tuple[bytes, dict[int, str]]  # records, and their payloads
PHASE = "phase"


class RangeLog(PhaseLog):
    """What a member reports in version 2; what it reports in version 1, where it opened only that file, is `heard`."""

    def __init__(self, path: Path, reader: phase_file.Reader, older: PhaseLog, most: int) -> None:
        super().__init__(path, reader)
        self._older = older
        self.most = most  # ranges that are kept in a table
        self.left_out = 0  # of that table
        self._opened = False
        self._known = Names()
        self._payloads: list[dict[int, str]] = []
        self._between: list[Part] = []  # ranges and epochs that ended between two windows
        self._open = self._cut = self._lost_between = 0

    @classmethod
    def of(cls, path: Path, counters: Sequence[str], most: int) -> "RangeLog":
        """Make both files; the member takes the one of the version that it knows."""
        second = path.with_name(f"{path.name}2")
        phase_file.create(second, counters, version=SECOND.version)
        return cls(second, phase_file.Reader(second), PhaseLog.create(path, counters), most)

    @property
    def heard(self) -> PhaseLog:
        """The log of the file that the member opened."""
        return self if self._opened else self._older

    @property
    def variables(self) -> dict[str, str]:
        """What shows the member where to write."""
        return self._older.variables | {phase_file.SECOND_VARIABLE: str(self._mapped.path)}

    def forget(self) -> None:
        """Skip what was reported between two windows, but for what is longer than windows: ranges and epochs."""
        self._older.forget()
        if not self._mapped.is_sound():
            return
        try:
            chunk = self._reader.read(self._seen)
        except PhasesError as problem:
            self._mapped.spoilt(str(problem))
            return
        self._seen = chunk.head
        self._lost_between += chunk.lost
        size = self._reader.record_bytes
        records = (chunk.data[at : at + size] for at in range(0, len(chunk.data), size))
        if long := b"".join(one for one in records if range_file.type_of(one) in (RANGE, EPOCH)):
            self._between.append(range_file.without_payloads(long, len(self.counters)))

    def read(self) -> None:
        """Take what was reported since, in both files."""
        self._older.read()
        super().read()

    def parts(self) -> Iterator[tuple[list[Phase], bool]]:
        """Yield the phases of steps that were read, in order; and for each part whether records are missing before."""
        torn = set(self._torn)
        for number, data in enumerate(self._parts):
            yield list(range_file.phases_in(data, self._known, len(self.counters))), number in torn

    def ranges(self) -> Iterator[Range]:
        """Yield everything that was read, in windows and between them."""
        if not self._opened:
            for phases, _ in self._older.parts():
                for one in phases:
                    yield Range(PHASE, one.name, "", one.begin_ns, one.end_ns, one.step)
            return
        for data, payloads in [*zip(self._parts, self._payloads, strict=True), *self._between]:
            yield from range_file.ranges_in(data, payloads, self._known, len(self.counters))

    def about(self) -> dict[str, object]:
        """Return what was reported and what is missing."""
        if not self._opened:
            return self._older.about() | {"version": 1}
        found: dict[str, Any] = {
            "domains": [domain for domain in self._known.domains if domain],
            "not_ended": self._open,
            "payloads_left_out": self._cut,
            "lost_between_windows": self._lost_between,
            "ranges_left_out": self.left_out,
        }
        return super().about() | {"version": 2} | {key: value for key, value in found.items() if value}

    def _look(self) -> None:
        super()._look()
        self._opened = self._reader.opened
        self._known = Names.of(self._reader)
        self._names = self._known.phases
        self._open, self._cut = self._reader.open, self._reader.cut

    def _take(self, chunk: Chunk) -> None:
        records, payloads = range_file.without_payloads(chunk.data, len(self.counters))
        self._parts.append(records)
        self._payloads.append(payloads)
