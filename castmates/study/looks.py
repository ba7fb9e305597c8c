"""Which blocks a study needs, as its looks at the precision decide it."""

from collections.abc import Collection, Iterable

from castmates.study.spec import Plan


def needed(plan: Plan, decisions: Iterable[Collection[str]]) -> list[str]:
    """Paths of the blocks needed after these decisions: which companies went on after the first look, the second …"""
    if not plan.looks:
        return [block.path for block in plan.blocks]
    paths = list(plan.looks[0])
    for added, go_on in zip(plan.looks[1:], decisions, strict=False):
        paths += [path for path in added if company_of(path) in go_on]
    return paths


def company_of(path: str) -> str:
    """The company of a block, from its path."""
    return path.rpartition("/")[0]


def part_of(plan: Plan, paths: Collection[str]) -> Plan:
    """The plan with these blocks only."""
    ours = set(paths)
    return plan.model_copy(update={"blocks": tuple(block for block in plan.blocks if block.path in ours)})
