"""Letters that a terminal's encoding lacks: printed by others that mean the same, where Python would fail."""

import codecs
import sys
from typing import TextIO

ERRORS = "castmates"  # the name of our error handler
INSTEAD = {
    "−": "-", "–": "-", "—": "-", "…": "...", "×": "x", "±": "+-", "≈": "~", "≤": "<=", "≥": ">=", "→": "->", "·": "|",
    "•": "*", "●": "*", "│": "|", "✓": "+", "✗": "x", "▼": "v", "▲": "^", "µ": "u", "“": '"', "”": '"', "’": "'",
}  # fmt: skip
UNKNOWN = "?"


def let_print_anything() -> None:
    """Keep standard output and error from failing at a letter, as with PYTHONIOENCODING=ascii or a Latin-1 locale."""
    codecs.register_error(ERRORS, _instead)
    for stream in (sys.stdout, sys.stderr):
        _take_handler(stream)


def has_all_letters() -> bool:
    """Whether standard output can print every letter."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf-")


def _take_handler(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and stream.errors in ("strict", "backslashreplace"):
        reconfigure(errors=ERRORS)


def _instead(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    lacking = problem.object[problem.start : problem.end]
    return "".join(INSTEAD.get(letter, UNKNOWN) for letter in lacking), problem.end
