"""All tables of a study, by name: each is declared once, in a module of this folder."""

from collections.abc import Collection

from castmates.errors import CastmatesError
from castmates.results.columns import (
    block,
    dataflow,
    findings,
    mixes,
    nodes,
    operations,
    partitions,
    placing,
    prediction,
    primitives,
    ranges,
    services,
    study,
    trace,
    trace_summary,
    variants,
)
from castmates.results.columns.contract import Table, by_name

_MODULES = (
    study,
    mixes,
    nodes,
    services,
    prediction,
    variants,
    partitions,
    placing,
    operations,
    primitives,
    block,
    ranges,
    findings,
    trace,
    trace_summary,
    dataflow,
)
TABLES = by_name(*(thing for module in _MODULES for thing in vars(module).values() if isinstance(thing, Table)))


def table_of(name: str) -> Table:
    """The table of this name."""
    if name not in TABLES:
        raise CastmatesError(f"there is no table '{name}'; there are: {', '.join(TABLES)}.")
    return TABLES[name]


def written_by(rule: str, among: Collection[str] = tuple(TABLES)) -> dict[str, Table]:
    """The tables that a rule of the workflow writes, among those that a study has."""
    return {name: TABLES[name] for name in among if TABLES[name].rule == rule}
