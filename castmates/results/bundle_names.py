"""Which bundles gather the tables of a study's launches, and what a bundle's files are called."""

from collections.abc import Iterable

from castmates.results.columns.launch import LAUNCH_TABLES, table_file

LIST = "launches.json"  # written last: a bundle without it is not whole
RECORDS = "records.json"  # of its launches
FILES = (LIST, RECORDS, *map(table_file, LAUNCH_TABLES))
LAUNCHES = 200  # of a bundle, about; a study of fewer launches has one


def bundles(paths: Iterable[str]) -> dict[str, list[str]]:
    """By name, the paths (cohort/number) of the launches in each bundle, in their order.

    A bundle has the launches of a few numbers of all cohorts, as they are measured: more launches leave full bundles
    as they are.
    """
    placed = [(cohort, int(number)) for cohort, _, number in (path.rpartition("/") for path in paths)]
    numbers = max(1, LAUNCHES // max(1, len({cohort for cohort, _ in placed})))
    paths_of: dict[int, list[str]] = {}
    for cohort, number in placed:
        paths_of.setdefault((number - 1) // numbers + 1, []).append(f"{cohort}/{number}")
    return {str(name): paths_of[name] for name in sorted(paths_of)}
