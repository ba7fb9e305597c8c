"""What a launch does after its rounds: it measures what its collectors cost, and profiles its lead."""

import math
from dataclasses import dataclass
from statistics import median
from typing import Any

from castmates.analysis.explanations import layers
from castmates.protocols import Say
from castmates.runner.after_rounds import collector_costs
from castmates.runner.after_rounds.collector_costs import pairs_about
from castmates.runner.outcome import Measured
from castmates.runner.processes.launch import WorkloadFailed
from castmates.runner.processes.starts import placebo_member
from castmates.runner.profiles.rounds import NoAnswer, answer_of, mean_step, page_of, patience, usual_beats
from castmates.runner.rounds import stage as eviction
from castmates.runner.rounds.stage import Stage
from castmates.study.profile_launches import PROFILED_KINDS
from castmates.study.schedule import round_order
from castmates.study.spec import Scene
from castmates.workloads.heartbeat import HeartbeatError, State
from castmates.workloads.tfmodels.profile_page import Page, PageError


def measure_after_rounds(outcome: Measured, stage: Stage, say: Say) -> None:
    """Measure costs and profile; a member that is lost there, unless it found its result wrong, loses no rounds."""
    try:
        collector_costs.measure_costs(outcome, stage, say)
        profile(outcome, stage, say)
    except (WorkloadFailed, HeartbeatError) as failure:
        if any(process.reader.state is State.FAILED for process in outcome.cast):
            raise
        outcome.afterwards = str(failure)
        say(f"the rounds count, but what comes after them was cut short: {failure}")


# Profiles the lead in `alone` and co-run scenes after the measured rounds, where it announces that it can be profiled.
#
# What is traced runs slower: profiled steps enter no rate. How much slower is seen from as many steps right before and
# right after them.

NAME = "profiler"
# What an answer that is not as it should be makes of the code that reads it.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
OF = "rate of the lead in the steps that are profiled, which enter no rate"


@dataclass(frozen=True)
class SceneLayers:
    """What a scene came to."""

    rows: list[dict[str, Any]]  # of columns.launch.LAYERS
    log: float  # of the seconds of a usual step, right before and after, over those of a profiled one


def profile(outcome: Measured, stage: Stage, say: Say) -> None:
    """Profile the lead in every alone and co-run scene, and note what its layers took."""
    lead = outcome.launch.cohort.lead.name
    if not outcome.launch.design.counters.profile:
        return
    try:
        with page_of(stage, lead, say) as page:
            if page is not None:
                _profile_scenes(outcome, stage, page, say)
    except WorkloadFailed as failure:
        raise WorkloadFailed(
            f"{failure}, while {lead} was profiled; 'counters: {{profile: 0}}' leaves that out"
        ) from None


def _profile_scenes(outcome: Measured, stage: Stage, page: Page, say: Say) -> None:
    launch, lead = outcome.launch, outcome.launch.cohort.lead.name
    logs: list[float] = []
    for scene in round_order(launch, 0):
        if scene.kind not in PROFILED_KINDS or lead not in scene.active:
            continue
        try:
            profiled = _profile_scene(outcome, stage, page, scene)
        except (NoAnswer, PageError) as problem:
            say(f"the scene {scene.name} was not profiled: {problem}")
            break  # a lead that did not answer may still be busy with that profile
        outcome.layers += profiled.rows
        logs.append(profiled.log)
    if logs:
        outcome.costs[NAME] = pairs_about(logs, of=OF)
        say(f"profiled {launch.design.counters.profile} steps of {lead} in {len(logs)} scenes")


def _profile_scene(outcome: Measured, stage: Stage, page: Page, scene: Scene) -> SceneLayers:
    """Set the scene, watch some usual steps, have as many profiled, and watch usual ones again."""
    launch = outcome.launch
    steps, lead = launch.design.counters.profile, launch.cohort.lead.name
    emptied = eviction.change_shares(stage, scene.shares, anew=True)  # else it would depend on the scene before
    outcome.emptied += [emptied] if emptied else []
    stage.switch([*scene.active, *(placebo_member(cpu) for cpu in scene.placebos)])
    stage.sleep_until(stage.now_ns() + int(outcome.settle_seconds * 1e9))
    seconds = patience(steps, _step_seconds(outcome, lead))
    before = mean_step(usual_beats(stage, lead, steps, seconds))
    answer = answer_of(stage, page, lead, steps, seconds)
    try:
        rows, profiled = _understood(outcome, scene, answer)
    except UNREADABLE:
        raise NoAnswer("its answer is not what `castmates help layers` describes") from None
    after = mean_step(usual_beats(stage, lead, steps, seconds))
    return SceneLayers(rows, math.log(math.sqrt(before * after) / profiled))


def _understood(outcome: Measured, scene: Scene, answer: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
    """Return the rows of an answer, and the mean seconds of its steps."""
    lead = outcome.launch.cohort.lead.name
    if not answer["step_seconds"]:
        raise NoAnswer(f"the trace that {lead} made has none of its steps")
    if not any(type_ != layers.RUNTIME and not of_input for _, type_, of_input, *_ in answer["operations"]):
        raise NoAnswer(f"the steps of {lead} show no operations, as where XLA has compiled them into one (--xla)")
    for name, type_, *_ in answer["operations"]:
        (name + type_).encode()  # words that can be written to a table
    rows = _rows(outcome, scene, answer)
    seconds = sum(answer["step_seconds"]) / len(answer["step_seconds"])
    if not all(math.isfinite(number) for number in (math.log(seconds), *(row["ms_per_step"] for row in rows))):
        raise ValueError("not a finite number")
    return rows, seconds


def _step_seconds(outcome: Measured, lead: str) -> float:
    """Return the median length of the lead's steps."""
    rates = [window.total(lead).rate for window in outcome.windows if lead in window.scene.active]
    rates = [rate for rate in rates if rate > 0]
    return 1 / median(rates) if rates else 1.0


def _rows(outcome: Measured, scene: Scene, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of columns.launch.LAYERS."""
    operations = [(name, kind, of_input, calls, ns) for name, kind, of_input, calls, ns in answer["operations"]]
    return [
        {
            "scene": scene.name,
            "mix": scene.mix,
            "partition": scene.partition,
            "member": outcome.launch.cohort.lead.name,
            "layer": row.place.layer,
            "kind": row.place.kind,
            "direction": row.place.direction,
            "calls": row.calls,
            "ms_per_step": row.ms_per_step,
            "share": row.share,
            "steps": len(answer["step_seconds"]),
            "platform": outcome.platform,
        }
        for row in layers.layer_rows(operations, answer["step_seconds"])
    ]
