"""Makes the tables of a rule: each by the function that its declaration names, from what its parameters name.

A parameter names a fact (what launches left, what the study asks for) or another table of the same rule. A parameter
without a default is needed: where there is no such fact, the table is empty.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.effects.pooling import joined_tables
from castmates.parallel import side_by_side
from castmates.results.columns.contract import Table
from castmates.results.columns.registry import written_by
from castmates.results.columns.study import frame
from castmates.results.tables import write_table, written_together


class Estimates:
    """Facts by their names, and the tables that a rule makes of them, each of which is made once.

    A fact that is read each time it is asked for, as what does not fit into memory, is a `partial`. Parts of a study
    that are never pooled have their own facts: a table is made of each, and all are joined. An estimate that needs what
    the whole study alone has is made once.
    """

    def __init__(self, rule: str, facts: Mapping[str, Any], parts: Sequence[Mapping[str, Any]] = ()) -> None:
        self.rule = rule
        self._facts, self._all_facts, self._parts = facts, (facts, *parts), [Estimates(rule, part) for part in parts]
        self._estimated = {name: table for name, table in written_by(rule).items() if name not in facts}
        self._made: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 (a fact is anything)
        """A fact or a table."""
        if name not in self._estimated:
            fact = self._facts[name]
            return fact() if isinstance(fact, partial) else fact
        if name not in self._made:
            self._made |= self._make(self._estimated[name])
        return self._made[name]

    def knows(self, name: str) -> bool:
        """Whether there is such a fact or table."""
        return name in self._estimated or name in self._facts

    def together(self, names: Collection[str]) -> list[set[str]]:
        """The tables, those together of which one is made from another; first those for which facts are read."""
        read = {name for facts in self._all_facts for name, fact in facts.items() if isinstance(fact, partial)}
        groups: list[set[str]] = []
        for name in names:
            group = {name} | self._sources(name).intersection(self._estimated)
            for other in [each for each in groups if each & group]:
                groups.remove(other)
                group |= other
            groups.append(group)
        return sorted(groups, key=lambda group: read.isdisjoint(set().union(*map(self._sources, group))))

    def _sources(self, name: str) -> set[str]:
        """The facts and tables that a table is made of, and what is made at once with it."""
        if name not in self._estimated:
            return {name}
        table = self._estimated[name]
        twins = {other.name for other in self._estimated.values() if other.estimate == table.estimate}
        return twins.union(*(self._sources(each.name) for each in parameters(table)))

    def _make(self, table: Table) -> dict[str, pd.DataFrame]:
        names = {each.name: each.default is each.empty for each in parameters(table)}  # whether each is needed
        if self._parts and all(self._parts[0].knows(name) for name, needed in names.items() if needed):
            return {table.name: joined_tables([part[table.name] for part in self._parts])}
        given = {name: self[name] for name, needed in names.items() if needed or self.knows(name)}
        if any(given[name] is None for name, needed in names.items() if needed):
            return {table.name: frame([], table)}
        made = function_of(table)(**given)
        several = made if isinstance(made, Mapping) else {table.name: made}
        return {name: _as_declared(each, self._estimated[name]) for name, each in several.items()}


def function_of(table: Table) -> Callable[..., Any]:
    """The estimate of a table."""
    module, _, name = table.estimate.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"castmates.analysis.{module}"), name)
    return function


def parameters(table: Table) -> Sequence[Parameter]:
    """What its estimate asks for, by name."""
    return list(signature(function_of(table)).parameters.values())


def _as_declared(made: pd.DataFrame | list[Mapping[str, Any]], table: Table) -> pd.DataFrame:
    if isinstance(made, list):
        return frame(made, table)
    return made[list(table)].astype(dict(table)) if len(made) else frame([], table)


def write(estimates: Estimates, names: Collection[str], output: Path, jobs: int = 1) -> None:
    """Write these tables of a rule, so many at a time."""
    with written_together(output, estimates.rule) as made:
        groups = [sorted(group & {*names}) for group in estimates.together(names)]
        side_by_side({group[0]: partial(_write, estimates, group, made) for group in groups}, jobs)


def _write(estimates: Estimates, names: Collection[str], folder: Path) -> None:
    for name in names:
        write_table(estimates[name], folder / name)
