"""Of the names that processors have for an event, the one that perf lists here."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence

from castmates.linux.capable_copy import PERF_PACKAGES
from castmates.protocols import Refusal
from castmates.study.event_sets import PROCESSOR_SETS, names_of

PATIENCE_S = 20.0
NO_PERF = f"perf is not here, which knows the processor's own events; install {PERF_PACKAGES}"
NONE_LISTED = (
    "perf lists none of this set's events: a virtual machine has none, and a perf that is older than the processor "
    "knows none of it"
)
_OF_UNIT = re.compile(r"[\w.-]+/([^/=,]+)/")
_SHORT = {
    "branches": "branch-instructions",
    "cpu-cycles": "cycles",
    "cs": "context-switches",
    "faults": "page-faults",
    "migrations": "cpu-migrations",
}
Listed = Callable[[], frozenset[str] | None]  # the names of all events that perf lists; None where it is not here
Sets = list[tuple[str, list[str]]]


def choose(sets: Sequence[tuple[str, Sequence[str]]], listed: Listed) -> tuple[Sets, dict[str, Refusal]]:
    """The sets with one name in place of each choice, without those that nothing is listed of; and which lack all.

    perf is asked only where there is something to choose.
    """
    if not any(group in PROCESSOR_SETS for group, _ in sets):
        return [(group, list(events)) for group, events in sets], {}
    here = listed()
    chosen: Sets = []
    lacking: dict[str, Refusal] = {}
    for group, events in sets:
        own = group in PROCESSOR_SETS
        found = [name for words in events if (name := _first(words, here or frozenset()) if own else words)]
        chosen.append((group, found))
        if not found:
            lacking[group] = Refusal("not supported", NO_PERF if here is None else NONE_LISTED)
    return chosen, lacking


def _first(words: str, here: frozenset[str]) -> str:
    """The first of these names that is listed here; "" where none is."""
    return next((name for name in names_of(words) if name in here), "")


def list_names() -> frozenset[str] | None:
    """Have perf list the names of all events that it knows on this processor."""
    perf = shutil.which("perf")
    if perf is None:
        return None
    try:
        done = subprocess.run(
            [perf, "list", "--raw-dump"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return names_in(done.stdout) if done.returncode == 0 else None


def names_in(output: str) -> frozenset[str]:
    """The names in perf's list: `cpu_core/mem_load_retired.l3_miss/` is one too.

    Of an event with two names some versions list the one (6.1: page-faults), and some the other (6.12: faults).
    """
    listed = {match[1] if (match := _OF_UNIT.fullmatch(word)) else word for word in output.split()}
    return frozenset(listed | {full for short, full in _SHORT.items() if short in listed})
