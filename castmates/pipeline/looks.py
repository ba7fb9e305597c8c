"""Looks at a study while it is measured: which cohorts, mixes and cells go on, and how many rounds launches have."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from castmates.analysis.design.adaptive import Look, MixAtLook, MixEstimate, decide, mix_estimates
from castmates.analysis.design.pilot import Reached, best_rounds, cost_of, look, spreads
from castmates.analysis.statistics.power import loss_pct
from castmates.errors import CastmatesError
from castmates.results.bundles import found_launches
from castmates.results.folder import StudyFolder
from castmates.results.launch_tables import read_windows
from castmates.results.looks import CELLS, percent, read_adaptive_look, read_decisions, went_on
from castmates.results.records import read_record
from castmates.study.curves import Question, curves, questions, reason
from castmates.study.rounds import Cost, Decision, Spread, guessed_cost, needed, part_of
from castmates.study.spec import PROTOCOL, UNMANAGED, Launch, Plan

# Those of an adaptive study: which mixes go on, which cells of curves are added, and so which launches are needed.


@dataclass(frozen=True)
class Terms:
    """What a study asks."""

    limit_pct: float | None
    margin: float


def take_adaptive_look(plan: Plan, folder: StudyFolder, number: int, terms: Terms) -> dict[str, Any]:
    """What a look leaves: judged by the windows on disk of the launches that it and the looks before it need."""
    last = _left_by_last(plan, folder, number)
    paths = needed(plan, [went_on(folder.look_file(before)) for before in range(1, number)])
    windows = read_windows([folder.launch(path) for path in paths])
    launched = _launched(folder, paths)
    of_mixes = mix_estimates(part_of(plan, paths), windows)
    found = {identity: each for identity, each in of_mixes.items() if identity in launched}
    asks = questions(plan.mixes, terms.limit_pct, terms.margin)
    look = Look(asks, curves(plan.mixes), math.log1p(terms.margin), _left(plan, number))
    before = _at_first(plan, found) if last is None else last
    asked = decide(look, found, before)
    went_on_before = {each.identity for each in before if each.goes_on}
    going = {each.identity for each in asked if each.goes_on}
    later = {path.rpartition("/")[0] for added in plan.looks[number:] for path in added}
    cohorts = [
        cohort.id
        for cohort in plan.cohorts
        if cohort.id in later and any(mix.identity in going for mix in cohort.mixes)
    ]
    full = sum(len(launch.cohort.scenes) * launch.design.rounds for launch in plan.launches)
    return {
        "look": number,
        "full_windows": full,
        "cohorts": cohorts,
        CELLS: [
            cell | {"is_news": (cell["identity"] in went_on_before) != cell["goes_on"]}
            for cell in _cells(plan, asked, asks, found)
        ],
    }


def text_of(look: Mapping[str, Any]) -> str:
    """The file of a look."""
    return json.dumps(look, indent=1) + "\n"


def _launched(folder: StudyFolder, paths: Collection[str]) -> set[str]:
    """Identities of the mixes that some launch measured, or tried to.

    A look that is taken again (with another limit, or more launches) may ask for mixes that launches left out.
    """
    ours = set(paths)
    launches = [launch for launch in found_launches(folder).measured if launch.path in ours]
    return {mix.identity for launch in launches for mix in launch.cohort.mixes if mix.identity not in launch.skipped}


def _left(plan: Plan, number: int) -> int:
    """How many launches of a cohort the later looks may add, at most."""
    counts: dict[str, int] = {}
    for path in (path for added in plan.looks[number:] for path in added):
        cohort = path.rpartition("/")[0]
        counts[cohort] = counts.get(cohort, 0) + 1
    return max(counts.values(), default=0)


def _left_by_last(plan: Plan, folder: StudyFolder, number: int) -> list[MixAtLook] | None:
    """What the look before left; None before the first one."""
    if number == 1:
        return None
    file = folder.look_file(number - 1)
    cells = read_adaptive_look(file)[CELLS]
    if strange := {cell["identity"] for cell in cells}.difference(mix.identity for mix in plan.mixes):
        raise CastmatesError(
            f"{file}: no mix of the plan is {', '.join(sorted(strange))}; remove it and run the same command again."
        )
    keys = [name for name in MixAtLook.__dataclass_fields__ if name != "why"]
    return [MixAtLook(**{key: cell[key] for key in keys}, why=cell["added"]) for cell in cells]


def _at_first(plan: Plan, found: Mapping[str, MixEstimate]) -> list[MixAtLook]:
    """Before the first look: every mix that was measured, and all but the later ones."""
    measured = {identity for identity, each in found.items() if each.launches}
    identities = dict.fromkeys(mix.identity for mix in plan.mixes if mix.is_compared)
    return [MixAtLook(identity) for identity in identities if identity in measured or identity not in plan.later]


def _cells(
    plan: Plan, asked: Sequence[MixAtLook], asks: Mapping[str, Question], found: Mapping[str, MixEstimate]
) -> list[dict[str, Any]]:
    mixes = {mix.identity: mix for mix in plan.mixes}
    cells = []
    for each in asked:
        mix, now = mixes[each.identity], found.get(each.identity, MixEstimate(0, math.nan, math.inf))
        partition = mix.partitions[0].name if mix.partitions else UNMANAGED
        content = {key: value for key, value in asdict(each).items() if key != "why"}
        cells.append(
            {"mix": mix.name, "partition": partition}
            | content
            | {"question": asks[each.identity].kind, "edge_pct": _loss(asks[each.identity].edge)}
            | {"loss_pct": _loss(now.log), "low_pct": _loss(now.low), "high_pct": _loss(now.high)}
            | {"added": each.why, "why": reason(each, asks[each.identity])}
        )
    return cells


def _loss(log: float) -> float | None:
    """A slowdown's logarithm as a loss in per cent; None where there is none."""
    return round(loss_pct(log), 3) if math.isfinite(log) else None


# Looks at a study's precision: which cohorts go on, and so which launches are needed.


def take_look(plan: Plan, folder: StudyFolder, wanted: float, decisions: Sequence[Sequence[str]]) -> list[Reached]:
    """Judge the cohorts that went on after these decisions, by the windows on disk."""
    return look(plan, read_windows([folder.launch(path) for path in needed(plan, decisions)]), wanted, decisions)


def look_text(number: int, wanted: float, reached: Sequence[Reached]) -> str:
    """What a look leaves."""
    content = {"look": number, "wanted_pct": percent(wanted), "reached": [asdict(cohort) for cohort in reached]}
    return json.dumps(content, indent=1) + "\n"


# Decides how many rounds the launches of a cohort have after its first ones, from what those showed.


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
    paths = [launch.path for launch in ours]
    seen = list(spreads(part_of(plan, paths), read_windows(list(map(folder.launch, paths)))).values())
    return _decision(cohort, best_rounds(seen, [cost], longest_launch), ours, seen, cost)


def decision_text(decision: Decision) -> str:
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
