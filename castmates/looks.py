"""Looks at a study's precision, on disk: each says which companies go on, and so which blocks are needed."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from castmates.errors import CastmatesError
from castmates.study.looks import needed
from castmates.study.spec import Plan

if TYPE_CHECKING:
    from castmates.analysis.precision import Reached


def look_file(results: Path, number: int) -> Path:
    """Where a look leaves what it saw."""
    return results / "looks" / f"{number}.json"


def went_on(file: Path) -> list[str]:
    """The companies that went on after this look."""
    try:
        reached = json.loads(file.read_bytes())["reached"]
        return [one["company"] for one in reached if one["goes_on"]]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise CastmatesError(
            f"{file}: this is not what a look leaves ({type(problem).__name__}); remove it and run the same "
            "command again."
        ) from None


def take_look(plan: Plan, results: Path, wanted: float, decisions: Sequence[Sequence[str]]) -> "list[Reached]":
    """Judge the companies that went on after these decisions, by the windows on disk."""
    from castmates.analysis.precision import look
    from castmates.estimate import read_windows

    windows = read_windows([results / "blocks" / path for path in needed(plan, decisions)])
    return look(plan, windows, wanted, decisions)


def text_of(number: int, wanted: float, reached: "Sequence[Reached]") -> str:
    """What a look leaves."""
    content = {"look": number, "wanted_pct": round(100 * wanted, 9), "reached": [asdict(one) for one in reached]}
    return json.dumps(content, indent=1) + "\n"
