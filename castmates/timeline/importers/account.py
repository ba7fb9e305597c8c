"""What an importer read of its source, and the record of the trace: every event is used, or left out by name."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from castmates import __version__


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


IMPORTED = "imported"  # the status of such a trace: nothing of it was recorded here


def record(
    path: Path,
    name: str,
    account: Account,
    clock: str,
    size: int,
    missing: Sequence[str] = (),
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """The record of a trace that another program made."""
    return {
        "format": 1,
        "status": IMPORTED,
        "reason": "",
        "study": "",
        "mix": path.name,
        "partition": "",
        "lead": "",
        "members": {},
        "platform": IMPORTED,
        "imported": {"from": path.name, "by": name, "clock": clock},
        "sources": [account.source(name, size, clock=clock)],
        "clocks": [],
        "missing": {words: [] for words in missing},
        "versions": {"castmates": __version__},
    } | more
