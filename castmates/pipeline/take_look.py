"""Looks at a study's precision: which cohorts go on, and so which launches are needed."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from castmates.results.folder import StudyFolder
from castmates.results.launch_tables import read_windows
from castmates.results.looks import percent
from castmates.study.rounds import needed
from castmates.study.spec import Plan

if TYPE_CHECKING:
    from castmates.analysis.design.pilot import Reached


def take_look(plan: Plan, folder: StudyFolder, wanted: float, decisions: Sequence[Sequence[str]]) -> "list[Reached]":
    """Judge the cohorts that went on after these decisions, by the windows on disk."""
    from castmates.analysis.design.pilot import look  # pandas: `castmates plan` mostly needs none

    return look(plan, read_windows([folder.launch(path) for path in needed(plan, decisions)]), wanted, decisions)


def text_of(number: int, wanted: float, reached: "Sequence[Reached]") -> str:
    """What a look leaves."""
    content = {"look": number, "wanted_pct": percent(wanted), "reached": [asdict(cohort) for cohort in reached]}
    return json.dumps(content, indent=1) + "\n"
