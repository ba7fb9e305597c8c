"""What each node came to, as the page shows it: its losses beside each other, its own controls, and what it lacks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from castmates.analysis.effects.effects import failing
from castmates.report.machine_facts import MachineFacts
from castmates.report.results import Results, records
from castmates.report.text.health import control_name
from castmates.report.text.machine import in_a_line
from castmates.report.text.stamps import nodes_stamps
from castmates.report.text.words import Quantity, number, plain
from castmates.study.spec import UNMANAGED

Row = Mapping[str, Any]
STATES = ("no", "partly", "unknown")  # of the doctor's rows that are shown


@dataclass(frozen=True)
class OnNode:
    """A lead's loss on one node, in per cent of its rate alone; what draws an interval asks for these names."""

    host: str
    loss: float
    low: float
    high: float
    launches: int
    state: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.loss)


@dataclass(frozen=True)
class Compared:
    """A pair on all nodes of a class."""

    program: str
    antagonists: str
    verdict: str
    p_holm: float
    nodes: tuple[OnNode, ...]


def compared(results: Results) -> list[Compared]:
    """Each lead beside its antagonists without a partition, on every node of its class."""
    table = results.nodes
    ours = table[
        (table["control"] == "")
        & (table["role"] == "lead")
        & (table["baseline"] == "alone")
        & (table["partition"] == UNMANAGED)
    ]
    found = []
    for _, rows in ours.groupby(["platform", "machine", "mix", "member"], sort=False):
        first, *_ = lines = records(rows)
        found.append(
            Compared(
                program=plain(first["lead"]),
                antagonists=plain(first["antagonists"]).replace("+", " + "),
                verdict=first["verdict"],
                p_holm=first["p_holm"],
                nodes=tuple(
                    OnNode(
                        row["host"],
                        row["loss_pct"],
                        row["loss_low"],
                        row["loss_high"],
                        row["launches"],
                    )
                    for row in lines
                ),
            )
        )
    return found


def controls(results: Results) -> list[dict[str, Any]]:
    """Each node's own controls; what failed is marked."""
    rows = results.nodes[results.nodes["control"] != ""]
    bad = set(failing(rows).index)
    return [
        {
            "host": row["host"],
            "what": control_name(row | {"study_lead": True}),
            "control": row["control"],
            "ratio": number(row["slowdown"], 3),
            "interval": Quantity.of(row, "slowdown", digits=3).ends,
            "verdict": row["verdict"],
            "launches": row["launches"],
            "failed": place in bad,
        }
        for place, row in zip(rows.index, records(rows), strict=True)
    ]


def sentences(results: Results) -> list[str]:
    """What the stamps on classes and nodes state, and what was left out."""
    return [pill.meaning for pill in nodes_stamps(results)]


def described(results: Results) -> list[tuple[str, str]]:
    """Every node with what the doctor found lacking there; every class where nothing was measured."""
    if results.machine.classes:
        return [
            (name, in_a_line(MachineFacts.model_validate(facts))) for name, facts in results.machine.classes.items()
        ]
    planned = [
        (
            f"Class {each.name}",
            f"{each.facts.processor or 'processor not known'}, CPUs {each.facts.online}: {each.capture}",
        )
        for each in results.plan.machines
        if each.facts is not None
    ]
    nodes = [results.machine, *results.further_nodes] if results.further_nodes else []
    return [*planned, *((facts.hostname or "a node without a name", _found(facts)) for facts in nodes)]


def _found(facts: MachineFacts) -> str:
    """AMD EPYC 9B45, 2 CPUs. `castmates doctor`: no: CAT, MBA; partly: cores."""
    names = {state: ", ".join(row.name for row in facts.doctor if row.state == state) for state in STATES}
    lacking = "; ".join(f"{state}: {found}" for state, found in names.items() if found)
    return f"{in_a_line(facts)}. " + (f"What `castmates doctor` found lacking: {lacking}." if lacking else "")
