"""What `place` in a study means: jobs, caches, and which losses the study will know."""

from collections.abc import Iterator

from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.project import Project
from castmates.study.mitigations import place_of
from castmates.study.placement_keys import FEWEST_PAIRS, domains_of
from castmates.study.spec import Plan

NAMED = 4  # pairs
NEAR = ("", "core", "llc")  # places around one last-level cache, on separate cores


def line(project: Project, plan: Plan) -> str:
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
        if len(mix.antagonists) == 1 and not mix.partitions and place_of(mix.name) in NEAR:
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
