"""What studies were measured with, side by side: only what differs, and only what was recorded."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from castmates.analysis.comparison.launches import plain_members
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import MachineFacts
from castmates.report.text.machine import described
from castmates.report.text.words import listed
from castmates.study.spec import Member, Plan

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
