"""A sweep over a modelled study without Snakemake: the planner's own decisions, and each launch played at once.

What is left out is what Snakemake does: whether a file is made again, by which job, and beside which others.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from castmates.files import replace_text
from castmates.pipeline import looks
from castmates.pipeline.measure_launch import measure, planned
from castmates.pipeline.planned_sweep import PlannedSweep
from castmates.results.looks import went_on
from castmates.results.plans import read_plan, read_task
from castmates.study.plan_text import plan_text
from castmates.study.rounds import without_decisions

FILE, CACHE = Path("study.yaml"), Path("cache")
SMALL = {"name": "small", "platform": "modelled", "leads": ["chase"], "antagonists": ["stream"], "controls": None}


class Sweep:
    """The study in the folder of this process, as a sweep finds it that begins now."""

    def __init__(self, study: Mapping[str, object], launches: int | None = None) -> None:
        FILE.write_text(yaml.safe_dump(SMALL | study))
        self.planned = PlannedSweep.of(FILE, launches, CACHE, lambda _plan, _folder: [])
        self.terms, self.plan, self.folder = self.planned.terms, self.planned.plan, self.planned.project.results
        self.played: list[str] = []  # the launches that were not there

    def run(self) -> "Sweep":
        """Plan, and play what is missing, from look to look."""
        replace_text(self.folder.plan_file, plan_text(without_decisions(self.plan)))
        decisions: list[Sequence[str]] = []
        for path in self.planned.needed(decisions):
            self.play(path)
        for number in range(1, len(self.plan.looks) + 1):
            decisions.append(self._look(number, decisions))
            if not decisions[-1]:
                break
            for path in self.planned.needed(decisions):
                self.play(path)
        return self

    def play(self, path: str) -> None:
        """Play a launch that is not measured, once it is decided how many rounds it has."""
        cohort = path.rpartition("/")[0]
        if path in self.planned.measured or path in self.played:
            return
        file = self.folder.rounds_file(cohort)
        if self.planned.launch(path).waits and not file.exists():
            for first in self.planned.first_launches(cohort):
                self.play(first)
            plan, longest = read_plan(self.folder.plan_file), self.planned.project.study.budget.longest_launch
            decision = looks.decide_rounds(plan, cohort, self.folder, longest)
            replace_text(file, looks.decision_text(decision))
        task = planned(read_task(self.folder.plan_file, path), path, "small")
        measure(task, self.folder.launch(path), CACHE)
        self.played.append(path)

    def _look(self, number: int, decisions: Sequence[Sequence[str]]) -> Sequence[str]:
        """Take a look where it was not taken, or take it anew where the study asks for something else."""
        file, plan = self.folder.look_file(number), read_plan(self.folder.plan_file)
        if self.terms.adaptive:
            terms = looks.Terms(self.terms.lead_loss, self.terms.margin)
            look = looks.take_adaptive_look(plan, self.folder, number, terms)
            replace_text(file, looks.text_of(look))
        else:
            wanted = self.terms.precision
            reached = looks.take_look(plan, self.folder, wanted, decisions)
            replace_text(file, looks.look_text(number, wanted, reached))
        return went_on(file)

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """What the measured launches left, in their order."""
        files = self.folder.record_files()
        return {f"{file.parts[-3]}/{file.parts[-2]}": json.loads(file.read_text()) for file in files}

    @property
    def rounds(self) -> dict[str, list[int]]:
        """The rounds of each cohort's launches."""
        found: dict[str, list[int]] = {}
        for path, record in self.records.items():
            found.setdefault(path.rpartition("/")[0], []).append(record["spec"]["design"]["rounds"])
        return found

    def texts(self, kind: str) -> dict[str, str]:
        """What was decided: `rounds` or `looks`."""
        return {file.name: file.read_text() for file in sorted(self.folder.path.glob(f"{kind}/*.json"))}
