"""How every figure looks, and how it is written: as SVG, PDF or PNG, and the CSV of what it shows."""

import re
import textwrap
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import pandas as pd
from matplotlib import style
from matplotlib.figure import Figure

from castmates.files import replace, writing
from castmates.results.tables import write_csv

COLUMN = 3.33  # inches: one column of a two-column paper
PAGE = 7.0
MANY = 10_000  # rows, beyond which a CSV is written column by column
SMALL, SMALL_LETTER = 6.5, 0.055  # the smallest text that is set, in points; width of one of its letters, in inches
BADGE_ID, KEY, SOURCE = (
    "badge",
    "key",
    "source",
)  # what the badge and the parts of the small print are called in the SVG
PREFIX = "value: "  # of what a mark is called there: the rest is what the page shows where it is pointed at
INK, GREY, PALE, ALARM = "#1a1a1a", "#5f5f5f", "#ececec", "#8c1d18"
# Okabe and Ito's colours without the yellow, which is lost on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a4fb5")
MARKERS = ("o", "s", "^", "D", "v", "P")
NOT_MEASURED_HATCH = 6 * "\\"  # of what is predicted or interpolated; what has no number leans the other way
SHADES = "RdBu_r"  # red: slower, blue: faster; distinct with any common colour blindness

STYLE_FILE = files("castmates.report.figures") / "castmates.mplstyle"
ABOUT: Mapping[str, Mapping[str, str | None]] = {
    "svg": {"Date": None, "Creator": "Castmates"},
    "pdf": {"CreationDate": None, "Creator": "Castmates", "Producer": "Castmates"},
    "png": {"Software": "Castmates"},
}

Look = tuple[str, str]  # colour, marker
Name = TypeVar("Name", bound=Hashable)


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the house style and nothing else, without leaving a trace in the caller's settings."""
    with style.context(str(STYLE_FILE), after_reset=True):
        yield


def looks_of(names: Iterable[Name], shift: int = 0) -> dict[Name, Look]:
    """A colour and a marker for each name; the markers begin with another one, by so many, than the colours."""
    return {
        name: (COLOURS[place % len(COLOURS)], MARKERS[(place + shift) % len(MARKERS)])
        for place, name in enumerate(names)
    }


def broken(name: str, width: int) -> str:
    """The name in lines of at most `width` characters, broken after hyphens and plus signs where possible."""
    pieces = re.sub(r"([+_.])", r"\1 ", name)
    lines = textwrap.wrap(pieces, width, break_on_hyphens=True) or [""]
    return "\n".join(re.sub(r"([+_.]) ", r"\1", line) for line in lines)


def squeezed(name: str, width: int, lines: int) -> str:
    """The name broken into at most so many lines: of a longer one the begin and the end, which distinguish names."""
    whole = broken(name, width).split("\n")
    if lines == 1 and len(name) > width:
        return f"{name[: width // 2]}…{name[width // 2 + 1 - width :]}"
    return "\n".join(whole if len(whole) <= lines else [*whole[: lines - 1], f"…{name[1 - width :]}"])


def write(figure: Figure, source: pd.DataFrame, stem: Path, suffixes: Iterable[str] = tuple(ABOUT)) -> None:
    """Write STEM.svg, STEM.pdf, STEM.png or those of these that are asked for, and STEM.csv."""
    for suffix in suffixes:
        save(figure, suffix, stem)
    with writing(stem):
        replace(stem.with_name(f"{stem.name}.csv"), partial(_source, source))


def save(figure: Figure, suffix: str, stem: Path) -> None:
    """Write STEM.suffix, whole or not at all."""
    with styled(), writing(stem):
        replace(stem.with_name(f"{stem.name}.{suffix}"), partial(_save, figure, suffix, ABOUT[suffix], stem.name))


def _source(source: pd.DataFrame, file: Path) -> None:
    if len(source) > MANY:
        write_csv(source, file)
    else:
        source.to_csv(file, index=False)


def _save(figure: Figure, suffix: str, about: Mapping[str, str | None], name: str, file: Path) -> None:
    figure.savefig(file, format=suffix, metadata=about)
    if suffix == "svg":
        file.write_text(own_ids(file.read_text(encoding="utf-8"), name), encoding="utf-8")


def own_ids(svg: str, name: str) -> str:
    """Put the figure's name before all ids, so that several SVGs can share a page; leave out what only a page shows."""
    svg = re.sub(rf' id="{PREFIX}[^"]*"', "", svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{name}-", svg)
