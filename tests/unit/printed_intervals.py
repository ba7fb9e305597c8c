"""The list of all printed intervals in docs/methodology.md: what it states of each, and whether a simulation agrees."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "methodology.md"
HEADING = "## Every interval that is printed"
NEAR = 0.3  # per cent: an interval that is just held here and just missed with another library's rounding


@dataclass(frozen=True)
class Row:
    """A line of the list."""

    printed: tuple[str, ...]  # tables, figures
    columns: tuple[str, ...]  # of the lower ends
    tests: tuple[str, ...]  # module::function
    low: float | None  # per cent covered, in the worst and in the best simulated case
    high: float | None


@cache
def listed() -> tuple[Row, ...]:
    """The lines of the list."""
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    lines = re.findall(r"^\| (`.*) \|$", section, re.MULTILINE)
    return tuple(_row([cell.strip() for cell in line.split(" | ")]) for line in lines)


def _row(cells: list[str]) -> Row:
    printed, columns, _, tests, covers = cells
    ends = [float(number) for number in re.findall(r"\d+\.\d", covers)]
    names = (tuple(re.findall(r"`([^`]+)`", cell)) for cell in (printed, columns, tests))
    return Row(*names, *((min(ends), max(ends)) if ends else (None, None)))


def row_of(printed: str, column: str) -> Row:
    """The one line of this column."""
    rows = [row for row in listed() if printed in row.printed and column in row.columns]
    assert len(rows) == 1, f"{len(rows)} lines of docs/methodology.md ({HEADING[3:]}) have {column} of {printed}"
    return rows[0]


def assert_told(printed: str, column: str, *shares: float) -> None:
    """Compare simulated shares with what the list states of this interval."""
    row = row_of(printed, column)
    assert row.low is not None, f"docs/methodology.md says no share for {column} of {printed}: {shares}"
    for share in shares:
        per_cent = pytest.approx(min(max(100 * share, row.low), row.high), abs=NEAR + 0.05)
        assert 100 * share == per_cent, f"{column} of {printed}: docs/methodology.md says {row.low} to {row.high}"
