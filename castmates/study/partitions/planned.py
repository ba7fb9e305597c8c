"""The partitions of a plan by their names."""

from castmates.study.spec import Plan


def curves(plan: Plan) -> dict[str, str]:
    """What each partition has in common with those that differ from it in the lead's ways alone."""
    return {each.name: each.curve or each.name for mix in plan.mixes for each in mix.partitions}


def masked(plan: Plan) -> set[str]:
    """Those that the cache's driver gives out."""
    return {each.name for mix in plan.mixes for each in mix.partitions if each.of_cache}
