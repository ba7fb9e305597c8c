"""What an event is on this processor: perf is asked, which knows its names, its units and its kinds of cores."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from castmates.linux import event_names
from castmates.linux.capable_copy import PERF_PACKAGES
from castmates.linux.perf_event import EXCLUDE_HV, EXCLUDE_IDLE, EXCLUDE_KERNEL, EXCLUDE_USER, SOFTWARE, Attr
from castmates.protocols import Refusal
from castmates.study.counter_keys import PROCESSOR_SETS, event_name
from castmates.study.event_spelling import BETWEEN, names_of

PATIENCE_S = 20.0


# Of the names that processors have for an event, the one that perf lists here.

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

    perf is asked only where there is something to choose. A choice of the user's of which it lists nothing keeps its
    last name, for which perf gives the reason.
    """
    if not any(group in PROCESSOR_SETS or any(BETWEEN in words for words in events) for group, events in sets):
        return [(group, list(events)) for group, events in sets], {}
    here = listed()
    chosen: Sets = []
    lacking: dict[str, Refusal] = {}
    for group, events in sets:
        own = group in PROCESSOR_SETS
        found = [name for words in events if (name := _chosen(words, here or frozenset(), own))]
        chosen.append((group, found))
        if not found:
            lacking[group] = Refusal("not supported", NO_PERF if here is None else NONE_LISTED)
    return chosen, lacking


def _chosen(words: str, here: frozenset[str], own: bool) -> str:
    """The first of these names that is listed here; where none is, "" of our own sets."""
    names = names_of(words)
    if len(names) == 1 and not own:
        return words
    return next((name for name in names if name.partition(":")[0] in here), "" if own else names[-1])


def list_names() -> frozenset[str] | None:
    """Have perf list the names of all events that it knows on this processor."""
    perf = shutil.which("perf")
    if perf is None:
        return None
    done = _done(perf, "list", "--raw-dump")
    return names_in(done.stdout) if done is not None and done.returncode == 0 else None


def names_in(output: str) -> frozenset[str]:
    """The names in perf's list: `cpu_core/mem_load_retired.l3_miss/` is one too.

    Of an event with two names some versions list the one (6.1: page-faults), and some the other (6.12: faults).
    """
    listed = {match[1] if (match := _OF_UNIT.fullmatch(word)) else word for word in output.split()}
    return frozenset(listed | {full for short, full in _SHORT.items() if short in listed})


OWN = frozenset(("duration_time", "user_time", "system_time", "dummy", "bpf-output"))  # perf's
_MARK = "dummy:u"  # which perf opens between those that we ask for
_COUNTS_NOTHING = ((SOFTWARE, 9), (SOFTWARE, 10))  # dummy and bpf-output
_FIELD = re.compile(r"\s+(\{[^}]*\}|\w+)\s+(.+)")
_DECIDING, _BEYOND = ("type", "config", "config1", "config2"), "config3"
_EXCLUDE = {
    "exclude_user": EXCLUDE_USER,
    "exclude_kernel": EXCLUDE_KERNEL,
    "exclude_hv": EXCLUDE_HV,
    "exclude_idle": EXCLUDE_IDLE,
}
Ask = Callable[[Sequence[str]], str | None]  # events -> what perf prints; None where it is not here or is refused


@dataclass(frozen=True)
class Event:
    """An event that a study wants, and what it is here."""

    words: str  # in perf's words, as the study has them
    name: str
    group: str  # the set that names it first
    attrs: tuple[Attr, ...] = ()  # one for each kind of core; none where it is not known
    source: str = ""  # where it is known from
    refusal: Refusal | None = None  # where it is not known

    @property
    def in_software(self) -> bool:
        """Whether the kernel counts it itself."""
        return bool(self.attrs) and all(attr.in_software for attr in self.attrs)


def resolve(
    sets: Sequence[tuple[str, Sequence[str]]], ask: Ask | None = None, listed: Listed = list_names
) -> list[Event]:
    """Every event of these sets once, in their order, and one for each set that the processor has nothing of."""
    ask = ask or ask_perf
    chosen, lacking = choose(sets, listed)
    wanted: dict[str, tuple[str, str]] = {}
    for group, events in chosen:
        for words in events:
            wanted.setdefault(event_name(words), (words, group))
    own = {words for words, _ in wanted.values() if words.partition(":")[0] in OWN}
    at_once = _at_once([words for words, _ in wanted.values() if words not in own], ask)
    resolved = [
        Event(words, name, group, refusal=Refusal("not supported", "perf measures it itself; it is no counter"))
        if words in own
        else Event(words, name, group, at_once[words], "perf")
        if words in at_once
        else _resolved(words, name, group, ask([words]))
        for name, (words, group) in wanted.items()
    ]
    return [*resolved, *(Event(name, name, name, refusal=why) for name, why in lacking.items())]


def _at_once(words: Sequence[str], ask: Ask) -> dict[str, tuple[Attr, ...]]:
    """Ask for all of them in one go, a mark behind each; nothing is known where perf knows not all of them."""
    output = ask([word for name in words for word in (name, _MARK)]) if len(words) > 1 else None
    resolved: list[tuple[Attr, ...]] = []
    tried: list[Attr] = []
    for attr in _tries(output or ""):
        if (attr.kind, attr.config) in _COUNTS_NOTHING:
            resolved.append(_first(tried))
            tried = []
        else:
            tried.append(attr)
    return dict(zip(words, resolved, strict=True)) if len(resolved) == len(words) and all(resolved) else {}


def _resolved(words: str, name: str, group: str, output: str | None) -> Event:
    if output is None:
        attr = event_names.look_up(words)
        if attr is None:
            why = "the kernel's own events alone are known without perf, which is not here or may not count"
            return Event(words, name, group, refusal=Refusal("not supported", why))
        return Event(words, name, group, (attr,), "the kernel's own table (perf is not here or may not count)")
    attrs = attributes(output)
    if not attrs:
        why = f"perf does not know this event here ({_complaint(output)})"
        if any(_number(fields.get(_BEYOND, "0")) for fields in _wanted(output)):
            why = f"perf gives it the word {_BEYOND}, which castmates does not hand on"
        return Event(words, name, group, refusal=Refusal("not supported", why))
    return Event(words, name, group, attrs, "perf")


def ask_perf(words: Sequence[str]) -> str | None:
    """Have perf open the events for a program that does nothing, and show what it asks of the kernel."""
    perf = shutil.which("perf")
    if perf is None:
        return None
    done = _done(perf, "stat", "-vv", *(word for event in words for word in ("-e", event)), "true")
    if done is None:
        return None
    output = done.stderr + done.stdout
    # Some distributions install a wrapper that only reports that this kernel's perf is missing.
    return output if done.returncode == 0 or "event syntax" in output or "perf list" in output else None


def attributes(output: str) -> tuple[Attr, ...]:
    """Read an event out of what `perf stat -vv` prints, once for each kind of core; what counts nothing is none."""
    return _first(attr for attr in _tries(output) if (attr.kind, attr.config) not in _COUNTS_NOTHING)


def _first(tries: Iterable[Attr]) -> tuple[Attr, ...]:
    """Take the first try for each kind of core, which is what was meant.

    perf prints what it asks the kernel for before it knows the answer, and again where it tries with less.
    """
    firsts: dict[Attr, Attr] = {}
    for attr in tries:
        firsts.setdefault(attr._replace(exclude=0), attr)
    return tuple(firsts.values())


def _tries(output: str) -> Iterator[Attr]:
    """Yield everything that perf wants counted, as far as it can be handed on."""
    for fields in _wanted(output):
        # What takes config3 would be another event without it, and attrs are filled as far as config2.
        if not _number(fields.get(_BEYOND, "0")):
            exclude = sum(bit for name, bit in _EXCLUDE.items() if _number(fields.get(name, "0")))
            kind, config, config1, config2 = (_number(fields.get(name, "0")) for name in _DECIDING)
            yield Attr(kind, config, config1, config2, exclude)


def _wanted(output: str) -> Iterator[dict[str, str]]:
    """Yield the fields of everything that perf wants counted. What newer perfs try out for themselves has no times."""
    for part in output.split("perf_event_attr:")[1:]:
        fields = dict(_fields(part))
        if "TOTAL_TIME_ENABLED" in fields.get("read_format", ""):
            yield fields


def _fields(part: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of one attr, which ends with a line of hyphens; a union's name ends with what we want of it."""
    for line in part.split("\n-----", 1)[0].splitlines():
        if match := _FIELD.fullmatch(line):
            yield match[1].strip("{ }").split(",")[-1].strip(), match[2].strip()


def _number(text: str) -> int:
    """`0x1 (PERF_COUNT_HW_INSTRUCTIONS)` -> 1."""
    try:
        return int(text.split()[0], 0)
    except (ValueError, IndexError):
        return 0


def _complaint(output: str) -> str:
    """Return what perf complains of, in its own words."""
    lines = [line.strip(" \\_") for line in output.splitlines()]
    wrong = [line for line in lines if line.startswith(("event syntax", "Cannot", "Unable", "Bad", "unknown"))]
    return "; ".join(dict.fromkeys(wrong[:2])) or "it gave no reason"


def _done(*words: str) -> "subprocess.CompletedProcess[str] | None":
    """What a program printed, in plain English; None where it cannot be started or does not end."""
    try:
        return subprocess.run(
            words,
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
