"""Why a slice or a window does not count: its kind, which programs look at, and words for people."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

NOT_VISIBLE = "a process that is not visible here"
_BETWEEN = "; "


class ReasonKind(StrEnum):
    """Every proof of the ledger, as docs/ledger.md lists them."""

    TOO_FEW_STEPS = "too few steps"
    TOO_FEW_CYCLES = "too few cycles"
    NO_PROGRESS = "no progress"
    LOST_HEARTBEATS = "lost heartbeats"
    RESTART_GAP = "restart gap"
    NOT_SETTLED = "not settled"
    NOT_FROZEN = "not frozen"
    OFF_ITS_CPUS = "off its CPUs"
    MASKS_CHANGED = "masks changed"
    NOT_EMPTIED = "not emptied"
    STILL_FILLING = "still filling"
    QUOTA_CHANGED = "quota changed"
    QUOTA_EXCEEDED = "quota exceeded"
    PREFETCHERS_CHANGED = "prefetchers changed"
    OUT_OF_ITS_GROUP = "out of its group"
    STEAL = "steal"
    FOREIGN_LOAD = "foreign load"
    UNPROVEN = "unproven"
    NEIGHBOURS = "neighbours"
    FOREIGN_TRAFFIC = "foreign traffic"
    SWAPPING = "swapping"
    GOVERNOR_CHANGED = "governor changed"
    OFFLINE = "offline"
    SLEPT = "the machine slept"


@dataclass(frozen=True)
class Reason:
    """One proof against a slice or a window."""

    kind: ReasonKind
    detail: str
    blamed: str = ""  # the program that took most of it, interrupts, or NOT_VISIBLE; the detail names it too

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def kinds(reasons: Iterable[Reason]) -> list[ReasonKind]:
    """Their kinds, each once."""
    return list(dict.fromkeys(reason.kind for reason in reasons))


def reason_columns(reasons: Iterable[Reason]) -> dict[str, str]:
    """As the tables of a launch have them."""
    reasons = list(reasons)
    blamed = dict.fromkeys(reason.blamed for reason in reasons if reason.blamed)
    columns = {"reasons": map(str, reasons), "reason_kinds": kinds(reasons), "blamed": blamed}
    return {name: _BETWEEN.join(parts) for name, parts in columns.items()}


def listed_in(cell: str) -> list[str]:
    """The kinds, or the blamed, that a cell of these columns holds."""
    return cell.split(_BETWEEN) if cell else []


def program_of(taker: str) -> str:
    """A program's name without its process: `children of make (pid 7)` is `make`."""
    name = re.sub(r" \(pid \d+\)$", "", taker).removeprefix("children of ")
    return "kworker" if name.startswith("kworker/") else name
