"""One mix of a plan, resolved to CPUs, partitions and command lines."""

from castmates.errors import CastmatesError
from castmates.study.spec import Plan


def describe(plan: Plan, name: str) -> dict[str, object]:
    """The mix, its members, and the scenes and cohorts that measure it."""
    same = [mix for mix in plan.mixes if mix.name == name]  # each of its partitions is a mix too
    if not same:
        raise CastmatesError(f"the plan of the study '{plan.study}' has no mix '{name}'.")
    mix = same[0]
    ours = {each.identity for each in same}  # a cohort may measure it by another name, of the same place
    cohorts = [cohort for cohort in plan.cohorts if ours & {each.identity for each in cohort.mixes}]
    members = {member.name: member for cohort in cohorts for member in cohort.members}
    return mix.model_dump(mode="json") | {
        "members": [members[member].model_dump(mode="json") for member in (mix.lead, *mix.antagonists)],
        "partitions": [partition.model_dump(mode="json") for each in same for partition in each.partitions],
        "cohorts": sorted(cohort.id for cohort in cohorts),
    }
