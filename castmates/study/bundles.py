"""Which blocks have their tables gathered together: all companies' blocks of a few numbers, as they are measured."""

from collections.abc import Iterable

BLOCKS = 200  # of a bundle, about; a study of fewer blocks has one


def bundles(paths: Iterable[str]) -> dict[str, list[str]]:
    """By name, the paths (company/number) in each bundle, in their order; further blocks leave full bundles as are."""
    placed = [(company, int(number)) for company, _, number in (path.rpartition("/") for path in paths)]
    numbers = max(1, BLOCKS // max(1, len({company for company, _ in placed})))
    found: dict[int, list[str]] = {}
    for company, number in placed:
        found.setdefault((number - 1) // numbers + 1, []).append(f"{company}/{number}")
    return {str(name): found[name] for name in sorted(found)}
