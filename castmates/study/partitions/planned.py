"""The partitions of a plan by their names."""

from castmates.study.spec import Partition, Plan


def partitions_by_name(plan: Plan) -> dict[str, Partition]:
    """Each partition; of those of several mixes with one name the last."""
    return {each.name: each for mix in plan.mixes for each in mix.partitions}


def curve_names(plan: Plan) -> dict[str, str]:
    """What each partition has in common with those that differ from it in the lead's ways alone."""
    return {name: each.curve or name for name, each in partitions_by_name(plan).items()}


def masked(plan: Plan) -> set[str]:
    """Those that the cache's driver gives out."""
    return {name for name, each in partitions_by_name(plan).items() if each.of_cache}
