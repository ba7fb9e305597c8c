"""What a launch shows while it runs: short notes to a listener, sent between rounds and never inside them.

They go to the socket that an environment variable names, as services notify systemd. No listener is needed: a note that
cannot be delivered at once is dropped. Each note holds everything so far, so that nothing depends on the one before.
"""

import json
import os
import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from castmates.study.reasons import Reason, ReasonKind

if TYPE_CHECKING:  # a listener need not load the runner
    from castmates.runner.outcome import Measured, Outcome
    from castmates.runner.rounds.window import Window
    from castmates.study.spec import Launch

VARIABLE = "CASTMATES_PROGRESS"  # the name of an abstract socket of Linux: it needs no file and is gone with its owner
MOST_NAMED = 5
PATIENCE = 0.5  # seconds that the last note of a launch may take to be delivered


def waiting(launch: "Launch", words: str) -> None:
    """Another sweep measures on this machine."""
    _send(launch, {"state": "waiting", "reason": words})


def launching(launch: "Launch") -> None:
    """Programs are being started."""
    _send(launch, {"state": "launching"})


def rounds_begin(outcome: "Outcome") -> None:
    """Programs are ready; from here on nothing should run beside them."""
    _send(outcome.launch, {"state": "measuring", "rounds": outcome.launch.design.rounds})


def round_ended(outcome: "Measured", number: int) -> None:
    """A round is over; the next one begins at once."""
    if VARIABLE in os.environ:
        numbers = {"round": number, "rounds": outcome.launch.design.rounds}
        _send(outcome.launch, {"state": "measuring"} | numbers | _so_far(outcome))


def ended(outcome: "Outcome") -> None:
    """The launch is over and recorded."""
    if VARIABLE in os.environ:
        facts = {"status": outcome.status, "reason": outcome.reason, "seconds": outcome.total_seconds}
        counted = _so_far(cast("Measured", outcome)) if hasattr(outcome, "windows") else {}
        _send(outcome.launch, {"state": "ended"} | facts | counted, PATIENCE)


def _so_far(outcome: "Measured") -> dict[str, object]:
    because, who = grouped(outcome.windows)
    rejected = sum(bool(window.reasons) for window in outcome.windows)
    return {
        "clean": outcome.rounds,
        "kept": len(outcome.windows) - rejected,
        "rejected": rejected,
        "because": dict(because),
        "who": dict(who.most_common(MOST_NAMED)),
    }


def grouped(windows: Iterable["Window"]) -> tuple[Counter[str], Counter[str]]:
    """Of the rejected windows: how many had each kind of reason, and how many each program that took time."""
    because: Counter[str] = Counter()
    who: Counter[str] = Counter()
    for window in windows:
        reasons = _proper(window)
        because.update({reason.kind for reason in reasons})
        who.update({reason.blamed for reason in reasons if reason.blamed})
    return because, who


def summary(windows: Sequence["Window"]) -> str:
    """How many windows were rejected and for what, in a few words; "" where none was."""
    because, who = grouped(windows)
    if not because:
        return ""
    rejected = sum(bool(window.reasons) for window in windows)
    names = f"; {_counted(who.most_common(MOST_NAMED))}" if who else ""
    return f"{rejected} rejected ({_counted(because.most_common())}{names})"


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts)


def _proper(window: "Window") -> list[Reason]:
    """The reasons of a window; where too few of its slices count, those of its slices."""
    few = [reason for reason in window.reasons if reason.kind == ReasonKind.TOO_FEW_CYCLES]
    others = [reason for reason in window.reasons if reason not in few]
    return [*others, *([reason for each in window.slices for reason in each.reasons] or few)] if few else others


def _send(launch: "Launch", facts: dict[str, object], patience: float = 0.0) -> None:
    name = os.environ.get(VARIABLE)
    if not name:
        return
    note = json.dumps({"study": launch.study, "launch": launch.path} | facts)
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(patience)
        sender.sendto(note.encode(), f"\0{name}")
