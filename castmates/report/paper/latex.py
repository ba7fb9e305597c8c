"""Plain text and rows -> LaTeX that pdflatex takes with the packages booktabs and graphicx."""

from collections.abc import Sequence

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    # Signs of ours that the usual encodings of LaTeX lack.
    "\N{MINUS SIGN}": "$-$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\rightarrow$",
    "√": r"$\surd$",
    "µ": r"\textmu{}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "\N{NO-BREAK SPACE}": "~",
}
_TRANSLATION = str.maketrans(SPECIAL)
ROWS = 38  # of a table that still fits a page with its caption


def escaped(text: str) -> str:
    """The text as LaTeX sets it; a line's end is a space."""
    return " ".join(text.split()).translate(_TRANSLATION).replace("\\textquotedbl{}", "''")


def tables(label: str, caption: str, heads: Sequence[str], numeric: str, rows: Sequence[Sequence[str]]) -> str:
    """One table, or several where one page does not hold it; `numeric` has r or l for each column."""
    # Each fills a page, and LaTeX holds but a few of them back.
    return "\\clearpage\n".join(
        _table(label if not number else f"{label}-{number + 1}", caption if not number else f"{caption} (continued)",
               heads, numeric, part)
        for number, part in enumerate(_pages(rows))
    )  # fmt: skip


def _pages(rows: Sequence[Sequence[str]]) -> list[Sequence[Sequence[str]]]:
    """The rows page by page; one whose first cell is empty stays with the row that names it, where that can be."""
    starts, named = [0], 0
    for place, row in enumerate(rows):
        named = place if row[0] else named
        if place - starts[-1] == ROWS:
            starts.append(named if named > starts[-1] else place)
    return [rows[start:end] for start, end in zip(starts, [*starts[1:], len(rows)], strict=True)]


def _table(label: str, caption: str, heads: Sequence[str], numeric: str, rows: Sequence[Sequence[str]]) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption)}}}",
        rf"\label{{{label}}}",
        r"\medskip",
        r"\footnotesize",
        r"\sbox0{%",
        rf"\begin{{tabular}}{{{numeric}}}",
        r"\toprule",
        _row(heads),
        r"\midrule",
        *map(_row, rows),
        r"\bottomrule",
        r"\end{tabular}}%",
        # As wide as it is by itself, unless the column is narrower.
        r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    # A cell that begins with a bracket would be read as an option of the line's end before it.
    return " & ".join(escaped(cell).replace("[", "{[}") for cell in cells) + r" \\"
