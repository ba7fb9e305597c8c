"""What is written of an imported trace beside its tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from castmates import __version__
from castmates.timeline.importers.account import Account

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
