"""(study, launches measured so far) -> plan; a pure function that never takes a measured launch back."""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from castmates.errors import CastmatesError
from castmates.study.curves import measured_later
from castmates.study.mixes import Mixes
from castmates.study.model import Study
from castmates.study.placement_keys import design
from castmates.study.profile_launches import profile_launches
from castmates.study.rounds import FEWEST_FIRST, FIRST_LAUNCHES, UNDECIDED, first_rounds
from castmates.study.scenes import Room, cohorts, left_out, scenes_of
from castmates.study.schedule import launch_seed
from castmates.study.spec import (
    PROTOCOL,
    Cohort,
    Counting,
    Design,
    Launch,
    Member,
    Mix,
    Plan,
    Prediction,
    cohorts_of,
)
from castmates.study.trace_launches import trace_launches

# What a control has to show is known, and shown by a program that is steady: it needs no more.
CONTROL_ROUNDS, CONTROL_LAUNCHES = 3, 5
# How controls are measured that several studies share, whatever suits the programs of each.
SHARED_WINDOW: Mapping[str, float] = {"window": 0.5, "longest_window": 5.0, "steps": 10}


@dataclass(frozen=True)
class _Request:
    """What a study asks for, and what was measured of it."""

    study: Study
    members: Mapping[str, Member]
    native_key: str
    mixes: Mapping[str, Mix]  # by identity, those of the controls too
    results: Collection[str]  # identities of the mixes that are not only controls
    controls: Collection[str]  # those of the controls
    kept: Sequence[Launch]  # the measured launches that have any of these mixes
    decided: Mapping[str, int]  # rounds, by cohort
    machine: str = ""  # the class of nodes
    later: Collection[str] = ()  # identities of mixes that are measured only where a look asks for them

    @cached_property
    def launched(self) -> Counter[str]:
        """How many measured launches the cohorts of each mix have, whether these measured it or left it out."""
        return Counter(mix.identity for launch in self.kept for mix in launch.cohort.mixes)

    @cached_property
    def measured(self) -> Counter[str]:
        """How many measured launches each mix has."""
        return self.launched - Counter(identity for launch in self.kept for identity in launch.skipped)

    def is_control(self, cohort: Cohort) -> bool:
        """Whether nothing but controls is in a cohort."""
        return not any(mix.identity in self.results for mix in cohort.mixes)

    def most(self, identities: Iterable[str]) -> int:
        """How many launches these mixes may have."""
        looks = self.study.budget.looks
        is_asked = any(identity in self.results for identity in identities)
        if is_asked:
            return looks[-1]
        return looks[0] if self.machine else min(looks[0], CONTROL_LAUNCHES)  # each node of a class has its own

    def before(self, cohort: Cohort) -> int:
        """How many launches fewer a cohort has than others: one of later mixes alone has none at the first look."""
        waits = bool(self.later) and all(mix.identity in self.later for mix in cohort.mixes)
        return self.study.budget.looks[0] if waits else 0

    def cohort(self, mixes: Sequence[Mix]) -> Cohort:
        """The cohort of these mixes, as it would be measured now."""
        members, lead = self.members, mixes[0].lead
        names = dict.fromkeys([lead, *(name for mix in mixes for name in mix.antagonists)])
        digest = hashlib.sha256("\n".join(mix.identity for mix in mixes).encode()).hexdigest()[:8]
        without = left_out(self.study.budget)
        if any(mix.identity in self.controls for mix in mixes):
            without -= {"placebo"}  # which controls are compared with
        return Cohort(
            id=f"{members[lead].workload}-{digest}",
            protocol=PROTOCOL,
            native_key=self.native_key,
            # A program may be a lead in one mix and an antagonist, on the same CPUs, in another.
            members=tuple(
                members[name].model_copy(update={"role": "lead" if name == lead else "antagonist"}) for name in names
            ),
            mixes=tuple(mixes),
            scenes=scenes_of(mixes, members, without),
            machine=self.machine,
        )


@dataclass(frozen=True)
class _Growth:
    """A cohort that the plan goes on with."""

    cohort: Cohort
    elsewhere: int  # how many launches its mixes have in other cohorts, or never get
    missing: int  # how many launches it lacks


def extend(
    study: Study,
    placed: Mixes,
    titles: Mapping[str, str],
    native_key: str,
    measured: Iterable[Launch] = (),
    room: Room | None = None,
    decided: Mapping[str, int] | None = None,
) -> Plan:
    """Plan what is still missing; `decided` has the rounds that first launches showed to be best, by cohort.

    A measured launch counts for each of its mixes that the study still has. A cohort whose mixes are all still
    wanted goes on; mixes that lost their cohort, or are new, form separate cohorts.
    """
    request = _request(study, placed, native_key, measured, decided or {})
    growths = _continued(request)
    covered = {mix.identity: max(growth.missing, 0) for growth in growths for mix in growth.cohort.mixes}
    growths += _founded(request, covered, room or Room())
    launches = [*request.kept, *(launch for growth in growths for launch in _new_launches(request, growth))]
    launches.sort(key=lambda launch: (launch.cohort.id, launch.number))  # one plan, one text: measured or not
    return Plan(
        study=study.name,
        titles={member.workload: titles[member.workload] for member in placed.members.values()},
        mixes=tuple(placed.mixes),
        controls=tuple(placed.controls),
        launches=tuple(launches),
        looks=_looks(request, launches, {growth.cohort.id: growth.elsewhere for growth in growths}),
        notes=placed.notes,
        cache=placed.cache,
        cautions=placed.cautions,
        mitigations=placed.mitigations,
        left_out=placed.left_out,
        memory=_memory(placed, room or Room()),
        ignored_hosts=tuple(study.leave_out),
        prediction=_prediction(study),
        latency_limits=study.recommend.limits_ms,
        later=tuple(request.later),
        profiles=profile_launches(study, _to_profile(request, growths, room or Room()), design_of(study)),
        traces=trace_launches(study, placed.mixes, request.cohort, design_of(study)),
    )


def _prediction(study: Study) -> Prediction | None:
    """What the analysis has to know of the grid that is predicted."""
    keys = study.predict
    if keys is None:
        return None
    drawn = design(keys, study.seed)
    return Prediction(
        leads=tuple(keys.leads),
        antagonists=tuple(keys.columns),
        bubbles=tuple(keys.bubbles),
        reporters=tuple(keys.reporters),
        profiles=len(drawn.profiles),
        pairs=len(drawn.pairs),
        check=drawn.check,
        to_check=keys.check,
    )


def _to_profile(request: _Request, growths: Sequence[_Growth], room: Room) -> list[Cohort]:
    """The cohorts in which leads are traced: those that the plan goes on with, and new ones for all other mixes.

    A mix whose launches are all measured has no cohort that goes on once another mix of it was removed.
    """
    if request.study.profile is None:
        return []
    going_on = [growth.cohort for growth in growths if not request.is_control(growth.cohort)]
    known = {mix.identity for cohort in going_on for mix in cohort.mixes}
    by_lead: dict[str, list[Mix]] = {}
    for identity in set(request.results) - known:
        mix = request.mixes[identity]
        by_lead.setdefault(mix.lead, []).append(mix)
    study = request.study
    for group in by_lead.values():
        group.sort(key=lambda mix: mix.name)
        going_on += map(request.cohort, cohorts(group, request.members, study.budget, _rounds(study), room))
    return going_on


def _memory(placed: Mixes, room: Room) -> dict[str, int]:
    """What each workload of the plan takes; nothing where memory does not matter."""
    if room.bytes is None:
        return {}
    return {member.workload: room.needs.get(member.workload, 0) for member in placed.members.values()}


def _request(
    study: Study, placed: Mixes, native_key: str, measured: Iterable[Launch], decided: Mapping[str, int]
) -> _Request:
    mixes = {mix.identity: mix for mix in (*(control.mix for control in placed.controls), *placed.mixes)}
    results = {mix.identity for mix in placed.mixes}
    controls = {control.mix.identity for control in placed.controls}
    kept = [launch for launch in measured if _counts(launch.cohort, mixes)]
    waiting = _later(study, placed) if study.budget.adaptive else ()
    return _Request(study, placed.members, native_key, mixes, results, controls, kept, decided, placed.machine, waiting)


def _later(study: Study, placed: Mixes) -> tuple[str, ...]:
    """What an adaptive study does not measure at first; what other keys name is measured, wherever it lies."""
    arms = {arm for mitigation in placed.mitigations for arm in mitigation.arms}
    named = {
        mix.identity
        for mix in placed.mixes
        for partition in mix.partitions
        if partition.name == study.attribution.isolated or (mix.name, partition.name) in arms
    }
    return tuple(identity for identity in measured_later(placed.mixes) if identity not in named)


def _counts(cohort: Cohort, mixes: Mapping[str, Mix]) -> bool:
    """Whether launches of this cohort count: they were measured as we measure now, and have a mix of the study."""
    return cohort.protocol == PROTOCOL and any(mix.identity in mixes for mix in cohort.mixes)


def _continued(request: _Request) -> list[_Growth]:
    """The cohorts that were begun and whose mixes are all still wanted; a mix goes on in one cohort only."""
    growths: list[_Growth] = []
    covered: set[str] = set()
    begun = cohorts_of(request.kept)
    if any(launch.skipped for launch in request.kept):
        # The cohort of an adaptive study first: those that completed some of its mixes have fewer.
        begun.sort(key=lambda cohort: -len(cohort.mixes))
    for cohort in begun:
        identities = [mix.identity for mix in cohort.mixes]
        if not all(identity in request.mixes for identity in identities) or covered & set(identities):
            continue
        own = sum(launch.cohort.id == cohort.id for launch in request.kept)
        now = request.cohort([request.mixes[identity] for identity in identities])
        left_out = Counter(
            identity for launch in request.kept if launch.cohort.id == cohort.id for identity in launch.skipped
        )
        # Launches elsewhere that make up for what launches of this cohort left out do not stand for further ones.
        others = (request.launched[identity] - own - left_out[identity] for identity in identities)
        elsewhere = max(0, min(others)) + request.before(now)
        growths.append(_Growth(now, elsewhere, request.most(identities) - own - elsewhere))
        covered |= set(identities)
    return growths


def _founded(request: _Request, covered: Mapping[str, int], room: Room) -> list[_Growth]:
    """New cohorts for the other mixes: those of one lead that lack as many launches share one, as far as they fit.

    Mixes that cohorts go on with (`covered`, with the launches that they get there) are among them where launches of
    an adaptive study left them out, and it is no longer adaptive.
    """
    lacking: dict[str, int] = {}
    for identity in sorted(request.mixes, key=lambda each: each in request.later):  # those of the first look together
        missing = request.most([identity]) - request.measured[identity] - covered.get(identity, 0)
        if missing > 0 and not (identity in covered and request.study.budget.adaptive):
            lacking[identity] = missing
    growths = _begun(request, lacking)
    going_on = {mix.identity for growth in growths for mix in growth.cohort.mixes}
    groups: dict[tuple[str, int], list[Mix]] = {}
    for identity, missing in lacking.items():
        if identity not in going_on:
            mix = request.mixes[identity]
            groups.setdefault((mix.lead, missing), []).append(mix)
    study = request.study
    for (_, missing), group in groups.items():
        for mixes in cohorts(group, request.members, study.budget, _rounds(study), room):
            cohort, elsewhere = request.cohort(mixes), request.most([mixes[0].identity]) - missing
            before = request.before(cohort)
            growths.append(_Growth(cohort, elsewhere + before, missing - before))
    return growths


def _begun(request: _Request, lacking: Mapping[str, int]) -> list[_Growth]:
    """Cohorts that complete what an adaptive study left out, and were begun: all their mixes lack equally many."""
    growths: list[_Growth] = []
    taken: set[str] = set()
    for cohort in cohorts_of(request.kept):
        identities = {mix.identity for mix in cohort.mixes}
        missing = {lacking.get(identity, 0) for identity in identities}
        if len(missing) == 1 and 0 not in missing and not taken & identities:
            now = request.cohort([request.mixes[mix.identity] for mix in cohort.mixes])
            most = request.most(identities)
            growths.append(_Growth(now, most - min(missing), min(missing)))
            taken |= identities
    return growths


def _looks(request: _Request, launches: Iterable[Launch], elsewhere: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    """Which launches each look adds: a launch belongs to the first one that has as many launches of its mixes.

    Launches of cohorts that do not go on, and those of controls, belong to the first look. `elsewhere` has how many
    launches the mixes of each cohort that goes on have in other cohorts, or never get.
    """
    budget = request.study.budget
    if not budget.has_looks:
        return ()
    paths: list[list[str]] = [[] for _ in budget.looks]
    rank = Counter(elsewhere)
    for launch in launches:
        rank[launch.cohort.id] += 1
        goes_on = launch.cohort.id in elsewhere and not request.is_control(launch.cohort)
        look = bisect_left(budget.looks, rank[launch.cohort.id]) if goes_on else 0
        paths[min(look, len(paths) - 1)].append(launch.path)
    return tuple(map(tuple, paths))


def _new_launches(request: _Request, growth: _Growth) -> list[Launch]:
    """Launches with the lowest numbers that are still free (a gap is left where a launch was forgotten)."""
    study, cohort, count = request.study, growth.cohort, max(growth.missing, 0)
    taken = {launch.number for launch in request.kept if launch.cohort.id == cohort.id}
    free = [number for number in range(1, len(taken) + count + 1) if number not in taken]
    return [
        Launch(
            study=study.name,
            cohort=cohort,
            number=number,
            seed=launch_seed(study.seed, (scene.name for scene in cohort.scenes), number),
            design=_design(request, cohort, number),
        )
        for number in free[:count]
    ]


def _design(request: _Request, cohort: Cohort, number: int) -> Design:
    """The design that a new launch gets; measured ones keep the one they were measured with."""
    study, is_control = request.study, request.is_control(cohort)
    design = design_of(study, is_control)
    if study.budget.adaptive and not is_control:
        # Launches measure different mixes, so that the first ones show nothing of the rounds of the others.
        rounds = first_rounds(cohort, study.budget) if study.budget.rounds == "auto" else design.rounds
        return design.model_copy(update={"rounds": rounds, "adaptive": True})
    if study.budget.rounds != "auto" or is_control:
        return design
    if number <= FIRST_LAUNCHES:
        return design.model_copy(update={"rounds": first_rounds(cohort, study.budget)})
    return design.model_copy(update={"rounds": request.decided.get(cohort.id, UNDECIDED), "decided": True})


def design_of(study: Study, is_control: bool = False) -> Design:
    """The design of launches, before anything follows from what was measured."""
    budget, rounds = study.budget, _rounds(study)
    if is_control and study.controls and study.controls.reuse:
        budget = budget.model_copy(update=SHARED_WINDOW)
    return Design(
        rounds=min(rounds, CONTROL_ROUNDS) if is_control else rounds,
        spare_rounds=budget.spare_rounds,
        window=budget.window,
        longest_window=max(budget.longest_window, budget.window),
        settle=budget.settle,
        longest_settle=budget.longest_settle,
        steps=budget.steps,
        limits=study.limits,
        prepare=study.machine.prepare,
        monitor=study.cache.monitor,
        driver=study.cache.driver,
        beyond_site=study.cache.beyond_site,
        model=study.model if study.platform == "modelled" else None,
        counters=_counting(study, is_control),
        slice=None if budget.slice == "auto" else budget.slice,
    )


def _counting(study: Study, is_control: bool) -> Counting:
    """What is counted; a modelled machine has no counters, and a control is neither profiled nor asked for costs."""
    if study.platform == "modelled":
        return Counting(series=0.0, cost_pairs=0)
    keys = study.counters
    return Counting(
        events=keys.chosen,
        topdown=keys.topdown,
        how=keys.how,
        series=keys.series,
        profile=0 if is_control else keys.profile,
        cost_pairs=0 if is_control else keys.cost_pairs,
        ranges=0 if is_control else keys.ranges,
    )


def _rounds(study: Study) -> int:
    """How many rounds a launch has, at least; the word `pilot` must have been replaced by what the pilot found."""
    if study.budget.rounds == "pilot":
        raise CastmatesError(f"the study '{study.name}' takes its rounds from a pilot, which has not been measured.")
    return FEWEST_FIRST if study.budget.rounds == "auto" else study.budget.rounds
