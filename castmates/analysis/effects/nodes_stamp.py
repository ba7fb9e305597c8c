"""What is stamped on a study that was measured on several nodes, or on several classes of them."""

from collections.abc import Sequence

import pandas as pd

from castmates.analysis.effects.between_nodes import FEWEST_NODES
from castmates.analysis.effects.nodes import failing
from castmates.analysis.effects.verdicts import NODES_DIFFER
from castmates.english import counted, listed
from castmates.study.spec import Plan

FAILED, PROCESSORS = "failed controls", "processor models"  # ends of words that speak against a study
_FEW = f"Intervals of two nodes cover these two only; it takes {FEWEST_NODES} to cover their class."
Row = tuple[str, tuple[str, str], bool]  # stamp, word and sentence, whether it is good
_EFFECT = ["machine", "platform", "mix", "partition", "baseline", "member"]


def nodes_stamps(plan: Plan, parts: Sequence[Plan], nodes: pd.DataFrame, left_out: int) -> list[Row]:
    """The stamps `machines` and `nodes`; none of a study on one node of one kind."""
    aside = [_aside(plan.ignored_hosts, left_out)] if plan.ignored_hosts else []
    return [*_machines(plan, parts), *_nodes(nodes, aside)]


def failure_sentence(failed: pd.DataFrame) -> str:
    """Which nodes failed which of their controls, and what can be done."""
    hosts = sorted(set(failed["host"]))
    their = "its" if len(hosts) == 1 else "their"
    return (
        f"{listed([_failed(host, failed[failed['host'] == host]) for host in hosts])} failed {their} own controls; "
        f"`leave_out: [{', '.join(hosts)}]` in the study keeps {their} launches out of the analysis."
    )


def _failed(host: str, own: pd.DataFrame) -> str:
    words = [
        f"{control} of {mix or lead}: {verdict}"
        for control, mix, lead, verdict in own[["control", "mix", "lead", "verdict"]].itertuples(index=False, name=None)
    ]
    return f"{host} ({'; '.join(words)})"


def _aside(ignored: Sequence[str], left_out: int) -> str:
    were = "was" if left_out == 1 else "were"
    return f"{counted(left_out, 'launch')} on {listed(list(ignored))} {were} left out of the analysis, and kept."


def _machines(plan: Plan, parts: Sequence[Plan]) -> list[Row]:
    names = [part.machine for part in parts]
    if plan.machines:
        word = f"{counted(len(names), 'class')} of nodes"
        sentence = f"Measured on nodes of {listed(names)}: each has separate rows, and nothing is pooled over them."
        return [("machines", (word, sentence), True)]
    if len(names) < 2:
        return []
    launches = [f"{part.machine} ({counted(len(part.launches), 'launch')})" for part in parts]
    sentence = (
        f"Measured on {listed(launches)}: each has separate rows in the tables, and the page shows {names[0]} alone. "
        "`machines` in the study names the classes of nodes (castmates help configuration)."
    )
    return [("machines", (f"{len(names)} {PROCESSORS}", sentence), False)]


def _nodes(nodes: pd.DataFrame, aside: Sequence[str]) -> list[Row]:
    failed, hosts = failing(nodes), {str(name): sorted(set(own["host"])) for name, own in nodes.groupby("machine")}
    each = [f"{listed(names)} of {name}" if len(hosts) > 1 else listed(names) for name, names in hosts.items()]
    rows = nodes[nodes["control"] == ""].drop_duplicates(_EFFECT)
    differ = list(dict.fromkeys(rows.loc[rows["verdict"] == NODES_DIFFER, "mix"]))
    if not hosts:
        return [("nodes", ("nodes left out", " ".join(aside)), True)] if aside else []
    said = [failure_sentence(failed)] if len(failed) else []
    if differ:
        said.append(
            f"The nodes {'; '.join(each)} differ in {listed(differ)}; the table of nodes has the effect on each."
        )
    elif not said:
        said.append(f"No difference between the nodes {'; '.join(each)} was seen.")
    word = NODES_DIFFER if differ else f"{sum(map(len, hosts.values()))} nodes"
    word = f"{counted(failed['host'].nunique(), 'node')} {FAILED}" if len(failed) else word
    few = [_FEW] if any(1 < len(names) < FEWEST_NODES for names in hosts.values()) else []
    return [("nodes", (word, " ".join([*said, *few, *aside])), not len(failed))]


def is_bad(word: str) -> bool:
    """Check whether a stamp with this word speaks against the study's numbers."""
    return word.endswith((FAILED, PROCESSORS))
