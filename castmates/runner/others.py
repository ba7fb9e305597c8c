"""Who else takes CPUs: right now, before anything is launched, and in words."""

import os
import time
from collections.abc import Iterable, Iterator

from castmates.counters.proc.other_programs import Culprits
from castmates.english import listed
from castmates.study.reasons import program_of

NAMED = 3
LEAST = 0.02  # of a CPU: less is not worth a name
MUCH = 0.3  # of a CPU: launches beside that are mostly rejected
LOOK = 1.0  # seconds


def busy_now() -> str:
    """Who takes CPUs right now that this process may use; "" where nobody takes much."""
    cpus = sorted(os.sched_getaffinity(0))
    collector = Culprits({f"cpu{cpu}": [cpu] for cpu in cpus})
    collector.attach({})
    collector.start([])
    time.sleep(LOOK)
    samples = ((each.subject, each.metric, each.value, each.note) for each in collector.stop())
    return shares(taken(samples), LOOK, MUCH)


def taken(samples: Iterable[tuple[str, str, float | None, str]]) -> Iterator[tuple[str, float]]:
    """Programs and the seconds of a CPU that they took; what is around the same cache would stand there once more."""
    for subject, metric, value, who in samples:
        if metric == "foreign_s" and subject.removeprefix("cpu").isdecimal():
            yield program_of(who), value or 0.0


def shares(took: Iterable[tuple[str, float]], seconds: float, least: float = LEAST) -> str:
    """Clang (140 % of a CPU) and bash (20 % of a CPU); "" where all of them together took less than `least`."""
    found: dict[str, float] = {}
    for who, value in took:
        found[who] = found.get(who, 0.0) + value
    if not seconds or sum(found.values()) < least * seconds:
        return ""
    most = sorted(found.items(), key=lambda each: -each[1])[:NAMED]
    return listed([f"{who} ({100 * own / seconds:.0f} % of a CPU)" for who, own in most if own >= LEAST * seconds])
