"""In what a replay was measured differently: machine, versions, design, programs; a sentence for each difference."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from castmates.report.comparison.differences import NOT_RECORDED, Difference
from castmates.study.node_facts import difference, recorded

Machine = Mapping[str, Any]  # machine.json
# What machine.json has beside the terms that every comparison shows.
MORE: Mapping[str, Callable[[Machine], object]] = {
    "Microcode": lambda machine: machine.get("microcode"),
    "Compiler": lambda machine: machine.get("compiler"),
    "SMT": lambda machine: _smt(machine.get("topology") or {}),
    "NUMA balancing": lambda machine: {0: "off", 1: "on"}.get(machine.get("numa_balancing", -1)),
    "Address randomisation": lambda machine: machine.get("aslr"),
}
MITIGATIONS = "Mitigations of vulnerabilities"
# Names of the host say nothing about what it is.
LEFT_OUT = ("Host", "Host of the launches")


def other_class(published: Machine, here: Machine) -> str | None:
    """In what the machine is of another class than the published one, as a clause; "" where it is of the same.

    None where the topology of one of them was not recorded. Modelled machines are of one class if they have one model.
    """
    if published.get("model") or here.get("model"):
        return "" if published.get("model") == here.get("model") else "its model has other parameters"
    there, ours = recorded(published), recorded(here)
    if there is None or ours is None:
        return None
    return difference(there, ours)


def machine_sentences(published: Machine, here: Machine, rows: Sequence[Difference]) -> list[str]:
    """Everything that was recorded and is not the same: first the rows of the comparison, then what else is known."""
    known = [(what, there, ours) for what, there, ours in rows if what not in LEFT_OUT]
    return [_sentence(*row) for row in (*known, *_more(published, here))]


def _more(published: Machine, here: Machine) -> Iterator[tuple[str, str, str]]:
    for what, fact in MORE.items():
        there, ours = fact(published), fact(here)
        if there != ours:
            yield what, _text(there), _text(ours)
    there, ours = published.get("mitigations") or {}, here.get("mitigations") or {}
    names = sorted(name for name in {*there, *ours} if there.get(name) != ours.get(name))
    if names and there and ours:
        words = ["; ".join(f"{name}: {_text(side.get(name))}" for name in names) for side in (there, ours)]
        yield MITIGATIONS, words[0], words[1]


def _sentence(what: str, there: str, ours: str) -> str:
    return f"{what}: {ours} here, {there} in the published study."


def _text(fact: object) -> str:
    return NOT_RECORDED if fact is None else str(fact)


def _smt(topology: Mapping[str, Any]) -> str | None:
    return ("on" if topology["siblings"] else "off") if topology.get("siblings") is not None else None
