"""The golden study's tables and page: made from its frozen launches, and put into a form that can be compared."""

import csv
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd

from castmates.analysis.comparison.comparison import Side, compare
from castmates.pipeline.analyse import Terms, write_tables
from castmates.report.figures.index import FIGURES
from castmates.report.page.page import page, shown
from castmates.report.results import Results, read_results
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.study.model import Study
from castmates.study.reading import read_keys
from castmates.study.spec import Plan

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
LAUNCHES, STUDY, PAGE, TABLES = (GOLDEN / name for name in ("launches.tar.xz", "study.yaml", "page.json", "tables"))
MARGIN = 0.02
LEFT_OUT = {"windows", "timeline"}  # what the launches hold, no results: of tables and figures


def unpack(folder: Path) -> None:
    """Put the frozen launches into a folder."""
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Debian 12's Python 3.11.2 has it not
    with tarfile.open(LAUNCHES) as archive:
        archive.extractall(folder, **safely)


def make(folder: Path) -> tuple[dict[str, str], dict]:
    """The tables and the figures' sources as CSV by name, and the page's content."""
    unpack(folder)
    machine, plan = json.loads((folder / "machine.json").read_bytes()), read_plan(folder / "plan.json")
    study = read_keys(Study, STUDY.read_text(), STUDY.name)
    terms = Terms(MARGIN, study.attribution.isolated, machine, limit_pct=study.recommend.lead_loss)
    write_tables(plan, StudyFolder(folder), terms, folder / "tables")
    # Named as it is from the project's folder, wherever that lies.
    results = replace(read_results(folder, STUDY), study_file="tests/data/golden/study.yaml")
    html = page(results, dict.fromkeys(shown(results), "<svg></svg>"))
    tables = {file.stem: file.read_text() for file in sorted(folder.glob("tables/*.csv")) if file.stem not in LEFT_OUT}
    compared = compared_with_another(plan, results.windows).to_csv(index=False)
    return tables | {"comparison": compared} | dict(sources(results)), content(html)


def sources(results: Results) -> Iterator[tuple[str, str]]:
    """What each figure draws, as CSV."""
    for name in shown(results):
        if name not in LEFT_OUT:
            source = FIGURES[name].module.draw(results)[1]
            if name == "steptimes":  # the distributions themselves are long, and no results
                source = source[source["what"] == "interval"]
            yield f"figure-{name}", source.to_csv(index=False)


def compared_with_another(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """The golden study against one in which co-runs lose more, and not alike in each launch."""
    loss = 0.02 * windows["launch"] * (windows["kind"] == "corun") + 0.1 * (windows["workload"] == "ranking")
    return compare(Side(plan, windows), Side(plan, windows.assign(rate=windows["rate"] * np.exp(-loss))), MARGIN)


def content(html: str) -> dict:
    """What the page shows: headings, sentences by section, figures by id, and tables by name."""
    reader = _Reader()
    reader.feed(html)
    sections = {id: texts for id, texts in reader.sections.items() if id not in ("provenance", "machine")}
    return {"headings": reader.headings, "sections": sections, "figures": reader.figures, "tables": reader.tables}


def differences(golden: object, found: object, where: str = "page") -> Iterator[str]:
    """Where what is found is another than the golden one; what the golden one lacks is not looked at."""
    if isinstance(golden, dict):
        for name, part in golden.items():
            if not isinstance(found, dict) or name not in found:
                yield f"{where}: {name!r} is missing"
            else:
                yield from differences(part, found[name], f"{where} / {name}")
    elif isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        for place, (one, other) in enumerate(zip(golden, found, strict=True), 1):
            yield from differences(one, other, f"{where} {place}")
    elif isinstance(golden, list):
        count = f"{len(found)} instead of {len(golden)} entries" if isinstance(found, list) else "no list"
        yield f"{where}: {count}"
    elif not alike(golden, found):
        yield f"{where}: {found!r} instead of {golden!r}"


def left_out(golden: dict, found: dict) -> Iterator[str]:
    """Which headings and sentences of the golden page are gone, or stand in another order; new ones may be between."""
    texts = {name: (sentences, found["sections"].get(name, [])) for name, sentences in golden["sections"].items()}
    for name, (wanted, there) in {**texts, "headings": (golden["headings"], found["headings"])}.items():
        rest = iter(there)
        yield from (f"{name}: {text!r} is missing" for text in wanted if text not in rest)


def alike(golden: object, found: object) -> bool:
    """Whether two texts are the same, or two numbers within 1e-9."""
    try:
        one, other = float(str(golden)), float(str(found))
    except ValueError:
        return golden == found
    return one == other or abs(one - other) <= 1e-9 * max(1.0, abs(one)) or (one != one and other != other)


def kept(golden: object, found: object) -> object:
    """What is found, with the golden digits wherever a number is alike: another processor differs in the last ones."""
    if isinstance(found, dict):
        parts = golden if isinstance(golden, dict) else {}
        return {name: kept(parts.get(name), part) for name, part in found.items()}
    if isinstance(found, list) and isinstance(golden, list) and len(golden) == len(found):
        return [kept(one, other) for one, other in zip(golden, found, strict=True)]
    return golden if alike(golden, found) else found


def kept_table(golden: str, found: str) -> str:
    """The same of a table; one with other rows is as it is found."""
    before, rows = (list(csv.reader(io.StringIO(text))) for text in (golden, found))
    if len(before) != len(rows):
        return found
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    for old, row in zip(before, rows, strict=True):
        cells = dict(zip(before[0], old, strict=True))
        writer.writerow(kept(cells.get(name), cell) for name, cell in zip(rows[0], row, strict=True))
    return written.getvalue()


class _Reader(HTMLParser):
    """Collects headings, paragraphs and entries by section, figures, and tables cell by cell."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.sections: dict[str, list[str]] = {}
        self.figures: dict[str, dict[str, str]] = {}
        self.tables: dict[str, dict[str, list[str]]] = {}  # by name: column by column
        self._section = self._figure = self._table = ""
        self._cells: list[tuple[str, str | None]] = []  # of the row: text, and the number behind it
        self._heads: list[str] = []
        self._text: list[str] = []
        self._value: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "section":
            self._section = told.get("id") or ""
        if tag == "figure":
            self._figure = told.get("id") or ""
        if told.get("role") == "img":
            self.figures[self._figure] = {"alternative": told.get("aria-label") or ""}
        if told.get("role") == "region":
            self._table = told.get("aria-label") or ""
        if tag == "thead":
            self._heads = []
        if tag == "tr":
            self._cells = []
        if tag in ("h1", "h2", "h3", "p", "li", "dt", "dd", "figcaption", "caption", "th", "td", "summary"):
            self._text, self._value = [], told.get("data-value")

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text = " ".join("".join(self._text).split())
        if tag == "section":
            self._section = ""
        if tag in ("h1", "h2", "h3"):
            self.headings.append(text)
        elif tag in ("p", "li", "dt", "dd", "summary") and self._section:
            self.sections.setdefault(self._section, []).append(text)
        elif tag == "figcaption":
            self.figures[self._figure]["caption"] = text
        elif tag in ("th", "td"):
            self._cells.append((text, self._value))
        elif tag == "tr" and not self._heads:
            self._heads = [text for text, _ in self._cells]
        elif tag == "tr":
            columns = self.tables.setdefault(self._table, {})
            for head, (shown, value) in zip(self._heads, self._cells, strict=True):
                columns.setdefault(head, []).append(shown)
                if value is not None:
                    columns.setdefault(f"{head} (value)", []).append(value)
