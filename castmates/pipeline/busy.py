"""Who disturbed launches: the programs of others that took most of the CPUs around them, in a sentence."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from castmates.counters.proc.other_programs import Culprits
from castmates.english import listed
from castmates.results.columns.launch import table_file
from castmates.results.launch_tables import read
from castmates.study.reasons import program_of

NAMED = 3
LEAST = 0.02  # of a CPU: less is not worth a name
MUCH = 0.3  # of a CPU: launches beside that are mostly rejected
LOOK = 1.0  # seconds


def busy_words(places: Sequence[Path]) -> str:
    """Who took how much beside these launches; "" where nobody was seen, as where a hypervisor took the time."""
    places = [place for place in places if (place / table_file("samples")).is_file()]
    if not places:
        return ""
    slices = read(places, "slices", ["cohort", "launch", "slice", "open_ns", "close_ns"])
    own = slices.drop_duplicates(["cohort", "launch", "slice"])
    seconds = float((own["close_ns"] - own["open_ns"]).sum()) / 1e9
    samples = read(places, "samples", ["subject", "metric", "value", "note"])
    return _listed(_taken(samples.itertuples(index=False, name=None)), seconds)


def busy_now(seconds: float = LOOK) -> str:
    """Who takes CPUs right now that this process may use; "" where nobody takes much."""
    cpus = sorted(os.sched_getaffinity(0))
    collector = Culprits({f"cpu{cpu}": [cpu] for cpu in cpus}, len(cpus) + NAMED)
    collector.attach({})
    collector.start([])
    time.sleep(seconds)
    samples = ((each.subject, each.metric, each.value, each.note) for each in collector.stop())
    return _listed(_taken(samples), seconds, MUCH)


def _taken(samples: Iterable[tuple[str, str, float | None, str]]) -> Iterator[tuple[str, float]]:
    """Programs and the seconds of a CPU that they took; what is around the same cache would stand there once more."""
    for subject, metric, value, who in samples:
        if metric == "foreign_s" and subject.removeprefix("cpu").isdecimal():
            yield program_of(who), value or 0.0


def _listed(taken: Iterable[tuple[str, float]], seconds: float, least: float = LEAST) -> str:
    took: dict[str, float] = {}
    for who, value in taken:
        took[who] = took.get(who, 0.0) + value
    if not seconds or sum(took.values()) < least * seconds:
        return ""
    most = sorted(took.items(), key=lambda each: -each[1])[:NAMED]
    shares = [(who, value / seconds) for who, value in most if value >= LEAST * seconds]
    return listed([f"{who} ({100 * share:.0f} % of a CPU)" for who, share in shares])
