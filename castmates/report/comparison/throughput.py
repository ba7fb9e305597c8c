"""How much work per second each of several studies does beside others -> sentences, and lines of a table."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from castmates.report.comparison.compare import Several
from castmates.report.results import records
from castmates.report.text.words import Quantity, Row, counted


def throughput_sentences(several: Several) -> Iterator[str]:
    """How much work per second each machine does of the whole list, as a multiple of the baseline's."""
    whole = [row for row in records(several.throughput) if not row["workload"] and not math.isnan(row["ratio"])]
    if several.throughput.empty:
        yield (
            "Work per second is not compared: the studies have no member of the same mix, beside others and with the "
            "same unit, in common."
        )
    if whole:
        values = [f"{Quantity.of(row, 'ratio', digits=3)} times A's in {row['letter']}" for row in whole]
        yield (
            f"Work per second beside others, geometric mean over {counted(whole[0]['places'], 'place')} in "
            f"{counted(whole[0]['mixes'], 'mix')}: {'; '.join(values)}."
        )


@dataclass(frozen=True)
class Throughput:
    """A workload, or the whole list, and each study's work per second."""

    workload: str
    unit: str
    places: int
    cells: tuple[tuple[str, str], ...]  # of each study: its rate, and the ratio to the baseline's


def throughput_lines(several: Several) -> list[Throughput]:
    """A line for the whole list and one for each workload; none where no number is known."""
    found: dict[str, list[Row]] = {}
    for row in records(several.throughput):
        found.setdefault(row["workload"], []).append(row)
    lines = [
        Throughput(
            name or "the whole list",
            rows[0]["unit"],
            int(rows[0]["places"]),
            tuple(tuple(_known(row, what) for what in ("rate", "ratio")) for row in rows),  # type: ignore[misc]
        )
        for name, rows in found.items()
    ]
    return [line for line in lines if any(map(any, line.cells))]


def _known(row: Row, name: str) -> str:
    return "" if math.isnan(row[name]) else str(Quantity.of(row, name, digits=3))
