"""Which launches of a confirming study count, and why the others do not."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from castmates.study.spec import Design, Mix


@dataclass(frozen=True)
class Searched:
    """What the search was: the study that chose the partition, and where its launches were measured."""

    study: str
    mix: Mix  # under the partition
    platform: str
    seeds: Collection[int]
    hosts: Collection[str]


def refusal(record: Mapping[str, Any], searched: Searched) -> str:
    """Why this launch does not confirm what the search found; "" where it does."""
    spec = record.get("spec") or {}
    if spec.get("study") == searched.study or spec.get("seed") in searched.seeds:
        return "belongs to the search"
    if record.get("status") != "measured":
        return "failed"
    if (platform := record.get("platform")) != searched.platform:
        return f"is {platform}, not {searched.platform}"
    mixes = (spec.get("cohort") or {}).get("mixes") or ()
    if searched.mix.identity not in {mix.get("identity") for mix in mixes}:
        return _other_measurement(mixes, searched.mix)
    # What is modelled has its machine in the mix's identity, and no host.
    if searched.platform != "modelled" and (host := record.get("host")) not in searched.hosts:
        return f"was measured on another machine ({host})"
    return ""


def _other_measurement(mixes: Collection[Mapping[str, Any]], wanted: Mix) -> str:
    """What differs from the mix that the search chose."""
    same = [
        mix
        for mix in mixes
        if mix.get("lead") == wanted.lead and tuple(mix.get("antagonists") or ()) == wanted.antagonists
    ]
    shares = [partition.model_dump(mode="json")["shares"] for partition in wanted.partitions]
    tried = [partition.get("shares") for mix in same for partition in mix.get("partitions") or ()]
    if not same:
        return "has other programs or other CPUs"
    return "has other programs or another machine" if shares and shares[0] in tried else "has another partition"


def other_design(fresh: Iterable[Design], searched: Iterable[Design]) -> str:
    """How fresh launches were measured where it differs from the search: "4 rounds, not 3"; "" where nothing does."""
    ours, theirs, differences = list(fresh), list(searched), []
    for name, words in (("rounds", "{} rounds, not {}"), ("window", "windows of {} s, not {} s")):
        values = [sorted({getattr(design, name) for design in designs}) for designs in (ours, theirs)]
        if ours and values[0] != values[1]:
            differences.append(words.format(*(" or ".join(f"{value:g}" for value in several) for several in values)))
    return "; ".join(differences)
