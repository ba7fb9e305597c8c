"""What lies below the losses of studies that are compared: reads what each left of it, and compares what they share."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from castmates.analysis.comparison.details import (
    KINDS,
    Changes,
    compare_changes,
    counter_changes,
    effects_together,
    operation_changes,
    phase_changes,
    quantile_changes,
)
from castmates.analysis.comparison.launches import plain_members
from castmates.analysis.explanations.phases import PhaseTimes, losses_by_phase
from castmates.analysis.operations.per_trace import Traces, per_launch
from castmates.errors import CastmatesError
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import MachineFacts
from castmates.report.text.machine import described
from castmates.report.text.words import counted, listed, number
from castmates.results.bundles import StudyLaunches
from castmates.results.columns.comparison import COMPARISON_DETAILS
from castmates.results.columns.contract import Table
from castmates.results.columns.study import LATENCY, RESOURCES, frame
from castmates.results.find import Measured
from castmates.results.profiles import read_profile, usual_profiles
from castmates.results.tables import Tables
from castmates.study.spec import Member, Plan

Plans = Mapping[str, Plan]
Studies = Mapping[str, Measured]
NAMES = ("study", "cohort", "member", "platform")  # of steps, which millions of them have in common


@dataclass(frozen=True)
class Details:
    """The tables of all kinds, and what has to be known of them."""

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # by kind, those that have rows
    notes: Sequence[str] = ()

    def table(self, kind: str) -> pd.DataFrame:
        """The table of a kind; without rows where the studies have none of it in common."""
        return self.tables.get(kind, frame([], COMPARISON_DETAILS))


NOTHING = Details()


def compare_details(studies: Studies, plans: Plans, margin: float) -> Details:
    """Compare what both the first study and another one left of counters, phases, operations and quantiles."""
    notes: list[str] = []
    found = {
        "counters": _of_tables(studies, plans, RESOURCES, counter_changes, notes),
        "phases": {letter: phase_changes(plans[letter], _phases(study)) for letter, study in studies.items()},
        "operations": _operations(studies, plans, margin, notes),
        "quantiles": _of_tables(studies, plans, LATENCY, quantile_changes, notes),
    }
    first, *others = studies
    tables = {}
    for kind in KINDS:
        sides = {letter: Changes(plans[letter], table) for letter, table in found[kind.name].items()}
        if first in sides:
            rest = {letter: sides[letter] for letter in others if letter in sides}
            tables[kind.name] = compare_changes(sides[first], rest, kind, margin)
    used = {letter for letter in studies if any(len(found[name].get(letter, ())) for name in ("counters", "quantiles"))}
    notes += _stale(studies, used)
    return Details({name: table for name, table in tables.items() if len(table)}, notes)


def _of_tables(
    studies: Studies, plans: Plans, columns: Table, read: Callable[[Plan, pd.DataFrame], pd.DataFrame], notes: list[str]
) -> dict[str, pd.DataFrame]:
    """The changes in a table of each study; of one that cannot be read, a note."""
    found = {}
    for letter, study in studies.items():
        try:
            found[letter] = read(plans[letter], Tables(study.folder).read(columns))
        except CastmatesError as problem:
            notes.append(f"{letter}'s table {columns.name} is not compared: {problem}")
    return found


def _phases(study: Measured) -> pd.DataFrame:
    """The losses by phase of a study whose leads report phases."""
    if not any(cohort.lead.phases for cohort in study.plan.cohorts):
        return losses_by_phase(PhaseTimes([], _NO_LEADS))
    launches = StudyLaunches(study.folder, study.folder.places(study.plan))
    return losses_by_phase(PhaseTimes(launches.parts("steps", categories=NAMES), launches.windows()))


_NO_LEADS = pd.DataFrame({name: [] for name in ("study", "cohort", "scene", "kind", "mix", "partition", "member")})
_NO_LEADS = _NO_LEADS.assign(workload=[], role=[], platform=[], launch=[], window=[], round=[], valid=[])


def _operations(studies: Studies, plans: Plans, margin: float, notes: list[str]) -> dict[str, pd.DataFrame]:
    """The changes of operations, in groups that all traced studies have."""
    traced = {letter: study for letter, study in studies.items() if usual_profiles(study.plan, study.folder)}
    if len(traced) < 2:  # nothing to compare: their millions of calls are not read
        return {}
    traces = {letter: found for letter, study in traced.items() if (found := _traces(study)) is not None}
    together = effects_together(traces, margin)
    for lead, share in together.other_graphs.items():
        notes.append(
            f"Operations of {lead} are compared by type and direction alone, because the graphs differ: "
            f"{number(100 * share, 0)} % of a step alone lies in operations that one of the studies does not have."
        )
    return {letter: operation_changes(plans[letter], table) for letter, table in together.effects.items()}


def _traces(study: Measured) -> Traces | None:
    """What each operation takes in each trace of a study, read one launch at a time."""
    profiles = (read_profile(study.folder.profile(path)) for path in usual_profiles(study.plan, study.folder))
    return per_launch((each.calls, each.steps) for each in profiles)


def _stale(studies: Studies, used: set[str]) -> Iterator[str]:
    """Which studies have tables of fewer launches than are measured."""
    for letter in sorted(used):
        study = studies[letter]
        try:
            known = len(pd.read_parquet(study.folder.table_file("launches"), columns=["launch"]))
        except (OSError, ValueError):
            continue
        if known < (there := len(study.plan.launches)):
            yield (
                f"{letter}'s tables are of {counted(known, 'launch')}, and {there} are measured: its counters and "
                "quantiles are those of the former; `castmates sweep` makes the tables again."
            )


# What studies were measured with, side by side: only what differs, and only what was recorded.

Difference = tuple[str, ...]  # what, then a text for each study, the baseline first
NOT_RECORDED, NOT_THERE = "not recorded", "–"
NEVER_THE_SAME = {"Read at", "CPU time stolen since boot"}
SHORT = 90  # letters of a command that are shown


@dataclass(frozen=True)
class SetUp:
    """With what a study was measured: its machine's facts, and what each of its launches records of itself."""

    machine: MachineFacts
    records: Sequence[LaunchRecord]


def differences(set_ups: Sequence[SetUp]) -> list[Difference]:
    """Machines, kernels, versions and designs that are not the same in all studies."""
    sides = [dict(described(side.machine)) | _model(side.machine) | _of_launches(side.records) for side in set_ups]
    names = [name for name in dict.fromkeys(name for side in sides for name in side) if name not in NEVER_THE_SAME]
    rows = [(name, *(side.get(name, NOT_RECORDED) for side in sides)) for name in names]
    return [row for row in rows if len(set(row[1:])) > 1]


def other_work(plans: Sequence[Plan]) -> list[Difference]:
    """Members that several studies have, whose program, input or place is not the same in all of them."""
    members = [_members(plan) for plan in plans]
    changed = []
    for name in dict.fromkeys(name for own in members for name in own):
        for what, words in (("command", _command), ("program", _program), ("model", _model_of), ("CPUs", _cpus)):
            texts = [words(own[name]) if name in own else None for own in members]
            if len({text for text in texts if text is not None}) > 1:
                changed.append((f"{name}: {what}", *(NOT_THERE if text is None else text for text in texts)))
    return changed


def _of_launches(records: Sequence[LaunchRecord]) -> dict[str, str]:
    seen: dict[str, set[str]] = {}

    def note(name: str, value: Any) -> None:  # noqa: ANN401 (any fact)
        if value not in (None, "", {}, []):
            seen.setdefault(name, set()).add(value if isinstance(value, str) else json.dumps(value, sort_keys=True))

    for record in (record for record in records if record.measured):
        note("Host of the launches", record.host)
        note("Members are frozen by", record.freezer)
        note("Cache allocation", record.allocation)
        for name, version in record.versions.items():
            note(f"Version of {name}", version)
        for name, key in record.environments.items():
            note(f"Environment {name}", key)
        note("Protocol", record.protocol)
        for name, value in record.design.items():
            if name != "model":
                note(f"Design: {name.replace('_', ' ')}", value)
    return {name: ", ".join(sorted(values)) for name, values in seen.items()}


def _model(machine: MachineFacts) -> dict[str, str]:
    return {f"Model: {key.replace('_', ' ')}": json.dumps(value) for key, value in machine.model.items()}


def _members(plan: Plan) -> dict[str, Member]:
    known = {member.name: member for launch in plan.launches for member in launch.cohort.members}
    return {f"{plain} in {mix}": known[name] for (mix, name), plain in plain_members(plan).items() if name in known}


def _command(member: Member) -> str:
    text = shlex.join(member.command)
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


def _program(member: Member) -> str:
    parts = [member.content[:12], member.environment_key or "", member.inputs_key or ""]
    return " ".join(part for part in parts if part)


def _model_of(member: Member) -> str:
    return member.model.model_dump_json(exclude_defaults=True) if member.model else ""


def _cpus(member: Member) -> str:
    return listed([str(cpu) for cpu in member.cpus]) if member.cpus else ""


# Whether the memory traffic (MBM) of two studies is the same quantity: processors count different things as such.

VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}
# What a processor counts as traffic, as kernel and manuals have it (Documentation/filesystems/resctrl.rst).
COUNTED = {
    "AMD": "an AMD processor counts what its BMEC bits name, and by default also dirty lines that leave the cache and "
    "non-temporal writes",
    "Hygon": "a Hygon processor counts as AMD's do",
    "Intel": "an Intel processor counts what its last-level cache exchanges with memory",
    "Arm": "an Arm processor counts what its memory-bandwidth monitor is set to",
}
TRAFFIC = re.compile(r"\bmbm_(total|local)_bytes\b")


def other_traffic(a: SetUp, b: SetUp, letter: str) -> Iterator[str]:
    """Why traffic in A is another quantity than in the other study; nothing where it is the same, or not known."""
    if not (_counts(a) and _counts(b)):
        return
    ours, theirs = _vendor(a), _vendor(b)
    if ours and theirs and ours != theirs:
        kinds = [COUNTED.get(vendor, f"what a processor of {vendor} counts is not known") for vendor in (ours, theirs)]
        yield (
            f"Memory traffic (MBM) was counted by {_a(ours)} processor in A and by {_a(theirs)} one in {letter}, so "
            f"totals are not the same quantity: {listed(kinds)}. Compare changes inside each study."
        )
    elif (bits := (_configured(a), _configured(b))) and bits[0] != bits[1]:
        told = [words or "as the hardware is set by default" for words in bits]
        yield (
            f"Memory traffic (MBM) was counted with other BMEC bits in A ({told[0]}) than in {letter} ({told[1]}), so "
            "totals are not the same quantity."
        )


def _counts(side: SetUp) -> bool:
    return any(TRAFFIC.search(record.monitored) for record in side.records)


def _configured(side: SetUp) -> str:
    """Which kinds of traffic the events were set to count; "" where that cannot be chosen."""
    return "; ".join(sorted({record.traffic_kinds for record in side.records} - {""}))


def _vendor(side: SetUp) -> str:
    processor = side.machine.processor
    known = VENDORS.get(processor.vendor or "", processor.vendor or "")
    return known or ("Arm" if processor.implementer else "")


def _a(vendor: str) -> str:
    return f"{'an' if vendor[0] in 'AEIOU' else 'a'} {vendor}"
