"""The line of a file that an error names, with a caret below the word that is meant."""

import re
from pathlib import Path

PLACE = re.compile(r"(?P<file>[^\n]+?), line (?P<line>\d+): (?P<rest>[^\n]*)")
QUOTED = re.compile(r"'([^']+)'")


def excerpt(message: str) -> str:
    """Two lines to print below an error; "" where it names no line, or the file cannot be read."""
    place = PLACE.match(message)
    if place is None:
        return ""
    number = int(place["line"])
    try:
        source = Path(place["file"]).read_text(encoding="utf-8").splitlines()[number - 1].expandtabs(1)
    except (OSError, UnicodeDecodeError, IndexError):
        return ""
    begin, width = _where(source, place["rest"])
    gutter = f"{number:>6} | "
    return f"{gutter}{source}\n{'':>6} | {' ' * begin}{'^' * width}"


def _where(source: str, sentence: str) -> tuple[int, int]:
    """Where the first word in quotes stands, or the last part of a dotted key; else all that is written there."""
    for quoted in QUOTED.findall(sentence):
        for word in (quoted, quoted.rpartition(".")[2]):
            if not word.isdigit() and (begin := source.find(word)) >= 0:
                return begin, len(word)
    written = source.strip()
    return len(source) - len(source.lstrip()), max(1, len(written))
