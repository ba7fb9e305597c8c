"""The plan as the report tells it: who plays, with which design, and which blocks belong to it."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from castmates.report.text.words import counted
from castmates.study.cpus import format_cpu_list

Plan = Mapping[str, Any]
Design = tuple[str, list[tuple[str, str]]]  # a heading, then key by key
CAST = ("workload", "command", "unit", "environment")  # what makes two members the same entry of the cast


def places(plan: Plan) -> list[str]:
    """Where the plan's blocks lie below results/<study>/blocks."""
    named = ((_company(block).get("id"), block.get("number")) for block in _blocks(plan))
    return [f"{company}/{number}" for company, number in named if company is not None and number is not None]


def designed_rounds(plan: Plan) -> dict[tuple[str, int], tuple[int, int]]:
    """Rounds and spare rounds of every block, by company and number."""
    found = {}
    for block in _blocks(plan):
        design, place = block.get("design") or {}, (_company(block).get("id"), block.get("number"))
        if None not in place and "rounds" in design:
            found[str(place[0]), int(str(place[1]))] = (int(design["rounds"]), int(design.get("spare_rounds", 0)))
    return found


def designs(plan: Plan) -> list[Design]:
    """The distinct designs in the plan's order; measured blocks keep the one that they were measured with."""
    found: list[tuple[Mapping[str, Any], int]] = []
    blocks = [block["design"] for block in _blocks(plan) if block.get("design")]
    for design in {id(one): one for one in blocks}.values():  # blocks may share one
        if design not in [known for known, _ in found]:
            found.append((design, blocks.count(design)))
    return [(_heading(count, len(found)), _pairs(design)) for design, count in found]


def cast(plan: Plan) -> list[dict[str, str]]:
    """A row per workload, in the order of the titles, with all roles and CPUs that it has in the plan."""
    titles = plan.get("titles") or {}
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for member in _members(plan):
        groups.setdefault(tuple(_told(member)[key] for key in CAST), []).append(member)
    order = {name: place for place, name in enumerate(titles)}
    return [
        dict(zip(CAST, told, strict=True))
        | {
            "title": str(titles.get(told[0]) or "–"),
            "roles": _distinct(str(member.get("role", "–")) for member in members),
            "cpus": _distinct((format_cpu_list(member.get("cpus") or ()) or "–" for member in members), "; "),
        }
        for told, members in sorted(groups.items(), key=lambda group: order.get(group[0][0], len(order)))
    ]


def _told(member: Mapping[str, Any]) -> dict[str, str]:
    return {
        "workload": str(member.get("workload", "–")),
        "command": shlex.join(map(str, member.get("command") or ())) or "–",
        "unit": str(member.get("unit", "–")),
        "environment": str(member.get("environment") or "–"),
    }


def _heading(count: int, of: int) -> str:
    which = "the blocks" if of == 1 else counted(count, "block")
    return f"Design of {which} (times in seconds)"


def _pairs(design: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(_spaced(key), _text(value)) for key, value in design.items()]


def _text(value: object) -> str:
    """A value; what it holds that is set, if it may hold several."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    if not isinstance(value, Mapping):
        return str(value)
    told = [(_spaced(key), one) for key, one in value.items() if one is not None]
    parts = [f"{key} ({_text(one)})" if isinstance(one, Mapping) else f"{key} {_text(one)}" for key, one in told]
    return ", ".join(parts) or "nothing"


def _spaced(key: object) -> str:
    return str(key).replace("_", " ")


def _distinct(texts: Iterable[str], between: str = ", ") -> str:
    return between.join(dict.fromkeys(texts))


def _blocks(plan: Plan) -> list[Mapping[str, Any]]:
    return plan.get("blocks") or []


def _company(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return block.get("company") or {}


def _members(plan: Plan) -> list[Mapping[str, Any]]:
    """The members of every company, once however many blocks share it."""
    companies = {id(company): company for company in map(_company, _blocks(plan))}
    return [member for company in companies.values() for member in company.get("members") or ()]
