"""What a study will be able to find: the smallest loss that so many launches mostly show."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import harmonic_mean

from castmates.analysis.statistics.power import detectable, loss_pct
from castmates.project import Project
from castmates.results.launch_tables import read_windows
from castmates.results.pilots import read_spreads
from castmates.study.spec import Mix, Plan
from castmates.terminal.preview.words import pair

FEWEST_LAUNCHES = 3  # measured ones, before they count for more than a pilot
EXAMPLE = 0.05  # how much launches may differ, where nothing is known
LARGER = (12, 20)  # numbers of launches that are looked at beside the planned one
LEVEL = 0.05


@dataclass(frozen=True)
class Chance:
    """The smallest loss of one pair that is found in four studies of five."""

    pair: str
    spread_pct: float  # by how much launches differ
    source: str  # of the spread
    launches: tuple[int, ...]
    alone_pct: tuple[float, ...]  # by number of launches, as if nothing else were tried; infinite where nothing is
    among_all_pct: tuple[float, ...]  # as the only loss among all pairs (Holm)


@dataclass(frozen=True)
class Chances:
    """What is found, pair by pair; for an example of a spread where none is known."""

    pairs: int
    assumed: bool
    known: tuple[Chance, ...]


def chances(project: Project, plan: Plan, torn: Collection[str] = ()) -> Chances:
    """What the plan's launches, and some more, will mostly find."""
    # Partitions are compared on the same launches, in separate tests: this is about the pairs.
    plain = [mix for mix in plan.mixes if not mix.partitions]
    variances = known_variances(project, plan, torn)
    known = [(mix, *variances[mix.identity]) for mix in plain if mix.identity in variances]
    if plain and not known:
        few, many = min(_launches(plan, mix)[0] for mix in plain), max(_launches(plan, mix)[1] for mix in plain)
        return Chances(len(plain), True, (_chance("", EXAMPLE**2, "assumed", (few, many), len(plain)),))
    found = [_chance(pair(mix), variance, source, _launches(plan, mix), len(plain)) for mix, variance, source in known]
    return Chances(len(plain), False, tuple(found))


def _chance(name: str, variance: float, source: str, planned: tuple[int, int], pairs: int) -> Chance:
    counts = _counts(*planned)
    return Chance(
        pair=name,
        spread_pct=100 * math.sqrt(variance),
        source=source,
        launches=counts,
        alone_pct=_found(variance, counts, LEVEL),
        among_all_pct=_found(variance, counts, LEVEL / max(1, pairs)),
    )


def _counts(few: int, many: int) -> tuple[int, ...]:
    """The planned numbers of launches, and larger ones."""
    return tuple(sorted({few, many, *(count for count in LARGER if count > many)}))


def _found(variance: float, counts: Sequence[int], level: float) -> tuple[float, ...]:
    logs = (detectable(variance, count, level) for count in counts)
    return tuple(loss_pct(log) if math.isfinite(log) else math.inf for log in logs)


def known_variances(project: Project, plan: Plan, torn: Collection[str] = ()) -> dict[str, tuple[float, str]]:
    """The variance of launch means by the mix's identity, with its source: the study's own launches, or a pilot."""
    pilot = {} if project.elsewhere else read_spreads(project.study)
    rounds = _rounds(plan)
    variances = {
        identity: (spread.of_launches(rounds[identity]), f"{spread.launches} launches of the pilot")
        for identity, spread in pilot.items()
        if identity in rounds
    }
    usable = plan.model_copy(update={"launches": tuple(launch for launch in plan.launches if launch.path not in torn)})
    measured = project.results.measured(usable)
    if measured.launches:
        from castmates.analysis.design.pilot import spreads

        own = spreads(measured, read_windows(project.results.places(measured)))
        had = _rounds(measured)
        variances |= {
            identity: (spread.foreseen(rounds[identity], had[identity]), f"{spread.launches} measured launches")
            for identity, spread in own.items()
            if spread.launches >= FEWEST_LAUNCHES
        }
    return variances


def _rounds(plan: Plan) -> dict[str, float]:
    """The harmonic mean of the rounds of each mix's launches: with it the variance of their means is as on average."""
    numbers: dict[str, list[int]] = {}
    for launch in plan.launches:
        for mix in launch.cohort.mixes:
            numbers.setdefault(mix.identity, []).append(launch.design.rounds)
    return {identity: harmonic_mean(each) for identity, each in numbers.items()}


def _launches(plan: Plan, mix: Mix) -> tuple[int, int]:
    """How many launches of the plan have this mix, at least and at most."""
    ours = [
        launch.path for launch in plan.launches if any(each.identity == mix.identity for each in launch.cohort.mixes)
    ]
    return (len(set(ours) & set(plan.looks[0])) if plan.looks else len(ours)), len(ours)
