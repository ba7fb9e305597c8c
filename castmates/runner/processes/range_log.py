"""A member's phases file where ranges are kept too."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from castmates.runner.processes.phase_log import PhaseLog
from castmates.workloads import phase_file, phase_records
from castmates.workloads.phase_file import Chunk, PhasesError
from castmates.workloads.phase_layout import EPOCH, RANGE
from castmates.workloads.phase_records import Range

Part = tuple[bytes, dict[int, str]]  # records, and their payloads


class RangeLog(PhaseLog):
    """What a member reports of its phases, ranges, instants and epochs."""

    def __init__(self, path: Path, reader: phase_file.Reader, most: int) -> None:
        super().__init__(path, reader)
        self.most = most  # ranges that are kept in a table
        self.left_out = 0  # of that table
        self._payloads: list[dict[int, str]] = []
        self._between: list[Part] = []  # ranges and epochs that ended between two windows
        self._open = self._cut = self._lost_between = 0

    @classmethod
    def of(cls, path: Path, counters: Sequence[str], most: int) -> "RangeLog":
        """Make the file that the member is to write to."""
        phase_file.create(path, counters)
        return cls(path, phase_file.Reader(path), most)

    def forget(self) -> None:
        """Skip what was reported between two windows, but for what is longer than windows: ranges and epochs."""
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
        if long := b"".join(one for one in records if phase_records.type_of(one) in (RANGE, EPOCH)):
            self._between.append(phase_records.without_payloads(long, len(self.counters)))

    def ranges(self) -> Iterator[Range]:
        """Yield everything that was read, in windows and between them."""
        for data, payloads in [*zip(self._parts, self._payloads, strict=True), *self._between]:
            yield from phase_records.ranges_in(data, payloads, self._known, len(self.counters))

    def about(self) -> dict[str, object]:
        """Return what was reported and what is missing."""
        found: dict[str, object] = {
            "domains": [domain for domain in self._known.domains if domain],
            "not_ended": self._open,
            "payloads_left_out": self._cut,
            "lost_between_windows": self._lost_between,
            "ranges_left_out": self.left_out,
        }
        return super().about() | {key: value for key, value in found.items() if value}

    def _look(self) -> None:
        super()._look()
        self._open, self._cut = self._reader.open, self._reader.cut

    def _take(self, chunk: Chunk) -> None:
        records, payloads = phase_records.without_payloads(chunk.data, len(self.counters))
        self._parts.append(records)
        self._payloads.append(payloads)
