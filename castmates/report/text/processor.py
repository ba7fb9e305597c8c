"""What the processor made of the partitions' masks and throttles, in sentences for the health panel."""

from collections.abc import Iterator, Mapping
from typing import Any

from castmates.analysis.partitions.held import (
    AS_ASKED,
    NOT_READ,
    OTHERWISE,
    UNCERTAIN,
    HeldPartitions,
    equal,
    held_by,
    sharers,
    states,
)
from castmates.report.results import Results
from castmates.report.text.words import counted, listed
from castmates.study.class_caches import cache_of
from castmates.study.spec import REST, Plan

NAMED = 5  # partitions in a sentence, and settings


def sentences(results: Results) -> str:
    """What is proved of the processor: as asked, otherwise, or only what the kernel holds; "" without partitions."""
    records = [record for record in results.recorded if record.get("status") == "measured"]
    found, plan = held_by(records), results.plan
    known = states(plan, found)
    by_state: dict[str, dict[str, None]] = {}
    for (_, partition), state in known.items():
        by_state.setdefault(state, {}).setdefault(partition)
    parts = [*_read(by_state), *_otherwise(by_state, records)]
    parts += _shared(plan, found)
    parts += [
        f"{listed(same)} are one partition: the processor held the same under each." for same in equal(plan, found)
    ]
    parts += _unread(by_state, records)
    if uncertain := by_state.get(UNCERTAIN):
        machines = {mix.name: mix.machine for mix in plan.mixes}
        caches = [cache_of(plan, machines[mix]) for (mix, _), state in known.items() if state == UNCERTAIN]
        shared = listed(list(dict.fromkeys(f"{cache.shareable:#x}" for cache in caches if cache)))
        parts.append(
            f"Masks of {_some(uncertain)} have some but not all of the ways {shared} that I/O fills too. Some "
            "processors give these ways together only, so lead and antagonists may share ways there: no such partition "
            "is chosen as isolating."
        )
    return " ".join(parts)


def _read(by_state: Mapping[str, Mapping[str, None]]) -> Iterator[str]:
    read = {**by_state.get(AS_ASKED, {}), **by_state.get(OTHERWISE, {})}
    if read:
        count = len(by_state.get(AS_ASKED, {}))
        asked = "all of them" if count == len(read) else f"{count} of them"
        yield f"The processor's registers were read under {counted(len(read), 'partition')} and held {asked} as asked."


def _otherwise(by_state: Mapping[str, Mapping[str, None]], records: list[Mapping[str, Any]]) -> Iterator[str]:
    if names := by_state.get(OTHERWISE):
        settings = dict.fromkeys(_settings(records))
        yield (
            f"Under {_some(names)} they held something else ({_some(settings, '; ')}). These partitions keep their "
            "names, and are judged by what the processor held."
        )


def _shared(plan: Plan, held: HeldPartitions) -> Iterator[str]:
    by_groups: dict[tuple[str, ...], dict[str, None]] = {}
    for (_, partition), groups in sharers(plan, held).items():
        by_groups.setdefault(groups, {}).setdefault(partition)
    for groups, names in by_groups.items():
        if groups:
            yield (
                f"Ways of {_some(names)} are shared with {listed(groups)}: other programs have them too, so no such "
                "partition isolates."
            )


def _settings(records: list[Mapping[str, Any]]) -> Iterator[str]:
    for record in records:
        for rows in record.get("processor", {}).get("partitions", {}).values():
            for row in rows:
                who = "the rest of the machine" if row["member"] == REST else row["member"]
                yield f"{who}: {row['line']} {row['held']} where {row['asked']} was asked"


def _unread(by_state: Mapping[str, Mapping[str, None]], records: list[Mapping[str, Any]]) -> Iterator[str]:
    """Why some partitions were not read, where a launch records it; of a modelled machine there is nothing to read."""
    why = dict.fromkeys(record["processor"]["registers"]["lacking"] for record in records if "processor" in record)
    if why and (NOT_READ in by_state or UNCERTAIN in by_state):
        reasons = listed(list(filter(None, why)))
        because = f": {reasons}" if reasons else ""
        yield f"It is proved what the kernel holds, but not what the processor holds{because}."


def _some(names: Mapping[str, None], between: str = ", ") -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return between.join(list(names)[:NAMED]) + more
