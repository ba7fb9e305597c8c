"""A comparison as plain data, for scripts: what JSON can hold."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from castmates.analysis.comparison.details import KINDS
from castmates.report.comparison.compared import Several
from castmates.report.comparison.differences import Difference
from castmates.report.comparison.several_words import sentences


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
