"""Fresh launches of the best groupings: writes the studies that measure their groups, and reads what these found."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from castmates.analysis.grouping.advice import Advice, FreshLosses
from castmates.analysis.grouping.problem import Group
from castmates.analysis.prediction.losses import Loss, Losses
from castmates.analysis.prediction.measured_losses import measured_losses
from castmates.files import replace_text
from castmates.pipeline.place import Request, caches_of_cpus
from castmates.project import load
from castmates.results.columns.study import EFFECTS, LAUNCHES
from castmates.results.folder import StudyFolder
from castmates.results.pilots import with_rounds_of_pilot
from castmates.results.plans import read_plan
from castmates.results.tables import Tables
from castmates.study.confirmation import FEWEST_LAUNCHES
from castmates.study.group_study import Together, group_study, group_study_name, studies_of

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
