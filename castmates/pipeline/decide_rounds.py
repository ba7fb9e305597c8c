"""Decides how many rounds the launches of a cohort have after its first ones, from what those showed."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean

from castmates.analysis.design.pilot import best_rounds, cost_of, spreads
from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder
from castmates.results.launch_tables import read_windows
from castmates.results.looks import read_decisions
from castmates.results.records import read_record
from castmates.study.rounds import Cost, Decision, Spread, guessed_cost, part_of
from castmates.study.spec import PROTOCOL, Launch, Plan


def decide_rounds(plan: Plan, cohort: str, folder: StudyFolder, longest_launch: float) -> Decision:
    """Decide by the launches of this cohort that are measured; what was decided stays."""
    for decision in read_decisions(folder):
        if decision.cohort == cohort:
            return decision
    ours = [launch for launch in folder.measured(plan).launches if launch.cohort.id == cohort]
    if not ours:
        raise CastmatesError(f"{folder}: no launch of the cohort '{cohort}' is measured; run the study's sweep.")
    records = [read_record(folder.record_file(launch)) for launch in ours]
    cost = cost_of(records) if ours[0].design.model is None else None
    if cost is None:  # a modelled machine takes no time, and shows what a real one would do
        cost = guessed_cost(ours[0].cohort, ours[0].design.window)
    if kept := [record["spec"]["design"]["rounds"] for record in records if record["spec"]["design"].get("decided")]:
        return _decision(cohort, max(kept), [], [], cost)
    seen = list(
        spreads(
            part_of(plan, [launch.path for launch in ours]),
            read_windows([folder.launch(launch.path) for launch in ours]),
        ).values()
    )
    return _decision(cohort, best_rounds(seen, [cost], longest_launch), ours, seen, cost)


def text_of(decision: Decision) -> str:
    """What a decision leaves."""
    return json.dumps(asdict(decision), indent=1) + "\n"


def _decision(cohort: str, rounds: int, launches: Sequence[Launch], seen: Sequence[Spread], cost: Cost) -> Decision:
    return Decision(
        cohort=cohort,
        protocol=PROTOCOL,
        rounds=rounds,
        launches=len(launches),
        within=math.sqrt(fmean(each.within for each in seen)) if seen else None,
        between=math.sqrt(fmean(each.between for each in seen)) if seen else None,
        launch=round(cost.launch, 3),
        round=round(cost.round, 3),
    )
