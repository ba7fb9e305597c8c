"""What the page reads of a study's traces: their records, and what is asked of their tables."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import quote

import pandas as pd

from castmates.analysis.core import once
from castmates.report.results import Results
from castmates.results.columns.trace import OPENED, PERFETTO_FILE
from castmates.timeline.flames.files import Asked, name_of, warnings
from castmates.timeline.flames.profile import is_run_again
from castmates.timeline.queries.asking import Named, ask, query_of, values_of
from castmates.timeline.queries.database import TraceFolder, database, of_study, readable
from castmates.timeline.tables import read, read_about


class Ask(Protocol):
    """Answers a question to one trace."""

    def __call__(self, sql: str, values: Mapping[str, str] | None = None, /) -> pd.DataFrame:
        """The answer to SQL."""


@dataclass(frozen=True)
class Trace:
    """A trace of the study."""

    folder: TraceFolder

    @property
    def name(self) -> str:
        """The mix, and the partition after @."""
        return self.folder.name

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """Its record."""
        return read_about(self.folder.path)

    @property
    def lead(self) -> str:
        """The member whose loss is studied."""
        return str(self.about.get("lead") or "")

    def named(self, name: str, *values: str) -> pd.DataFrame:
        """The answer of a named query."""
        query: Named = query_of(name)
        return self.ask(query.sql, values_of(query, values))

    def ask(self, sql: str, values: Mapping[str, str] | None = None) -> pd.DataFrame:
        """The answer to SQL over this trace alone."""
        with self.opened() as asked:
            return asked(sql, values)

    @contextmanager
    def opened(self) -> Iterator["Ask"]:
        """What answers several questions to this trace, which is opened once."""
        with database([self.folder]) as connection:

            def asked(sql: str, values: Mapping[str, str] | None = None) -> pd.DataFrame:
                answer: pd.DataFrame = ask(connection, sql, values).read_pandas()
                return answer

            yield asked

    def warnings(self) -> list[str]:
        """Why flame graphs of commands that are run again and again may mislead."""
        if not any(is_run_again(self.about, name) for name in self.about.get("members") or ()):
            return []  # and no table is read
        return warnings(read(self.folder.path, "tracks", "intervals", "instants", "samples", "stacks"))

    def links(self) -> list[tuple[str, str]]:
        """What of it can be opened, with the way there from the page."""
        graph = name_of(Asked(self.lead, is_difference=True))
        there = ((OPENED, "open in Perfetto"), (PERFETTO_FILE, PERFETTO_FILE), (graph, "flame graph of the difference"))
        return [(way_to(self.name, file), words) for file, words in there if (self.folder.path / file).is_file()]


def way_to(trace: str, file: str) -> str:
    """The link from the report to a file of a trace."""
    return quote(f"../traces/{trace}/{file}", safe="/+@")


@once
def traces(results: Results) -> Sequence[Trace]:
    """The traces of a study that can be read, by name."""
    return [Trace(folder) for folder in readable(of_study(results.folder))[0]]


@once
def left_out(results: Results) -> Sequence[str]:
    """A sentence on each of the others."""
    return readable(of_study(results.folder))[1]
