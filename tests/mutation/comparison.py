"""Scores of a run, and two runs side by side."""

import json
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from tests.mutation import HERE

Row = dict[str, object]
IDENTITY = ("area", "module", "function", "operator", "before", "after", "ordinal")
OUTCOMES = ("asserted", "crashed", "timeout", "survived", "not found")
NOTICED = {"asserted", "crashed", "timeout"}
AROUND = 60  # letters that are shown on both sides of a change
ACCEPTED = HERE / "accepted.txt"


def score_words(rows: list[Row]) -> str:
    """One line per room: how many of its mutants a test notices, and how."""
    lines = []
    for area in [*sorted({str(row["area"]) for row in rows}), "all"]:
        own = [row for row in rows if area in (row["area"], "all")]
        counts = ", ".join(f"{sum(row['outcome'] == word for row in own)} {word}" for word in OUTCOMES)
        lines.append(f"{area:12} {_score(row for row in own if row['outcome'] != 'not found'):6.1%}  ({counts})")
    return "\n".join(lines)


def compared(before: Path, after: Path) -> int:
    """Print both scores over the mutants that both trees have; 1 where one newly survives without a reason."""
    old, new = _rows(before), _rows(after)
    both = [key for key in old if key in new and new[key]["outcome"] != "not found"]
    print(f"{len(both)} of {len(old)} mutants are in both trees:")
    for area in [*sorted({str(key[0]) for key in both}), "all"]:
        own = [key for key in both if area in (key[0], "all")]
        print(f"  {area:12} {_score(map(old.get, own)):6.1%} -> {_score(map(new.get, own)):6.1%}  of {len(own)}")
    lost = [new[key] for key in both if _noticed(old[key]) > _noticed(new[key])]
    reasons = _accepted()
    unexplained = [row for row in lost if _name(row) not in reasons]
    _print_rows("noticed before, not now", unexplained)
    _print_rows("noticed before, not now, with a reason", [row for row in lost if _name(row) in reasons])
    _print_rows("noticed now, not before", [new[key] for key in both if _noticed(new[key]) > _noticed(old[key])])
    _print_rows("not found", [row for key, row in old.items() if key not in both])
    return 1 if unexplained else 0


def _accepted() -> set[str]:
    """The mutants that may survive: `function: before -> after | reason` in accepted.txt."""
    lines = ACCEPTED.read_text().splitlines() if ACCEPTED.is_file() else []
    return {line.rpartition(" | ")[0] for line in lines if " | " in line}


def _name(row: Row) -> str:
    return f"{row['function']}: {' -> '.join(_around_the_change(str(row['before']), str(row['after'])))}"


def _print_rows(title: str, rows: list[Row]) -> None:
    print(f"{title} ({len(rows)}):")
    for row in rows:
        print(f"  {row.get('at', row['module'])} {_name(row)} ({row['operator']}, {row['outcome']})")


def _around_the_change(before: str, after: str) -> tuple[str, str]:
    """Long statements without what is the same at both ends, save a little."""
    start = max(0, _alike(before, after) - AROUND)
    rest = _alike(before[start:][::-1], after[start:][::-1])
    end = max(0, rest - AROUND)
    cut = [text[start : len(text) - end] for text in (before, after)]
    before, after = (("…" if start else "") + text + ("…" if end else "") for text in cut)
    return before, after


def _alike(one: str, other: str) -> int:
    """With how many letters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _rows(file: Path) -> dict[tuple[object, ...], Row]:
    """By what each mutant was in the first tree."""
    return {tuple(row[name] for name in IDENTITY): row for row in json.loads(file.read_text())["mutants"]}


def _noticed(row: Row) -> bool:
    return row["outcome"] in NOTICED


def _score(rows: Iterable[Row | None]) -> float:
    noticed = [_noticed(row) for row in rows if row]
    return sum(noticed) / max(1, len(noticed))
