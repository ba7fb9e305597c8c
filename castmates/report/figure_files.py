"""The figures of a study as they were drawn: files for a paper or a notebook, the data behind them, their captions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from castmates.analysis.effects.pooling import pooled, without_left_out
from castmates.errors import CastmatesError
from castmates.results.columns.registry import TABLES
from castmates.results.folder import StudyFolder
from castmates.study.spec import Plan

if TYPE_CHECKING:
    from castmates.report.results import Results


@dataclass(frozen=True)
class FigureFiles:
    """A figure that was drawn; a notebook shows it."""

    name: str
    folder: Path

    @property
    def svg(self) -> Path:
        """The vector graphic that the page shows."""
        return self._file("svg")

    @property
    def pdf(self) -> Path:
        """For a paper, once `castmates show --format pdf` has written it."""
        return self._printed("pdf")

    @property
    def png(self) -> Path:
        """For slides, once `castmates show --format png` has written it."""
        return self._printed("png")

    @property
    def data(self) -> pd.DataFrame:
        """The numbers that it shows."""
        return pd.read_csv(self._file("csv"))

    @property
    def caption(self) -> str:
        """What stands below it on the page."""
        return self._file("txt").read_text(encoding="utf-8").strip()

    @property
    def alternative(self) -> str:
        """The figure in words, for those who cannot see it."""
        return self._file("alt.txt").read_text(encoding="utf-8").strip()

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.svg.read_text(encoding="utf-8")

    def _printed(self, suffix: str) -> Path:
        return self._file(suffix, f"run `castmates show {self.folder.parent} --format {suffix}`")

    def _file(self, suffix: str, remedy: str = "run the study's sweep again") -> Path:
        file = self.folder / f"{self.name}.{suffix}"
        if not file.is_file():
            raise CastmatesError(f"{file}: the figure's file is not there; {remedy}.")
        return file


def drawn_figures(folder: StudyFolder) -> Mapping[str, FigureFiles]:
    """Every figure that lies in the folder of a study, by name."""
    names = sorted(file.stem for file in folder.figures.glob("*.svg") if not file.match("*.page.svg"))
    return {name: FigureFiles(name, folder.figures) for name in names}


# What the page shows of a study that was measured on several models of processor without classes: one of them.
#
# Numbers of different processors are never pooled, and mixes have the same names on all of them.


def shown_part(results: "Results") -> Plan | None:
    """The part of the plan that the most launches measured; None where nothing has to be left out."""
    if results.plan.machines or results.effects["machine"].nunique() < 2:
        return None
    return pooled(without_left_out(results.plan, results.launches), results.windows)[0]


def tables_of(results: "Results", part: Plan) -> dict[str, Any]:
    """Fields of the results with the rows of this part alone."""
    places = pd.MultiIndex.from_tuples([(launch.cohort.id, launch.number) for launch in part.launches])
    changes: dict[str, Any] = {"plan": part.model_copy(update={"machines": ()})}
    for name, columns in TABLES.items():
        if not columns.rule:
            continue
        table = getattr(results, name)
        if name in ("windows", "launches"):
            changes[name] = table[pd.MultiIndex.from_frame(table[["cohort", "launch"]]).isin(places)]
        elif "machine" in columns:
            changes[name] = table[table["machine"] == part.machine]
    return changes


def restricted(results: "Results", part: Plan, recorded: Any) -> "Results":  # noqa: ANN401 (records)
    """The results of this part."""
    return replace(results, **tables_of(results, part), recorded=recorded)
