"""Plain text and rows -> LaTeX that pdflatex takes with no package but booktabs."""

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
    "\N{NO-BREAK SPACE}": "~",
}
_TRANSLATION = str.maketrans(SPECIAL)
ROWS = 38  # of a table that still fits a page with its caption


def escaped(text: str) -> str:
    """The text as LaTeX sets it; a line's end is a space."""
    return " ".join(text.split()).translate(_TRANSLATION).replace("\\textquotedbl{}", "''")


def tables(label: str, caption: str, heads: Sequence[str], numeric: str, rows: Sequence[Sequence[str]]) -> str:
    """One table, or several where one page does not hold it; `numeric` has r or l for each column."""
    parts = [rows[start : start + ROWS] for start in range(0, len(rows), ROWS)] or [rows]
    return "\n".join(
        _table(label if not number else f"{label}-{number + 1}", caption if not number else f"{caption} (continued)",
               heads, numeric, part)
        for number, part in enumerate(parts)
    )  # fmt: skip


def _table(label: str, caption: str, heads: Sequence[str], numeric: str, rows: Sequence[Sequence[str]]) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption)}}}",
        rf"\label{{{label}}}",
        r"\medskip",
        r"\footnotesize",
        rf"\begin{{tabular}}{{{numeric}}}",
        r"\toprule",
        _row(heads),
        r"\midrule",
        *map(_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    # A cell that begins with a bracket would be read as an option of the line's end before it.
    return " & ".join(escaped(cell).replace("[", "{[}") for cell in cells) + r" \\"
