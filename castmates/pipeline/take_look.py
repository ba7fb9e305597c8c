"""Looks at a study's precision, on disk: each says which companies go on, and so which blocks are needed."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.errors import CastmatesError
from castmates.study.looks import needed, reached_words, until_nobody_goes_on
from castmates.study.spec import Plan

if TYPE_CHECKING:
    from castmates.analysis.design.precision import Reached


def look_file(results: Path, number: int) -> Path:
    """Where a look leaves what it saw."""
    return results / "looks" / f"{number}.json"


def went_on(file: Path) -> list[str]:
    """The companies that went on after this look."""
    return [one["company"] for one in _read(file)["reached"] if one["goes_on"]]


def precision_words(plan: Plan, results: Path, wanted: float | None) -> str:
    """Whether this precision was reached, by the looks on disk; "" where it was not looked for."""
    if wanted is None:
        return ""
    taken = until_nobody_goes_on(_on_disk(plan, results))
    return reached_words(taken if all(look["wanted_pct"] == _percent(wanted) for look in taken) else [])


def _on_disk(plan: Plan, results: Path) -> Iterator[dict[str, Any]]:
    for number in range(1, len(plan.looks) + 1):
        if not (file := look_file(results, number)).is_file():
            return
        yield _read(file)


def _read(file: Path) -> dict[str, Any]:
    try:
        look = json.loads(file.read_bytes())
        keys = ("company", "blocks", "half_width_pct", "enough", "goes_on")
        reached = [{key: one[key] for key in keys} for one in look["reached"]]
        return {"wanted_pct": float(look["wanted_pct"]), "reached": reached}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise CastmatesError(
            f"{file}: this is not what a look leaves ({type(problem).__name__}); remove it and run the same "
            "command again."
        ) from None


def take_look(plan: Plan, results: Path, wanted: float, decisions: Sequence[Sequence[str]]) -> "list[Reached]":
    """Judge the companies that went on after these decisions, by the windows on disk."""
    from castmates.analysis.design.precision import look
    from castmates.pipeline.estimate_effects import read_windows

    windows = read_windows([results / "blocks" / path for path in needed(plan, decisions)])
    return look(plan, windows, wanted, decisions)


def text_of(number: int, wanted: float, reached: "Sequence[Reached]") -> str:
    """What a look leaves."""
    content = {"look": number, "wanted_pct": _percent(wanted), "reached": [asdict(one) for one in reached]}
    return json.dumps(content, indent=1) + "\n"


def _percent(share: float) -> float:
    return round(100 * share, 9)
