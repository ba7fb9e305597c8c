"""What a study is: which programs run beside which, how much of it is measured, how long the rest takes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from castmates.english import counted, listed
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.project import ENVIRONMENTS, Project
from castmates.results.looks import precision_words, read_adaptive_looks
from castmates.results.records import torn_words
from castmates.study import mitigations
from castmates.study.class_names import workload_of
from castmates.study.cpus import format_cpu_list
from castmates.study.curves import summary
from castmates.study.placement_keys import FEWEST_PAIRS, domains_of
from castmates.study.rehearsing import PLATFORM
from castmates.study.remarks import Remark
from castmates.study.scenes import load_of, service_members
from castmates.study.spec import UNMANAGED, Cohort, Launch, Mix, Plan
from castmates.terminal.preview import duration
from castmates.terminal.preview.duration import (
    Amount,
    Amounts,
    Chances,
    antagonists,
    chances,
    seconds_between,
    still_to_measure,
)
from castmates.terminal.preview.isolation import shared
from castmates.terminal.preview.profiles import profile_words, trace_words
from castmates.workloads.environments import place_of, ready_file
from castmates.workloads.inputs import lack_of

# What `place` in a study means: jobs, caches, and which losses the study will know.

NAMED = 4  # pairs
NEAR = ("", "core", "llc")  # places around one last-level cache, on separate cores


def placing_line(project: Project, plan: Plan) -> str:
    """A sentence; "" where the study places no jobs."""
    keys = project.study.place
    if not keys.jobs:
        return ""
    many = counted(sum(job.count for job in keys.jobs.values()), "job")
    own = next((each for each in project.by_class if each.machine == keys.machine), project)
    try:
        sizes = [cores for _, cores in domains_of(own.layout(), keys, str(project.study_file))]
    except CastmatesError as problem:
        return f"{many}. {problem}"
    size = str(sizes[0]) if len(set(sizes)) == 1 else f"{min(sizes)} to {max(sizes)}"
    return f"{many} on {counted(len(sizes), 'last-level cache')} with {size} cores each; {_pairs(project, plan)}"


def _pairs(project: Project, plan: Plan) -> str:
    """Which of the pairs that may share a cache the study measures."""
    jobs, machine = project.study.place.jobs, project.study.place.machine or ""
    wanted = [(a, b) for a in jobs for b in jobs if a != b or jobs[a].count > 1]
    workloads = {member.name: member.workload for launch in plan.launches for member in launch.cohort.members}
    known: set[tuple[str, str]] = set()
    for mix in plan.mixes:
        if mix.machine != machine:  # losses of classes are never mixed
            continue
        if len(mix.antagonists) == 1 and not mix.partitions and mitigations.place_of(mix.name) in NEAR:
            lead, other = workloads[mix.lead], workloads[mix.antagonists[0]]
            known |= {(lead, other), (other, lead)}
    lacking = [f"{a} beside {b}" for a, b in wanted if (a, b) not in known]
    if not lacking:
        return f"the study measures all {len(wanted)} mixes"
    more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
    return (
        f"the study does not measure {len(lacking)} of the {len(wanted)} mixes ({', '.join(lacking[:NAMED])}{more}), "
        "which are predicted from the others, or left out where too few of these are known"
    )


# What a plan measures of a grid, and what it leaves to prediction, in words.


def prediction_words(plan: Plan) -> str:
    """A sentence or two; "" where nothing is predicted."""
    return " ".join(_sentences(plan))


def _sentences(plan: Plan) -> Iterator[str]:
    grid = plan.prediction
    if grid is None:
        return
    whole, fitted = len(grid.leads) * len(grid.antagonists), grid.profiles + grid.pairs
    profiles = f", {grid.profiles} of them with bubbles and reporters" if grid.profiles else ""
    yield (
        f"{fitted} mixes{profiles}, which are {100 * fitted / whole:.0f} % of the grid's {whole} pairs, are measured; "
        "what the other pairs lose is predicted from them, in both roles."
    )
    if fitted < FEWEST_PAIRS:
        yield f"That is too little: {FEWEST_PAIRS} mixes of two are the fewest from which others are predicted."
    if len(grid.check) < grid.to_check:
        count = f"only {len(grid.check)}" if grid.check else "none"
        yield (
            f"Of the {counted(grid.to_check, 'further pair')} that were to show the error {count} can: every other "
            "loss is measured already, and none is left to predict; measure less."
        )
    elif grid.check:
        yield f"{counted(len(grid.check), 'further pair')} {'shows' if len(grid.check) == 1 else 'show'} the error."


@dataclass(frozen=True)
class Row:
    """A program with everything that runs beside it."""

    program: str
    beside: tuple[str, ...]  # "stream", "stream+chase"; none for a program that is alone under partitions
    cpus: tuple[str, str]  # of the program, of its antagonists
    partitions: int
    amount: Amount


@dataclass(frozen=True)
class Launched:
    """The mixes that share a launch."""

    cohort: str
    program: str
    scenes: tuple[str, ...]  # without a partition
    under_partitions: int  # further scenes
    rounds: tuple[int, ...]
    amount: Amount


@dataclass(frozen=True)
class Outline:
    """Everything that `castmates plan` shows first."""

    study: str
    title: str
    file: str
    platform: str
    total: Amount
    to_measure: tuple[int, int]  # launches
    seconds: tuple[float, float]  # of the sweep that measures them, analysis included
    rows: tuple[Row, ...]
    controls: tuple[tuple[str, str, str], ...]  # kind, program, antagonists
    of_controls: Amount  # launches that serve controls alone
    cohorts: tuple[Launched, ...]
    chances: Chances
    precision: str  # whether a wanted one was reached; "" where none is wanted
    to_build: tuple[str, ...]  # environments
    missing: tuple[str, ...]  # programs that no sweep installs, each with its remedy
    not_here: tuple[str, ...]  # what explains a loss or gives it back, and this machine lacks
    partitions: tuple[str, ...]  # names
    remembered: bool  # the partitions are those of the last plan: the cache cannot be partitioned now
    torn: tuple[str, ...]  # launches that cannot be used
    notes: tuple[Remark, ...]  # what the study asks of the cache and does not get
    cautions: tuple[str, ...] = ()  # where an antagonist cannot do here what it is named for, or is too far
    mitigations: tuple[tuple[str, str, str], ...] = ()  # mix, what is tried against its loss, why it is not
    adaptive: str = ""  # how much an adaptive study measures at first, and at most
    placing: str = ""  # which jobs are to share which caches
    services: tuple[str, ...] = ()  # on open-loop services
    captured: bool = False  # planned for a machine that was captured into a file, which is not this one
    prediction: str = ""  # what is measured of a grid, and what is left to prediction
    profiles: str = ""  # what is traced beside what is measured
    variants: tuple[str, ...] = ()  # leads in other settings, and what these change
    without_own_losses: bool = False  # antagonists are not measured alone
    without_placebo: bool = False
    traces: str = ""  # of which mixes everything that happens is recorded


def outline(project: Project, planned: Plan) -> Outline:
    """The study as it is planned and measured now."""
    plan, folder = duration.expected(project, planned), project.results
    torn, now = project.found().torn, project.shareable_cache()
    amounts = Amounts(folder, plan, torn)
    least, most = still_to_measure(project, plan, torn)
    results = {mix.identity for mix in plan.mixes}
    serving = {cohort.id for cohort in plan.cohorts if any(mix.identity in results for mix in cohort.mixes)}
    return Outline(
        study=project.study.name,
        title=project.study.title,
        file=str(project.study_file),
        platform=PLATFORM if project.rehearsed else project.study.platform,
        total=amounts.of(plan.launches),
        to_measure=(len(least), len(most)),
        seconds=seconds_between(project, least, most),
        rows=tuple(_rows(plan, [launch for launch in plan.launches if launch.cohort.id in serving], amounts)),
        controls=tuple((each.kind, workload_of(each.mix.lead), antagonists(each.mix)) for each in plan.controls),
        of_controls=amounts.of([launch for launch in plan.launches if launch.cohort.id not in serving]),
        cohorts=tuple(_launched(plan, cohort, amounts) for cohort in plan.cohorts),
        chances=chances(project, plan, torn),
        precision=precision_words(plan, folder, project.study.budget.precision)
        or summary(read_adaptive_looks(plan, folder)),
        adaptive=_adaptive(project, plan),
        to_build=() if project.elsewhere else tuple(_to_build(most)),
        missing=() if project.elsewhere or project.modelled else tuple(_missing(project, most)),
        not_here=tuple(_not_here(project)),
        partitions=tuple(dict.fromkeys(part.name for mix in plan.mixes for part in mix.partitions)),
        remembered=not plan.machines
        and any(mix.partitions for mix in plan.mixes)
        and (now and now.beyond_site) != (plan.cache and plan.cache.beyond_site),
        torn=tuple(torn_words(torn)),
        notes=plan.notes,
        cautions=(*plan.cautions, *shared(plan, project.ways_of_others())),
        mitigations=tuple((each.mix, each.kind, each.reason) for each in plan.mitigations),
        placing=placing_line(project, plan),
        services=tuple(lines(project, plan)),
        captured=project.elsewhere is not None,
        prediction=prediction_words(planned),
        profiles=profile_words(project.study, planned, folder),
        variants=tuple(f"{each.workload} is {each.lead} with {each.words}" for each in plan.variants),
        without_own_losses=not project.study.budget.antagonists_alone,
        without_placebo=not project.study.budget.placebo,
        traces=trace_words(project.study, planned, folder),
    )


def _adaptive(project: Project, plan: Plan) -> str:
    """How much an adaptive study measures at first, and when it looks; "" in other studies."""
    budget = project.study.budget
    if not budget.adaptive:
        return ""
    first = sum(mix.identity not in plan.later for mix in plan.mixes)
    looks = listed([*map(str, budget.looks[:3]), "…", str(budget.looks[-1])]) if len(budget.looks) > 4 else ""
    return (
        f"{first} of {len(plan.mixes)} mixes and partitions are measured at first. Looks after "
        f"{looks or listed(list(map(str, budget.looks)))} launches decide which go on, and which are added; what is "
        "never measured of a curve is interpolated."
    )


def _rows(plan: Plan, launches: Sequence[Launch], amounts: Amounts) -> Iterator[Row]:
    mixes_of: dict[str, list[Mix]] = {}
    for mix in plan.mixes:
        mixes_of.setdefault(mix.lead, []).append(mix)
    members = {member.name: member for cohort in plan.cohorts for member in cohort.members}
    for lead, mixes in mixes_of.items():
        others = list(dict.fromkeys(name for mix in mixes for name in mix.antagonists))
        yield Row(
            program=workload_of(lead),
            beside=tuple(dict.fromkeys(antagonists(mix) for mix in mixes if mix.antagonists)),
            cpus=(_cpus(members[lead].cpus), _cpus(cpu for name in others for cpu in members[name].cpus)),
            partitions=len({part.name for mix in mixes for part in mix.partitions}),
            amount=amounts.of([launch for launch in launches if launch.cohort.lead.name == lead]),
        )


def _cpus(cpus: Iterable[int]) -> str:
    return format_cpu_list(set(cpus)) or "–"


def _launched(plan: Plan, cohort: Cohort, amounts: Amounts) -> Launched:
    launches = [launch for launch in plan.launches if launch.cohort.id == cohort.id]
    scenes = tuple(scene.name for scene in cohort.scenes if scene.partition == UNMANAGED)
    return Launched(
        cohort=cohort.id,
        program=workload_of(cohort.lead.name),
        scenes=scenes,
        under_partitions=len(cohort.scenes) - len(scenes),
        rounds=tuple(sorted({launch.design.rounds for launch in launches})),
        amount=amounts.of(launches),
    )


def _to_build(launches: Sequence[Launch]) -> list[str]:
    """The environments that are built before these launches are measured."""
    wanted = {
        (member.environment, member.environment_key)
        for launch in launches
        for member in launch.cohort.members
        if member.environment and member.environment_key
    }
    return sorted(name for name, key in wanted if not ready_file(place_of(name, key, cache_folder())).is_file())


def _missing(project: Project, launches: Sequence[Launch]) -> Iterator[str]:
    """What these launches start and this machine lacks, without the environments that a sweep builds."""
    names = dict.fromkeys(workload_of(member.name) for launch in launches for member in launch.cohort.members)
    for name in names:
        lack = lack_of(project.workloads[name], ENVIRONMENTS, cache_folder()) if name in project.workloads else None
        if lack and not lack.environment:
            yield f"{name}: {lack.what} ({lack.remedy})"


def _counts(project: Project) -> bool:
    if project.elsewhere:
        return project.elsewhere.has_counters
    from castmates.machine.probes import counts_instructions

    return counts_instructions()


def _not_here(project: Project) -> Iterator[str]:
    if project.modelled:
        return
    if not _counts(project):
        yield "hardware counters"
    cache = project.shareable_cache()
    if cache is None or not cache.groups:
        yield "cache partitions"


# What `castmates plan` shows of open-loop services: their loads, what they are judged by, and limits on latencies.

MANY = 6  # services that are named one by one


def lines(project: Project, plan: Plan) -> list[str]:
    """A sentence on the services, and one on each limit; none without a service."""
    found = {member.workload: member for member in service_members(plan).values()}
    if not found:
        return []
    ordered = sorted(found.items(), key=lambda one: load_of(one[1]) or 0.0)
    names = [_with_load(name, load_of(member)) for name, member in ordered[:MANY]]
    names += [f"{len(found) - MANY} more"] if len(found) > MANY else []
    judged = f"{listed(names)}: judged by the p99 of request latency, not by rate"
    sharing = [name for name, member in found.items() if len(member.cpus) == 1]
    shared = ["server and load generator share a CPU where they have one (castmates help services)"] if sharing else []
    limits = project.study.recommend.latency
    keep = [f"which load keeps {listed([f'{name} below {time}' for name, time in limits.items()])}"] if limits else []
    return [judged, *shared, *keep]


def _with_load(name: str, load: float | None) -> str:
    return name if load is None else f"{name} ({load:,.0f} a second)"
