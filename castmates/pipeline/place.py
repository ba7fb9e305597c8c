"""A measured study and jobs -> which of them should share which last-level cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from castmates.analysis.grouping.advice import Advice, FreshLosses, Origin, masks_of
from castmates.analysis.grouping.problem import Group, Groups, Job, Problem, usual_groups
from castmates.analysis.grouping.search import TIME_LIMIT, Solver, search
from castmates.analysis.prediction.predicted import (
    Loss,
    Losses,
    MeasuredLosses,
    PredictedLosses,
    around_one_cache,
    best_known,
    measured_losses,
)
from castmates.errors import CastmatesError
from castmates.files import replace_text, written_text
from castmates.project import Project, load, on_captured_machine
from castmates.results.columns.study import EFFECTS, LAUNCHES
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan, with_rounds_of_pilot
from castmates.results.records import read_json
from castmates.results.tables import Tables
from castmates.study import cpus
from castmates.study.confirmation import FEWEST_LAUNCHES, Together, group_study, group_study_name, studies_of
from castmates.study.dials import dials_of
from castmates.study.model import Workload
from castmates.study.node_classes import parts_of
from castmates.study.placement.layout import Layout
from castmates.study.placement_keys import PlaceKeys, domains_of
from castmates.study.reading import did_you_mean, read_keys
from castmates.study.spec import Plan


@dataclass(frozen=True)
class Request:
    """Whose jobs are placed, and by what the study has measured."""

    project: Project  # of one class of nodes
    plan: Plan  # of this class
    keys: PlaceKeys
    origin: str  # the file in which the jobs are written
    layout: Layout  # of the machine that they are placed on

    @property
    def effects(self) -> pd.DataFrame:
        """What the study has measured of the class."""
        table = Tables(self.project.results, self.project.study_file).read(EFFECTS)
        return table[table["machine"] == self.plan.machine]

    @property
    def platforms(self) -> list[str]:
        """Those that the losses are known of: measured, emulated, modelled, rehearsed."""
        return sorted({*self.effects["platform"]} - {""})


def request_of(project: Project, jobs_file: Path | None, capture: Path | None) -> Request:
    """What is asked: by the study's key `place`, or by a file of the same keys."""
    keys, origin = project.study.place, str(project.study_file)
    if jobs_file is not None:
        keys, origin = _keys_of(jobs_file), str(jobs_file)
    if not keys.jobs:
        where = f"{origin}: there are no jobs to place; write them under"
        raise CastmatesError(
            f"{where} {'`jobs`' if jobs_file else '`place: {jobs: …}`, or give a file with --jobs'}, such as "
            "`jobs: {dlrm-train: {count: 2, limit: 5%}, stream: 2}`."
        )
    for name in keys.jobs:
        if name not in project.workloads:
            known = did_you_mean(name, project.workloads) or "."
            raise CastmatesError(f"{origin}: '{name}' in 'jobs' is not in the catalogue{known}")
    plan = read_plan(project.results.plan_file)
    own, part = _of_class(project, plan, keys, origin)
    request = Request(own, part, keys, origin, _captured(project, capture) if capture else own.layout())
    if len(request.platforms) > 1:
        raise CastmatesError(
            f"{project.results}: its launches are {' and '.join(request.platforms)}, and losses of several platforms "
            "are never mixed; measure the study on one of them."
        )
    return request


def _captured(project: Project, capture: Path) -> Layout:
    """The captured machine, on which jobs are placed by losses that were measured on its like."""
    there = on_captured_machine(project, capture)
    measured = read_json(project.results.machine_file).get("cpu_model")
    captured = there.elsewhere.processor if there.elsewhere else None
    if measured and captured and measured != captured:
        raise CastmatesError(
            f"{capture}: this machine has the processor {captured}, and the losses of {project.results} were measured "
            f"on {measured}: they show nothing of it; measure the study there."
        )
    return there.layout()


def _keys_of(file: Path) -> PlaceKeys:
    return read_keys(PlaceKeys, written_text(file, "the file of jobs"), str(file))


def _of_class(project: Project, plan: Plan, keys: PlaceKeys, origin: str) -> tuple[Project, Plan]:
    """The project and its plan on the class of nodes that is meant."""
    classes = {each.name: place for place, each in enumerate(plan.machines)}
    if not classes:
        if keys.machine:
            raise CastmatesError(f"{origin}: 'machine' is '{keys.machine}', but the study has no classes of nodes.")
        return project, plan
    if keys.machine not in classes:
        found = f"is '{keys.machine}'" if keys.machine else "is missing"
        raise CastmatesError(
            f"{origin}: 'machine' of the jobs {found}; the study measured several classes of nodes, whose losses are "
            f"never mixed, so name one: {', '.join(classes)}."
        )
    one = next(each for each in project.by_class if each.machine == keys.machine)
    return one, parts_of(plan)[classes[keys.machine]]


def problem_of(request: Request) -> tuple[Problem, tuple[int, ...]]:
    """The jobs and the domains, and the ids of these."""
    keys, workloads, cache = request.keys, request.project.workloads, request.plan.cache
    caches = domains_of(request.layout, keys, request.origin)
    problem = Problem(
        jobs=tuple(
            Job(name, job.count, _cores(workloads[name], name, request.origin), job.limit)
            for name, job in keys.jobs.items()
        ),
        domains=tuple(cores for _, cores in caches),
        aim=keys.aim,
        most=keys.most,
        ways=cache.ways if cache and keys.masks else 0,
        least_ways=cache.least_ways if cache else 1,
        worth=100 * request.project.study.margin,
    )
    if why := problem.misfit():
        raise CastmatesError(f"{request.origin}: {why}; place fewer jobs, or more domains.")
    return problem, tuple(number for number, _ in caches)


def _cores(workload: Workload, name: str, origin: str) -> int:
    if workload.saturate:
        raise CastmatesError(
            f"{origin}: '{name}' takes as many CPUs as saturate a memory (`saturate`), which differs between machines; "
            "place a workload with `cores`."
        )
    return workload.cores


def losses_of(request: Request) -> Losses:
    """What is known of losses: the one place where those that are predicted come in."""
    ours = around_one_cache(request.plan, request.effects, caches_of_cpus(request.project))
    return best_known(losses_measured(request), PredictedLosses.from_effects(ours, dials=dials_of(request.plan)))


def losses_measured(request: Request) -> MeasuredLosses:
    """Those that the study has measured."""
    return measured_losses(request.plan, request.effects, caches_of_cpus(request.project))


def caches_of_cpus(project: Project) -> Mapping[int, int]:
    """The last-level cache of each CPU of the machine that measured."""
    if project.machine or project.modelled:
        return {cpu.id: cpu.llc for cpu in project.layout().cpus if cpu.llc is not None}
    topology = read_json(project.results.machine_file).get("topology") or {}
    caches = [cache for cache in topology.get("llcs") or () if cache.get("cpus")]
    return {cpu: number for number, cache in enumerate(caches) for cpu in cpus.parse(str(cache["cpus"]), "llcs")}


def advised(request: Request, solver: Solver = "auto", seconds: float = TIME_LIMIT) -> Advice:
    """The best groupings, and what they gain over the usual ways."""
    problem, caches = problem_of(request)
    groups = Groups(problem, losses_of(request))
    found = search(groups, solver, seconds=seconds)
    study = request.project.study
    platform = next(iter(request.platforms), study.platform)
    separate = [group for grouping in found.best for group in grouping.groups if group.ways]
    return Advice(
        place=Origin(study.name, platform, request.plan.machine),
        problem=problem,
        caches=caches,
        found=found,
        usual=(usual_groups(groups, "random", study.seed), usual_groups(groups, "spreading", study.seed)),
        pairs={pair: loss for pair, loss in groups.pairs().items() if loss is not None},
        unknown=tuple(pair for pair, loss in groups.pairs().items() if loss is None),
        masks={group: masks_of(group, request.plan) for group in separate},
        cache_ways=request.plan.cache.ways if request.plan.cache else 0,
    )


# Fresh launches of the best groupings: writes the studies that measure their groups, and reads what these found.

HEAD = "Written by `castmates advice {study} --place --confirm`: fresh launches of the best groups of jobs."


def files_of(request: Request, advice: Advice) -> Mapping[Path, Sequence[Group]]:
    """The study files that measure the best groupings, each with the groups that it measures."""
    groups = {_together(group, advice): group for grouping in advice.found.best for group in grouping.groups}
    folder, study, machine = request.project.results.place, request.project.study.name, request.plan.machine
    return {
        folder / f"{group_study_name(study, each, machine)}.yaml": [groups[one] for one in each]
        for each in studies_of(list(groups))
    }


def _together(group: Group, advice: Advice) -> Together:
    return group.members, advice.masks.get(group, ())


def write_studies(request: Request, advice: Advice, launches: int | None) -> list[Path]:
    """Write the studies that measure the groups of the best groupings; their files."""
    study = with_rounds_of_pilot(request.project.study, request.project.study_file)
    if machine := request.plan.machine:
        study = study.model_copy(update={"machines": load(request.project.study_file).study.machines})
    count = max(FEWEST_LAUNCHES, study.budget.launches) if launches is None else launches
    files = files_of(request, advice)
    for file, groups in files.items():
        fresh = group_study(study, [_together(group, advice) for group in groups], count, machine)
        replace_text(file, fresh.text(HEAD.format(study=request.project.study_file)))
    return list(files)


def fresh_losses(request: Request, advice: Advice) -> tuple[dict[Group, FreshLosses], list[str]]:
    """What fresh launches found of the groups of the best groupings, and why others of them do not count."""
    found, refused = dict[Group, FreshLosses](), list[str]()
    for file, groups in files_of(request, advice).items():
        folder = StudyFolder(request.project.results.path.parent / file.stem)
        if not folder.table_file("effects").is_file():
            continue
        if why := _not_comparable(request, folder):
            refused.append(why)
            continue
        found |= _found(request, file, folder, groups)
    return found, refused


def _not_comparable(request: Request, fresh: StudyFolder) -> str:
    """Why fresh launches do not show what the study was about; "" where they do."""
    ours, theirs = (Tables(folder).read(LAUNCHES) for folder in (request.project.results, fresh))
    for what in ("platform", "host"):
        known, new = ({*table[what]} - {""} for table in (ours[ours["machine"] == request.plan.machine], theirs))
        if others := sorted(new - known):
            where = f"is {others[0]}" if what == "platform" else f"was measured on another machine ({others[0]})"
            return f"{fresh}: {where}, so it confirms nothing of {request.project.results}"
    return ""


def _found(request: Request, file: Path, folder: StudyFolder, groups: Sequence[Group]) -> dict[Group, FreshLosses]:
    plan = read_plan(folder.plan_file)
    project = load(file)
    one = next((each for each in project.by_class if each.machine == request.plan.machine), project)
    losses = measured_losses(plan, Tables(folder).read(EFFECTS), caches_of_cpus(one))
    found = dict[Group, FreshLosses]()
    for group in groups:
        own = [_loss_of(losses, group, number) for number in range(len(group.members))]
        if len(known := [loss for loss in own if loss is not None]) == len(own):
            found[group] = FreshLosses(file.stem, tuple(known))
    return found


def _loss_of(losses: Losses, group: Group, number: int) -> Loss | None:
    beside = [*group.members[:number], *group.members[number + 1 :]]
    return losses.of(group.members[number], beside, group.ways[number] if group.ways else None)
