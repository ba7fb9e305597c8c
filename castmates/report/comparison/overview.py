"""Several studies in one table, for terminal and page: a row per pair, a column per study, the baseline first."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from castmates.analysis.comparison.details import KINDS
from castmates.report.comparison.compared import Several
from castmates.report.comparison.details import Difference
from castmates.report.comparison.several_words import pair_name, sentences, verdict_in
from castmates.report.results import records
from castmates.report.text.words import Quantity, Row, as_loss
from castmates.study.spec import UNMANAGED

ABSENT = "–"


@dataclass(frozen=True)
class Cell:
    """What one study shows of one pair."""

    loss: str  # 12.6 [2.0, 22.2]
    ratio: str = ""  # of its slowdown to the baseline's: 1.046 [1.020, 1.073]; "" of the baseline
    verdict: str = ""
    value: float = math.nan  # the loss in per cent, to sort by
    launches: int = 0


@dataclass(frozen=True)
class Line:
    """A pair, and what each study shows of it."""

    pair: str
    partition: str  # as the baseline calls it; "" without one
    cells: tuple[Cell, ...]


def lines(several: Several) -> list[Line]:
    """The leads against alone, of every pair that the baseline and another study have."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for pair in several.pairs:
        rows = pair.both
        for row in records(rows[(rows["role"] == "lead") & (rows["baseline"] == "alone")]):
            found.setdefault((row["mix"], row["partition_a"]), {})[pair.b.letter] = row
    letters = [study.letter for study in several.studies[1:]]
    return [_line(by_letter, letters) for by_letter in found.values()]


def mean_line(several: Several) -> Line | None:
    """The geometric mean over the pairs that all studies have, where these are several."""
    means = records(several.means)
    if not means or means[0]["pairs"] < 2:
        return None
    return Line(f"geometric mean of {means[0]['pairs']} mixes", "", tuple(_mean(row) for row in means))


def _line(by_letter: dict[str, Row], letters: list[str]) -> Line:
    first = next(iter(by_letter.values()))
    partition = "" if first["partition_a"] == UNMANAGED else str(first["partition_a"])
    others = [_other(by_letter[letter], letter) if letter in by_letter else Cell(ABSENT) for letter in letters]
    return Line(pair_name(first), partition, (_baseline(first), *others))


def _baseline(row: Row) -> Cell:
    return Cell(
        str(Quantity.loss(row, "slowdown_a")), value=as_loss(row["slowdown_a"]), launches=int(row["launches_a"])
    )


def _other(row: Row, letter: str) -> Cell:
    ratio = "" if math.isnan(row["ratio"]) else str(Quantity.of(row, "ratio", digits=3))
    value, launches = as_loss(row["slowdown_b"]), int(row["launches_b"])
    return Cell(str(Quantity.loss(row, "slowdown_b")), ratio, verdict_in(row["verdict"], letter), value, launches)


def _mean(row: Row) -> Cell:
    loss, ratio = Quantity.loss(row), "" if math.isnan(row["ratio"]) else str(Quantity.of(row, "ratio", digits=3))
    verdict = "" if row["verdict"] == "baseline" else verdict_in(row["verdict"], row["letter"])
    return Cell(str(loss), ratio, verdict, loss.value, int(row["launches"]))


# A comparison as plain data, for scripts: what JSON can hold.


def as_data(several: Several) -> dict[str, Any]:
    """Studies, sentences, the rows of the tables, and what differs; a number that there is not is None."""
    letters = [study.letter for study in several.studies]
    return {
        "studies": [asdict(study) for study in several.studies],
        "origin": several.origin,
        "margin": several.margin,
        "sentences": sentences(several),
        "rows": _rows(several.table),
        "means": _rows(several.means),
        "history": _rows(several.history),
        **{kind.name: _rows(several.details.table(kind.name)) for kind in KINDS},
        "notes": list(several.details.notes),
        "differences": _by_study(several.differences, letters),
        "work": _by_study(several.work, letters),
    }


def _by_study(differences: Sequence[Difference], letters: Sequence[str]) -> dict[str, dict[str, str]]:
    """By what differs, its text in each study."""
    return {name: dict(zip(letters, texts, strict=True)) for name, *texts in differences}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    known = table.astype(object).where(table.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in known.to_dict("records")]
