"""Which launches of a study are still to be measured, and how long that takes."""

import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, harmonic_mean

from castmates.analysis.statistics.power import detectable, loss_pct
from castmates.english import duration
from castmates.project import Project
from castmates.results.bundle_names import RecordReader
from castmates.results.folder import StudyFolder
from castmates.results.launch_tables import read_windows
from castmates.results.looks import Look as AdaptiveLook
from castmates.results.looks import as_decided, read_adaptive_looks, read_decisions
from castmates.results.plans import read_spreads
from castmates.results.records import record_or_why, useless
from castmates.study import profile_launches
from castmates.study.class_names import workload_of
from castmates.study.curves import as_launched, scenes_measured
from castmates.study.mitigations import with_place
from castmates.study.rounds import (
    FIRST_LAUNCHES,
    UNDECIDED,
    cohort_of,
    first_rounds,
    needed,
    reasons,
    undecided,
    with_decisions,
)
from castmates.study.scenes import launch_guess, round_guess
from castmates.study.schedule import turns_of
from castmates.study.spec import Cohort, Launch, Mix, Plan

LAUNCH_OVERHEAD = 1.5  # start of the runner, writing the tables
MODELLED_WINDOW = 0.06  # of a study in which nothing is started
ANALYSIS = 15.0  # tables, figures, report
LAUNCHES = 5  # of a cohort, whose times are looked up at most


def still_to_measure(project: Project, plan: Plan, torn: Collection[str] = ()) -> tuple[list[Launch], list[Launch]]:
    """The launches to come, at least and at most: a wanted precision decides on the way how many.

    The launches `torn` are measured again.
    """
    folder = project.results
    missing = [launch for launch in plan.launches if launch.path in torn or not folder.record_file(launch).is_file()]
    if not plan.looks or not missing:
        return missing, missing
    if project.study.budget.adaptive:
        return _after_looks(plan, missing, read_adaptive_looks(plan, folder))
    from castmates.pipeline.looks import take_look  # loads pandas, which few need here

    decisions: list[list[str]] = []
    for _ in plan.looks:
        paths = needed(plan, decisions)
        if at_least := [launch for launch in missing if launch.path in paths]:
            later = {path for added in plan.looks[len(decisions) + 1 :] for path in added}
            undecided = {path for path in later if not decisions or cohort_of(path) in decisions[-1]}
            return at_least, [launch for launch in missing if launch.path in {*paths, *undecided}]
        reached = take_look(plan, folder, project.study.budget.precision or 0.0, decisions)
        decisions.append([cohort.cohort for cohort in reached if cohort.goes_on])
        if not decisions[-1]:
            break
    return [], []


def _after_looks(
    plan: Plan, missing: Sequence[Launch], taken: Sequence[AdaptiveLook]
) -> tuple[list[Launch], list[Launch]]:
    """The same in an adaptive study: what the looks asked for, and what all looks to come may ask for."""
    paths = set(needed(plan, [look["cohorts"] for look in taken]))
    at_least = [launch for launch in missing if launch.path in paths]
    if taken and not taken[-1]["cohorts"]:
        return at_least, at_least
    later = {path for added in plan.looks[len(taken) + 1 :] for path in added}
    return at_least, [launch for launch in missing if launch.path in paths | later]


def seconds_between(project: Project, least: Sequence[Launch], most: Sequence[Launch]) -> tuple[float, float]:
    """The time of a sweep that has these launches to measure, without and with spare rounds; 0 where none is left."""
    if not most:
        return 0.0, 0.0
    # Modelled launches take nothing of the machine, and as many run side by side as there are CPUs.
    at_once = len(os.sched_getaffinity(0)) if project.modelled else 1
    few = seconds_of_sweep(project.results, least, at_once)
    return few, seconds_of_sweep(project.results, most, at_once, spare=not project.modelled)


def seconds_of_sweep(folder: StudyFolder, launches: Iterable[Launch], at_once: int = 1, spare: bool = False) -> float:
    """How long a sweep takes that has these launches to measure, so many at once; with all spare rounds, or none."""
    known: dict[str, float] = {}
    return sum(seconds_of_launch(folder, launch, spare, known) for launch in launches) / at_once + ANALYSIS


def seconds_of_launch(
    folder: StudyFolder, launch: Launch, spare: bool = False, known: dict[str, float] | None = None
) -> float:
    """How long a launch takes: its start (as measured before, where it was) and its windows.

    `known` keeps what launches take, by cohort: who asks for thousands of launches reads no record twice.
    """
    design, cohort = launch.design, as_launched(launch).cohort
    rounds = design.rounds + spare * design.spare_rounds
    if design.model is not None:
        return LAUNCH_OVERHEAD + MODELLED_WINDOW * rounds * turns_of(cohort.scenes, cohort.members)
    known = {} if known is None else known
    if cohort.id not in known:
        known[cohort.id] = _launch(folder, cohort)
    measured = rounds * round_guess(cohort.scenes, cohort.members, design.window)
    return LAUNCH_OVERHEAD + known[cohort.id] + measured + profile_launches.seconds(launch)


def _launch(folder: StudyFolder, cohort: Cohort) -> float:
    records = map(record_or_why, folder.record_files(cohort.id)[:LAUNCHES])
    launched = (record.get("seconds", {}).get("launch") for record in records)
    launches = [float(seconds) for seconds in launched if seconds is not None]
    return fmean(launches) if launches else launch_guess(cohort.members)


# How much of a study is planned, measured and still to come: launches, windows and time.

FAILED = "failed"


@dataclass(frozen=True)
class Amount:
    """So many launches and windows, and the time that those take which are not measured yet; least and most."""

    launches: tuple[int, int] = (0, 0)
    measured: int = 0
    failed: int = 0  # of the measured ones
    unclean: int = 0  # of the measured ones: every round has a rejected window
    windows: tuple[int, int] = (0, 0)  # without and with all spare rounds
    seconds: tuple[float, float] = (0.0, 0.0)

    @property
    def unusable(self) -> int:
        """The launches that give the analysis little or nothing."""
        return self.failed + self.unclean


class Amounts:
    """How much the launches of a plan are; each record is read once, and `torn` launches count for nothing."""

    def __init__(self, folder: StudyFolder, plan: Plan, torn: Collection[str] = ()) -> None:
        self._folder = folder
        self._first = {*plan.looks[0]} if plan.looks else {launch.path for launch in plan.launches}
        files = {launch.path: folder.record_file(launch) for launch in plan.launches if launch.path not in torn}
        read = RecordReader(folder).read
        self._reasons = {path: useless(read(file)) for path, file in files.items() if file.is_file()}

    def of(self, launches: Sequence[Launch]) -> Amount:
        """How much these launches are; where a precision is wanted, those of the first look are the least."""
        at_once = [launch for launch in launches if launch.path in self._first]
        missing = [launch for launch in launches if launch.path not in self._reasons]
        reasons = [self._reasons[launch.path] for launch in launches if launch.path in self._reasons]
        return Amount(
            launches=(len(at_once), len(launches)),
            measured=len(reasons),
            failed=reasons.count(FAILED),
            unclean=sum(reason not in ("", FAILED) for reason in reasons),
            windows=(sum(map(_windows, at_once)), sum(_windows(launch, spare=True) for launch in launches)),
            seconds=(
                sum(seconds_of_launch(self._folder, launch) for launch in missing if launch.path in self._first),
                sum(seconds_of_launch(self._folder, launch, spare=True) for launch in missing),
            ),
        )


def _windows(launch: Launch, spare: bool = False) -> int:
    return len(scenes_measured(launch)) * (launch.design.rounds + spare * launch.design.spare_rounds)


# What a study will be able to find: the smallest loss that so many launches mostly show.

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


# How a pair of programs and a range are written on a terminal.

TO, DASH = " to ", "\N{EN DASH}"  # in a sentence, in a table


def antagonists(mix: Mix) -> str:
    """Who runs beside the lead: stream+chase, 2 stream:smt; "" where it is alone."""
    counts = Counter(map(workload_of, mix.antagonists))
    names = (who if count == 1 else f"{count} {who}" for who, count in counts.items())
    return with_place("+".join(names), mix.name)  # without the class, which stands with the lead


def pair(mix: Mix) -> str:
    """dlrm-train beside stream."""
    return " beside ".join(filter(None, [workload_of(mix.lead), antagonists(mix)]))


def minutes_between(least: float, most: float, to: str = TO) -> str:
    """4 min; 4 to 5 min; 50 s to 2 min."""
    return between(duration(least), duration(most), to)


def between(least: object, most: object, to: str = TO) -> str:
    """180 to 225; what both ends share, a number or its unit, stands once."""
    first, last = str(least), str(most)
    if first == last:
        return last
    number, _, unit = first.partition(" ")
    is_shared = unit and " " not in unit and last.partition(" ")[2] == unit  # 1 h 10 min has two
    return f"{number if is_shared else first}{to}{last}"


# How many rounds the launches of a study have, and why, before all of it is known.


def expected(project: Project, plan: Plan) -> Plan:
    """The plan with as many rounds as the first launches have where that is not decided yet, and what looks decided."""
    budget, plan = project.study.budget, as_decided(plan, project.results)
    waiting = [launch.cohort for launch in plan.launches if undecided([launch])]
    return with_decisions(plan, {cohort.id: first_rounds(cohort, budget) for cohort in waiting})


def lines(project: Project, plan: Plan) -> Iterator[str]:
    """Why the rounds are as many as they are, and which cohorts are still to show it."""
    yield from reasons(plan, read_decisions(project.results))
    waiting = list(dict.fromkeys(launch.cohort.id for launch in plan.launches if launch.design.rounds == UNDECIDED))
    if waiting:
        yield (
            f"{', '.join(waiting)}: the first {FIRST_LAUNCHES} launches decide how many rounds the others have; until "
            "then as many are expected."
        )
