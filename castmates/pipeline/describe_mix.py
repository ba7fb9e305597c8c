"""One mix of a plan, resolved to CPUs, partitions and command lines."""

from castmates.errors import CastmatesError
from castmates.study.spec import Plan


def describe(plan: Plan, name: str) -> dict[str, object]:
    """The mix, its members, and the scenes and companies that measure it."""
    same = [mix for mix in plan.mixes if mix.name == name]  # each of its partitions is a mix too
    if not same:
        raise CastmatesError(f"the plan of the study '{plan.study}' has no mix '{name}'.")
    mix = same[0]
    ours = {each.identity for each in same}  # a company may measure it by another name, of the same place
    companies = [company for company in plan.companies if ours & {each.identity for each in company.mixes}]
    members = {member.name: member for company in companies for member in company.members}
    return mix.model_dump(mode="json") | {
        "members": [members[member].model_dump(mode="json") for member in (mix.lead, *mix.antagonists)],
        "partitions": [partition.model_dump(mode="json") for each in same for partition in each.partitions],
        "companies": sorted(company.id for company in companies),
    }
