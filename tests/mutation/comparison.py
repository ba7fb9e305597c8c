"""Scores of a run, and two runs side by side."""

import json
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

Row = dict[str, object]
Item = TypeVar("Item")
NOTICED = {"killed", "timeout"}
AROUND = 60  # letters that are shown on both sides of a change
IDENTITY = ("area", "module", "function", "operator", "before", "after", "ordinal")


def score_words(rows: list[Row]) -> str:
    """One line per area: how many of its mutants a test notices."""
    lines = []
    for area, own in [*_by_area(rows).items(), ("all", rows)]:
        number = {word: sum(row["outcome"] == word for row in own) for word in (*NOTICED, "survived", "not found")}
        tried = [row for row in own if row["outcome"] != "not found"]
        counts = ", ".join(f"{number[word]} {word}" for word in ("killed", "timeout", "survived", "not found"))
        lines.append(f"{area:20} {_score(tried):6.1%}  ({counts})")
    return "\n".join(lines)


def compared(before: Path, after: Path) -> int:
    """Print both scores over the mutants that both trees have; 1 where one is lower."""
    old, new = _rows(before), _rows(after)
    both = [key for key in old if key in new and new[key]["outcome"] != "not found"]
    print(f"{len(both)} of {len(old)} mutants are in both trees:")
    lower = False
    for area, keys in [*_grouped(both, lambda key: str(key[0])).items(), ("all", both)]:
        was, now = _score([old[key] for key in keys]), _score([new[key] for key in keys])
        lower |= now < was
        print(f"  {area:20} {was:6.1%} -> {now:6.1%}  of {len(keys)}{'  LOWER' if now < was else ''}")
    _print_rows("noticed before, not now", [new[key] for key in both if _noticed(old[key]) > _noticed(new[key])])
    _print_rows("noticed now, not before", [new[key] for key in both if _noticed(new[key]) > _noticed(old[key])])
    _print_rows("not found", [row for key, row in old.items() if key not in both])
    _print_rows("recognised elsewhere or in a similar statement", [row for row in new.values() if _is_guess(row)])
    return 1 if lower else 0


def _print_rows(title: str, rows: list[Row]) -> None:
    print(f"{title} ({len(rows)}):")
    for row in rows:
        place = row.get("at", row["module"])
        print(f"  {place} {row['function']} ({row['operator']}, {row['outcome']})")
        before, after = _around_the_change(str(row["before"]), str(row["after"]))
        print(f"    - {before}\n    + {after}")
        if "now" in row:
            print(f"    now {row['now']}")


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


def _is_guess(row: Row) -> bool:
    return row.get("recognised") in ("elsewhere", "similar")


def _noticed(row: Row) -> bool:
    return row["outcome"] in NOTICED


def _score(rows: list[Row]) -> float:
    return sum(map(_noticed, rows)) / max(1, len(rows))


def _by_area(rows: list[Row]) -> dict[str, list[Row]]:
    return _grouped(rows, lambda row: str(row["area"]))


def _grouped(items: Iterable[Item], name: Callable[[Item], str]) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(name(item), []).append(item)
    return groups
