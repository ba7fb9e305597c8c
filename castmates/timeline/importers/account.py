"""What an importer read of its source: every event is used, or left out by name."""

from collections import Counter
from collections.abc import Mapping
from typing import Any


class Account:
    """Counts events by name; `read` is counted where events are found, apart from what is done with them."""

    def __init__(self) -> None:
        self.read = 0
        self.lost = 0  # that the recorder reports
        self.used: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def use(self, name: str, count: int = 1) -> None:
        """So many events of this name are in the timeline, or end something in it."""
        if count:
            self.used[name] += count

    def leave(self, name: str, count: int = 1) -> None:
        """So many events of this name are not in the timeline; the name says why where that is not plain."""
        if count:
            self.left_out[name] += count

    def leave_used(self, name: str, reason: str, count: int) -> None:
        """So many events that were taken up turned out to be of no use."""
        if count:
            self.used[name] -= count
            self.left_out[f"{name} {reason}"] += count
            self.used = +self.used

    def source(self, name: str, size: int, **more: Any) -> Mapping[str, Any]:  # noqa: ANN401
        """A line of `sources` in the record of a trace."""
        return {
            "name": name,
            "events": dict(self.used),
            "read": self.read,
            "left_out": dict(self.left_out),
            "lost": self.lost,
            "bytes": size,
            "reason": "",
            **more,
        }
