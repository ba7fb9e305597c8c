"""Which families of events were recorded: what was not is not known, and not 0."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

SCHEDULER, SYSCALLS, FAULTS, INTERRUPTS = "scheduler", "syscalls", "faults", "interrupts"
WAKES = "wakes"  # what the scheduler's own events show, and switches alone do not
PERF = "perf"
KINDS = {  # what each of them leaves in a timeline
    SCHEDULER: {"state"},
    SYSCALLS: {"syscall"},
    FAULTS: {"fault"},
    INTERRUPTS: {"irq", "softirq"},
}
WORDS = {
    SCHEDULER: "the scheduler's events were",
    WAKES: "who woke a thread and who ran instead of it were",
    SYSCALLS: "system calls were",
    FAULTS: "page faults were",
    INTERRUPTS: "interrupts were",
}
_OF_STATES = (
    "running", "queued", "blocked", "queued_share", "queued_own", "queued_members", "queued_others", "queued_idle",
    "voluntary_per_s", "involuntary_per_s", "migrations_per_s", "migrations_per_cpu_s", "wakeups_per_s",
    "queue_p50_us", "queue_p95_us", "queue_p99_us", "queue_max_us", "input_only_share", "unknown", "wakeups_seen",
)  # fmt: skip
_OF_WAKES = (
    "queued_own", "queued_members", "queued_others", "queued_idle", "wakeups_per_s", "queue_p50_us", "queue_p95_us",
    "queue_p99_us", "queue_max_us", "wakeups_seen",
)  # fmt: skip
OF_FAMILY = {  # columns of `trace_summary` that are known of each family of events alone
    SCHEDULER: _OF_STATES,
    WAKES: _OF_WAKES,
    SYSCALLS: ("memory_calls_per_step", "memory_calls_ms", "memory_calls_share"),
    FAULTS: ("faults_per_s", "faults_per_cpu_s", "faults_per_step", "faults_ratio"),
    INTERRUPTS: ("interrupts_per_s", "interrupts_share"),
}
OF_INPUT = "which of its threads are of the input is not known"  # how the reason of one column begins
_OF_CPU_TIME = ("memory_calls_share", "faults_per_cpu_s", "interrupts_share")  # divided by what the scheduler shows
# How perf's events of a family begin, as the command of a recording names them.
_EVENTS = {
    SCHEDULER: ("sched:", "--switch-events"),
    SYSCALLS: ("raw_syscalls:",),
    FAULTS: ("page-faults", "exceptions:"),
    INTERRUPTS: ("irq:",),
}


def recorded_families(about: Mapping[str, Any], scene: str, there: Collection[str]) -> frozenset[str]:
    """The families that a scene was recorded with, by the record of the launch; `there` are those with any event.

    A launch asks for families, and perf may not be allowed to record all of them. A trace that was made elsewhere
    does not show what it was asked for: what it has no event of is not known.
    """
    asked = dict(about.get("filters") or {}).get("events")
    if asked is None:
        return frozenset({*there, *({WAKES} if SCHEDULER in there else ())})
    recordings = [each for each in about.get("scenes") or () if each.get("scene") == scene]
    commands = [list(dict(each.get("commands") or {}).get(PERF) or ()) for each in recordings]
    sources = [source for each in recordings for source in _perf(each)]
    if sources and all(source.get("reason") and not source.get("events") for source in sources):
        return frozenset()
    known = [set(asked)]
    # A family of which any recording has no event in its command was not recorded of the whole scene.
    known += [{family for family in KINDS if _is_in(command, family)} for command in commands if command]
    found = set.intersection(*known) & set(KINDS)
    wakes = SCHEDULER in found and all(any(map(_is_own, command)) for command in commands if command)
    return frozenset({*found, *({WAKES} if wakes else ())})


def lacking(families: Collection[str], *wanted: str) -> Iterator[str]:
    """Sentences' parts: which of these families were not recorded."""
    for family in wanted:
        if family not in families and (family != WAKES or SCHEDULER in families):
            yield f"{WORDS[family]} not recorded"


def why_of(columns: Collection[str], not_known: str) -> str:
    """Of the reasons why a row of `trace_summary` lacks numbers, those that these columns have."""
    of_others = {
        f"{WORDS[family]} not recorded"
        for family, known in OF_FAMILY.items()
        if not {*known, *(_OF_CPU_TIME if family == SCHEDULER else ())} & set(columns)
    }
    reasons = [reason for reason in not_known.split("; ") if reason not in of_others]
    return "; ".join(one for one in reasons if "input_only_share" in columns or not one.startswith(OF_INPUT))


def _perf(recording: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [source for source in recording.get("sources") or () if source.get("name") == PERF]


def _is_in(command: list[str], family: str) -> bool:
    return any(word.startswith(_EVENTS[family]) for word in command)


def _is_own(word: str) -> bool:
    """Whether this word of a command names an event of the scheduler itself."""
    return word.startswith("sched:")
