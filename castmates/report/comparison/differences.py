"""What two studies were measured with, side by side: only what differs, and only what was recorded."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from castmates.analysis.comparison.launches import plain_members
from castmates.report.text.machine import described
from castmates.report.text.words import listed
from castmates.study.spec import Member, Plan

Facts = Mapping[str, Any]
Difference = tuple[str, str, str]  # what, in A, in B
NOT_RECORDED = "not recorded"
NEVER_THE_SAME = {"Read at", "CPU time stolen since boot"}
SHORT = 90  # letters of a command that are shown


def differences(a: Facts, b: Facts, records_a: Sequence[Facts], records_b: Sequence[Facts]) -> list[Difference]:
    """Machines, kernels, versions and designs: from the machines' facts, and from what each block says of itself."""
    sides = [
        dict(described(machine)) | _model(machine) | _of_blocks(records)
        for machine, records in ((a, records_a), (b, records_b))
    ]
    names = [name for name in dict.fromkeys([*sides[0], *sides[1]]) if name not in NEVER_THE_SAME]
    pairs = [(name, sides[0].get(name, NOT_RECORDED), sides[1].get(name, NOT_RECORDED)) for name in names]
    return [pair for pair in pairs if pair[1] != pair[2]]


def other_work(a: Plan, b: Plan) -> list[Difference]:
    """Members of mixes that both have, whose program, input or place is not the same in both."""
    ours, theirs = _members(a), _members(b)
    found = []
    for name in (name for name in ours if name in theirs):
        for what, tell in (("command", _command), ("program", _program), ("model", _model_of), ("CPUs", _cpus)):
            pair = tell(ours[name]), tell(theirs[name])
            if pair[0] != pair[1]:
                found.append((f"{name}: {what}", *pair))
    return found


def _of_blocks(records: Sequence[Facts]) -> dict[str, str]:
    measured = [record for record in records if record.get("status") == "measured"]
    found: dict[str, set[str]] = {}

    def note(name: str, value: Any) -> None:  # noqa: ANN401 (any fact)
        if value not in (None, "", {}, []):
            found.setdefault(name, set()).add(value if isinstance(value, str) else json.dumps(value, sort_keys=True))

    for record in measured:
        note("Host of the blocks", record.get("host"))
        note("Members are frozen by", record.get("freezer"))
        note("Cache allocation", ((record.get("hardware") or {}).get("allocator") or {}).get("allocation"))
        for name, version in (record.get("versions") or {}).items():
            note(f"Version of {name}", version)
        for name, built in (record.get("environments") or {}).items():
            note(f"Environment {name}", built.get("key") if isinstance(built, Mapping) else None)
        spec = record.get("spec") or {}
        note("Protocol", (spec.get("company") or {}).get("protocol"))
        for name, value in (spec.get("design") or {}).items():
            if name != "model":
                note(f"Design: {name.replace('_', ' ')}", value)
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _model(machine: Facts) -> dict[str, str]:
    model = machine.get("model")
    return (
        {f"Model: {key.replace('_', ' ')}": json.dumps(value) for key, value in model.items()}
        if isinstance(model, Mapping)
        else {}
    )


def _members(plan: Plan) -> dict[str, Member]:
    known = {member.name: member for block in plan.blocks for member in block.company.members}
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
