"""How much of what was measured was thrown away, and why, in words that need no knowledge of the ledger."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from castmates.report.results import Results
from castmates.report.text.words import listed
from castmates.study.reasons import ReasonKind, listed_in, program_of

# The ledger's kinds of reasons, as "12 because …" has them.
BECAUSE: Mapping[str, str] = {
    ReasonKind.FOREIGN_LOAD: "other programs ran",
    ReasonKind.NEIGHBOURS: "other programs ran beside the same cache or in the same package",
    ReasonKind.FOREIGN_TRAFFIC: "other programs used the memory",
    ReasonKind.STEAL: "the hypervisor took the CPU",
    ReasonKind.NOT_SETTLED: "speeds were not steady yet",
    ReasonKind.STILL_FILLING: "emptied caches were not full again",
    ReasonKind.TOO_FEW_STEPS: "a program completed no step",
    ReasonKind.NO_PROGRESS: "a program stood still",
    ReasonKind.LOST_HEARTBEATS: "progress reports were lost",
    ReasonKind.NOT_FROZEN: "a program ran that was to be frozen",
    ReasonKind.OFF_ITS_CPUS: "a program left its CPUs",
    ReasonKind.MASKS_CHANGED: "the cache partition was changed",
    ReasonKind.OUT_OF_ITS_GROUP: "a program left its cache partition",
    ReasonKind.GOVERNOR_CHANGED: "the clock settings changed",
    ReasonKind.OFFLINE: "a CPU went offline",
    ReasonKind.SWAPPING: "memory was swapped out",
    ReasonKind.SLEPT: "the machine slept",
}
# What removes the most frequent kind; any other is looked up under Disturbances.
REMEDIES: Mapping[str, str] = {
    ReasonKind.FOREIGN_LOAD: "stop the other programs on this machine",
    ReasonKind.NEIGHBOURS: "stop the other programs on this machine",
    ReasonKind.FOREIGN_TRAFFIC: "stop the other programs on this machine",
    ReasonKind.STEAL: "measure on a machine that shares its CPUs with no other guest",
    ReasonKind.STILL_FILLING: "set a longer budget.slice",
    ReasonKind.SWAPPING: "give the programs more memory",
    ReasonKind.SLEPT: "keep the machine awake",
}
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
        who = f" ({', '.join(lost.culprits)})" if kind == ReasonKind.FOREIGN_LOAD and lost.culprits else ""
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
    who = f" ({', '.join(lost.culprits)})" if kind == ReasonKind.FOREIGN_LOAD and lost.culprits else ""
    return REMEDIES.get(kind, "remove the cause that is listed under “Disturbances”") + who


def _culprits(results: Results) -> tuple[str, ...]:
    """Who is named in the reasons of slices most often."""
    found: Counter[str] = Counter()
    for part in results.launch_parts("slices", columns=["cohort", "launch", "slice", "blamed"]):
        cells = part.loc[part["blamed"] != ""].drop_duplicates(["cohort", "launch", "slice"])["blamed"]
        found.update(program_of(who) for cell in cells for who in listed_in(cell))
    return tuple(name for name, _ in found.most_common(NAMED))
