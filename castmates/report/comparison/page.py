"""The page of a comparison: one self-contained HTML file with the look of a study's report."""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.comparison.details import KINDS
from castmates.files import refuse_foreign, replace_text, writing
from castmates.report.comparison import figure, several_words, throughput, words
from castmates.report.comparison.compare import Compared, Several, rows
from castmates.report.comparison.several_words import detail_file, sections
from castmates.report.figures.antagonists import looks_in_order
from castmates.report.figures.marks import bar, dot
from castmates.report.figures.sheet import PANELS, Origin, Room, Sheet, empty_figure, lines_across, spread_labels
from castmates.report.figures.style import GREY, SMALL, Look, broken, styled
from castmates.report.page.common_parts import first_words, rendered, write_drawing
from castmates.report.results import records
from castmates.report.text.words import Quantity, Row, as_loss
from castmates.results.tables import write_table
from castmates.study.spec import UNMANAGED

ON_PAGE = 40  # rows of each kind


def page(several: Several, drawings: dict[str, Markup]) -> str:
    """The page's HTML."""
    common = {
        "first": first_words(several.origin),
        "drawings": drawings,
        "studies": several.studies,
        "throughput": throughput.throughput_lines(several),
        "details": sections(several, ON_PAGE),
        "detail_notes": several.details.notes,
    }
    two = len(several.pairs) == 1
    name, own = ("comparison.html.j2", _of_two(several)) if two else ("comparisons.html.j2", _of_several(several))
    return rendered(name, common | own)


def _of_two(several: Several) -> dict[str, Any]:
    compared = several.pairs[0]
    sentences = [
        *words.sentences(compared),
        *several_words.mean_sentences(several),
        *throughput.throughput_sentences(several),
    ]
    return {
        "compared": compared,
        "title": f"{compared.a.name} against {compared.b.name}",
        "sentences": sentences,
        "rows": rows(compared),
        "partitioned": bool((compared.both["partition_a"] != UNMANAGED).any()),
        "differences": compared.differences,
        "caption": caption(compared),
        "alternative": first_words(several.origin) + " ".join(sentences),
    }


def _of_several(several: Several) -> dict[str, Any]:
    sentences = several_words.sentences(several)
    lines, history = several_words.lines(several), several.history
    dated = history["date"].nunique() > 1
    return {
        "several": several,
        "title": f"{several.studies[0].name} and {len(several.pairs)} studies against it",
        "sentences": sentences,
        "lines": lines,
        "mean": several_words.mean_line(several),
        "partitioned": any(line.partition for line in lines),
        "dated": dated,
        "alternative": first_words(several.origin) + " ".join(sentences),
    }


def caption(compared: Compared) -> str:
    """What stands below the figure of two studies."""
    rows = compared.leads(partitioned=False)
    counts = {letter: sorted({int(count) for count in rows[f"launches_{letter}"]}) for letter in "ab"}
    many = " and ".join(
        f"{'–'.join(map(str, dict.fromkeys((launches[0], launches[-1]))))} of {letter.upper()}" if launches else "none"
        for letter, launches in counts.items()
    )
    origin = compared.origin
    return (
        f"{first_words(origin)}Left: loss of each lead against its own alone "
        f"rate, in A and in B, with 95 % t intervals {compared.between} ({many} without a partition). Right: by how "
        f"much B's slowdown is above A's, with Welch's 95 % interval, and the margin of "
        f"±{100 * compared.margin:.3g} %. Losses are ratios inside each study: being faster costs a machine nothing."
    )


# The folder of a comparison: its tables, its figures and its page.

TABLE = "comparison.csv"


def may_write(folder: Path) -> None:
    """Refuse a folder that holds what no comparison wrote, for example a study's report."""
    refuse_foreign(folder, TABLE, lambda text: "slowdown_a" in text, "castmates compare")


def write(several: Several, folder: Path) -> list[Path]:
    """Write tables, figures and page; of two studies the figure that has both beside each other."""
    for name in ("means", "throughput", "history"):
        write_table(getattr(several, name), folder / name)
    write_table(several.table, folder / "comparison")
    for kind in KINDS:
        stem = folder / detail_file(kind.name).removesuffix(".csv")
        if kind.name in several.details.tables:
            write_table(several.details.tables[kind.name], stem)
        else:  # of an earlier comparison
            for suffix in (".csv", ".parquet"):
                stem.with_suffix(suffix).unlink(missing_ok=True)
    compared = figure.draw_several(several) if len(several.pairs) > 1 else figure.draw(several.pairs[0])
    drawings = {
        name: write_drawing(*drawn, folder / f"{name}-figure")
        for name, drawn in (("comparison", compared), ("history", draw(several)))
    }
    with writing(output := folder / "index.html"):
        replace_text(output, page(several, drawings))
    return [output, folder / TABLE, folder / "comparison-figure.svg"]


# The figure `history`: what each lead loses beside each antagonist, study by study in the order of time.
#
# A panel per lead; colour and marker are the antagonist's. A line joins studies of one machine only.

DAY = 86_400
NARROW = 1 / 25  # of the whole time: where studies are closer, all are set apart evenly, in order
SHIFT = 0.012  # of the axis, by which antagonists are set apart
NOTES = "bars: 95 % of each study by itself; a line joins studies of one machine"
EVENLY = "; studies are in the order of time, their distances are not"
ROOM = Room(axes=1.5, above=0.08, below=0.42, left=0.55, right=0.85)


def draw(several: Several) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = several.history
    with styled():
        if source["date"].nunique() < 2:
            return empty_figure("Fewer than two of the studies have a date.", several.origin), source
        return _figure(several, records(source)), source


def _figure(several: Several, rows: Sequence[Row]) -> Figure:
    leads = list(dict.fromkeys(row["lead"] for row in rows))
    looks = looks_in_order(several.antagonists, [row["antagonists"] for row in rows])
    places, dated = _places(rows)
    ends = [as_loss(row[name]) for row in rows for name in ("slowdown", "slowdown_low", "slowdown_high")]
    known = [0.0, *(end for end in ends if not math.isnan(end))]
    room = 0.06 * (max(known) - min(known)) or 1.0
    sheet = Sheet(Origin(several.origin))
    for axes, lead in zip(sheet.grid(leads[:PANELS], ROOM), leads, strict=False):
        axes.set_ylim(min(known) - room, max(known) + 2 * room)
        _panel(axes, [row for row in rows if row["lead"] == lead], looks, places)
        _dates(axes, rows, places, dated)
    sheet.labels("", "loss against alone (%)")
    more = f"; {len(leads) - PANELS} more leads are in the CSV" if len(leads) > PANELS else ""
    return sheet.finish(NOTES + ("" if dated else EVENLY) + more)


def _panel(axes: Axes, rows: Sequence[Row], looks: dict[str, Look], places: dict[str, float]) -> None:
    span = max(places.values()) - min(places.values())
    axes.set_xlim(min(places.values()) - 0.08 * span, max(places.values()) + 0.08 * span)
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
    lines_across(axes, "y")
    labels = []
    for place, (name, look) in enumerate(looks.items()):
        own = [row for row in rows if row["antagonists"] == name]
        shift = SHIFT * span * (place - (len(looks) - 1) / 2)
        for line in _of_one_machine(own):
            at = [places[row["letter"]] + shift for row in line]
            values = [as_loss(row["slowdown"]) for row in line]
            axes.plot(at, values, color=look[0], linewidth=0.8, alpha=0.6, zorder=2)
            for x, y, row in zip(at, values, line, strict=True):
                _dot(axes, x, y, row, look)
        if own:
            labels.append((as_loss(own[-1]["slowdown"]), broken(name.replace("+", " + ") or "alone", 16), look[0]))
    spread_labels(axes, labels)


def _places(rows: Sequence[Row]) -> tuple[dict[str, float], bool]:
    """Where each study stands on the axis, and whether that is its date: else studies are set apart evenly."""
    days = {
        row["letter"]: datetime.fromisoformat(row["date"]).timestamp() / DAY for row in rows
    }  # as matplotlib counts
    ordered = sorted(days, key=lambda letter: days[letter])
    times = [days[letter] for letter in ordered]
    span = times[-1] - times[0]
    if span and min(later - earlier for earlier, later in pairwise(times)) >= NARROW * span:
        return days, True
    return {letter: float(place) for place, letter in enumerate(ordered)}, False


def _of_one_machine(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each machine and platform, in the order of time."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["host"], row["platform"]), []).append(row)
    return list(lines.values())


def _dot(axes: Axes, x: float, y: float, row: Row, look: Look) -> None:
    low, high = as_loss(row["slowdown_low"]), as_loss(row["slowdown_high"])
    bar(axes, x, low, high, look[0], width=1.3, upright=True)
    beside = f" beside {row['antagonists'].replace('+', ' + ')}" if row["antagonists"] else ""
    words = f"{row['letter']}, {row['study']}, {row['date'][:10]}: {row['lead']}{beside} {Quantity(y, low, high, '%')}"
    dot(axes, x, y, look, words, hollow=math.isnan(low), size=3.8)


def _dates(axes: Axes, rows: Sequence[Row], places: dict[str, float], dated: bool) -> None:
    """The axis of time, with the letter of each study; where studies are set apart evenly, with its date too."""
    if not dated:
        days = {row["letter"]: str(row["date"])[:10] for row in rows}
        axes.set_xticks(list(places.values()), [f"{letter}\n{days[letter]}" for letter in places])
        return
    locator = dates.AutoDateLocator(minticks=3, maxticks=5)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    for letter, place in places.items():
        axes.text(
            place, 0.99, letter, transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=SMALL, color=GREY
        )
