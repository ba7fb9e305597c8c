"""All tables of a study, by name: each is declared once, in a module of this folder or beside its estimate.

What is beside its estimate is a module of `castmates.analysis.tables`; it is found by being there.
"""

from collections.abc import Collection
from importlib import import_module
from pkgutil import iter_modules

from castmates.errors import CastmatesError
from castmates.results.columns.contract import Table, by_name

BESIDE_ESTIMATES, _OTHERS = (
    [import_module(f"{folder}.{found.name}") for found in iter_modules(import_module(folder).__path__)]
    for folder in ("castmates.analysis.tables", "castmates.results.columns")
)
TABLES = by_name(
    *(thing for module in (*_OTHERS, *BESIDE_ESTIMATES) for thing in vars(module).values() if isinstance(thing, Table))
)


def table_of(name: str) -> Table:
    """The table of this name."""
    if name not in TABLES:
        raise CastmatesError(f"there is no table '{name}'; there are: {', '.join(TABLES)}.")
    return TABLES[name]


def written_by(rule: str, among: Collection[str] = tuple(TABLES)) -> dict[str, Table]:
    """The tables that a rule of the workflow writes, among those that a study has."""
    return {name: TABLES[name] for name in among if TABLES[name].rule == rule}
