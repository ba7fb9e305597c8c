"""How much of what was measured was thrown away, and why, in words that need no knowledge of the ledger."""

import re
from collections import Counter
from dataclasses import dataclass

import pandas as pd

from castmates.report.results import Results
from castmates.report.text.words import listed

# The ledger's kinds of reasons, as "12 because …" has them.
BECAUSE = {
    "foreign load": "other programs ran",
    "neighbours": "other programs ran beside the same cache or in the same package",
    "foreign traffic": "other programs used the memory",
    "steal": "the hypervisor took the CPU",
    "not settled": "speeds were not steady yet",
    "still filling": "emptied caches were not full again",
    "too few steps": "a program completed no step",
    "no progress": "a program stood still",
    "lost heartbeats": "progress reports were lost",
    "not frozen": "a program ran that was to be frozen",
    "off its CPUs": "a program left its CPUs",
    "masks changed": "the cache partition was changed",
    "out of its group": "a program left its cache partition",
    "governor changed": "the clock settings changed",
    "offline": "a CPU went offline",
    "swapping": "memory was swapped out",
    "the machine slept": "the machine slept",
}
# What removes the most frequent kind; any other is looked up under Disturbances.
REMEDIES = {
    "foreign load": "stop the other programs on this machine",
    "neighbours": "stop the other programs on this machine",
    "foreign traffic": "stop the other programs on this machine",
    "steal": "measure on a machine that shares its CPUs with no other guest",
    "still filling": "set a longer budget.slice",
    "swapping": "give the programs more memory",
    "the machine slept": "keep the machine awake",
}
CULPRIT = re.compile(r"(?:mostly |among them |by (?=a process that is not visible))([^;,(\[]+)")
NAMED = 3  # kinds of reasons, and culprits


@dataclass(frozen=True)
class ThrownAway:
    """Slices, as the ledgers of all launches count them."""

    slices: int
    rejected: int
    dropped: int  # because another one of the same cycle was rejected
    because: dict[str, int]  # by kind of reason, the most first: slices (or windows, where no slice was rejected)
    culprits: tuple[str, ...]  # programs that ran beside the study, the most frequent first
    windows: int
    windows_lost: int

    @property
    def share(self) -> float:
        """Of all slices, or of all windows where no slice was rejected."""
        if not self.rejected:
            return self.windows_lost / self.windows if self.windows else 0.0
        return (self.rejected + self.dropped) / self.slices if self.slices else 0.0


def thrown_away(results: Results) -> ThrownAway:
    """What the launches of the study lost."""
    ledgers = [record.ledger for record in results.measured_records]
    rejected = sum(sum(each.slices_rejected.values()) for each in ledgers)
    because: Counter[str] = Counter()
    for ledger in ledgers:  # a stretch can lose its measurements though none of their slices was disturbed
        kinds = ledger.slices_because if rejected else ledger.because
        because.update({kind: sum(scenes.values()) for kind, scenes in kinds.items()})
    return ThrownAway(
        slices=sum(sum(each.slices.values()) for each in ledgers),
        rejected=rejected,
        dropped=sum(sum(each.slices_dropped.values()) for each in ledgers),
        because=dict(because.most_common()),
        culprits=_culprits(results) if rejected else (),
        windows=sum(sum(each.windows.values()) for each in ledgers),
        windows_lost=sum(sum(each.rejected.values()) for each in ledgers),
    )


def reasons(lost: ThrownAway) -> str:
    """118 because other programs ran (bash, python3), 18 because the hypervisor took the CPU."""
    parts, only = [], len(lost.because) == 1
    for kind, count in [*lost.because.items()][:NAMED]:
        who = f" ({', '.join(lost.culprits)})" if kind == "foreign load" and lost.culprits else ""
        parts.append(f"{'' if only else f'{count} '}because {BECAUSE.get(kind, f'of “{kind}”')}{who}")
    rest = sum([*lost.because.values()][NAMED:])
    if rest:
        parts.append(f"{rest} for other reasons")
    return listed(parts) if parts else ""


def nothing_left(results: Results) -> bool:
    """Whether programs were measured, and none of their measurements counts."""
    leads = results.windows[results.windows["role"] == "lead"]
    return len(leads) > 0 and not leads["valid"].any()


def remedy(lost: ThrownAway) -> str:
    """Stop the other programs on this machine (bash, python3): what to do about the most frequent reason."""
    kind = next(iter(lost.because), "")
    who = f" ({', '.join(lost.culprits)})" if kind == "foreign load" and lost.culprits else ""
    return REMEDIES.get(kind, "remove the cause that is listed under “Disturbances”") + who


def _culprits(results: Results) -> tuple[str, ...]:
    """Who is named in the reasons of slices most often."""
    found: Counter[str] = Counter()
    for part in results.block_parts("slices", columns=["company", "block", "slice", "reasons"]):
        texts = part.loc[part["reasons"] != ""].drop_duplicates(["company", "block", "slice"])["reasons"]
        found.update(_names(texts))
    return tuple(name for name, _ in found.most_common(NAMED))


def _names(texts: "pd.Series[str]") -> list[str]:
    return [name.strip() for text in texts for name in dict.fromkeys(CULPRIT.findall(text))]
