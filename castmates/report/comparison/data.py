"""A comparison as plain data, for scripts: what JSON can hold."""

from dataclasses import asdict
from typing import Any

import pandas as pd

from castmates.report.comparison.compared import Several
from castmates.report.comparison.several_words import sentences


def as_data(several: Several) -> dict[str, Any]:
    """Studies, sentences, tables and differences; a number that there is not is None."""
    return {
        "studies": [asdict(study) for study in several.studies],
        "origin": several.origin,
        "margin": several.margin,
        "sentences": sentences(several),
        "comparison": _rows(several.table),
        "means": _rows(several.means),
        "history": _rows(several.history),
        "differences": [list(row) for row in several.differences],
        "work": [list(row) for row in several.work],
    }


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    known = table.astype(object).where(table.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in known.to_dict("records")]
