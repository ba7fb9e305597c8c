"""A table of a study as an attribute of its results: given, or read from its folder when it is asked for first."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from castmates.results.columns.block import Columns
from castmates.results.columns.study import frame
from castmates.results.tables import Tables

if TYPE_CHECKING:
    from castmates.report.results import Results


class NotRead:
    """Stands in results for a table that was not asked for yet."""


NOT_READ: Final = NotRead()


class StudyTable:
    """A field of a dataclass that is a table of the study; dataclasses know fields that are descriptors."""

    def __init__(self, name: str, columns: Columns, later: bool = False) -> None:
        """`later`: studies that an earlier version analysed lack it, and it is empty there."""
        self.name, self.columns, self.later = name, columns, later
        self.attribute = name

    def __set_name__(self, _owner: type, attribute: str) -> None:
        self.attribute = attribute

    def __get__(self, results: "Results | None", _owner: type) -> pd.DataFrame:
        if results is None:
            return NOT_READ  # type: ignore[return-value]  # the dataclass asks for the default of its field
        held = vars(results)
        if held[self.attribute] is NOT_READ:
            held[self.attribute] = self._read(results)
        table: pd.DataFrame = held[self.attribute]
        return table

    def __set__(self, results: "Results", table: pd.DataFrame) -> None:
        vars(results)[self.attribute] = table

    def _read(self, results: "Results") -> pd.DataFrame:
        if not results.folder.path.parts:  # made without a folder
            return frame([], self.columns)
        tables = Tables(results.folder, Path(results.study_file) if results.study_file else None)
        return (tables.later if self.later else tables.needed)(self.name, self.columns)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [{str(column): value for column, value in row.items()} for row in table.to_dict("records")]
