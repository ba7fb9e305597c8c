"""The figures of a study as they were drawn: files for a paper or a notebook, the data behind them, their captions."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder


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
