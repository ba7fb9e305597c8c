"""What a profile launch does in the place of rounds: it traces steps of the lead in each scene, several times.

The scenes of a round come in random order, and each is set anew, so that its trace does not depend on the one before.
What is traced runs slower: usual steps right before and right after each trace show how much.
"""

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from castmates.files import reason
from castmates.protocols import Say
from castmates.runner import progress
from castmates.runner.processes.launch import WorkloadFailed
from castmates.runner.processes.starts import placebo_member
from castmates.runner.profiles.asking import LOOK, NoAnswer, answer_of, page_of, patience, usual_beats
from castmates.runner.profiles.roofs import Roofs, measure
from castmates.runner.profiles.taken import Profiled, Taken
from castmates.runner.rounds import eviction
from castmates.runner.rounds.pace import Steps, first_settle
from castmates.runner.rounds.stage import Stage
from castmates.runner.rounds.warm_up import warm_up
from castmates.study.profile_launches import traced_by
from castmates.study.spec import Launch, Profiling
from castmates.workloads.tfmodels.profile_page import GRAPH, Input, Page, PageError

LONGEST = 60.0  # seconds that the steps before the first trace take at most
TRACES = "traces"  # the folder of a launch's traces
# Why a trace that was taken is not used. Nothing is read from a RAM disk, or of files that another process has mapped;
# much is read in spite of the page cache where memory does not hold the files.
NOTHING_READ = "nothing was read from storage: its files stayed in memory"
NOT_COUNTED = "the kernel does not count what is read from storage"
MUCH_READ = "it was to read from the page cache, and storage was read: memory does not hold its files"
LITTLE = 1 << 19  # bytes that a process may read meanwhile for another reason, such as a page of a library
UNREADABLE = (LookupError, TypeError, ValueError)


def profile_rounds(outcome: Profiled, stage: Stage, traces: Path, say: Say, roofs: Roofs | None = None) -> None:
    """Trace every scene of the kinds that are wanted, as often as is wanted; what fails is noted."""
    launch, lead = outcome.launch, outcome.launch.cohort.lead.name
    shutil.rmtree(traces, ignore_errors=True)  # of a launch that was killed
    progress.rounds_begin(outcome)
    begin = stage.now_ns()
    steps = warm_up(stage, launch)
    how = traced_by(launch.cohort)
    first_steps(stage, lead, how.steps_before if how else 0)
    if roofs is not None:
        outcome.roofs = measure(stage, roofs)
    outcome.warm_up_seconds = (stage.now_ns() - begin) / 1e9
    with page_of(stage, lead, say) as page:
        if page is None:
            raise WorkloadFailed(f"{lead} cannot be profiled: it does not offer it (castmates help operations)")
        outcome.graph = page.left(GRAPH)
        for wanted in order(launch):
            taken = _taken(outcome, stage, page, wanted, steps, traces)
            outcome.taken.append(taken)
            say(f"{taken.scene.name}, trace {taken.round}: {taken.reason or 'taken'}")
            if taken.folder is None:
                break  # a lead that did not answer may still be busy with that profile
    stage.switch([])
    outcome.measure_seconds = (stage.now_ns() - begin) / 1e9 - outcome.warm_up_seconds


def first_steps(stage: Stage, lead: str, steps: int) -> None:
    """Let the lead make the steps alone that its framework needs before traces of one graph show the same."""
    begin = stage.now_ns()
    stage.switch([lead])
    stage.forget_beats()
    while len(stage.cast[lead].records) <= steps and stage.now_ns() - begin < LONGEST * 1e9:
        stage.sleep_until(stage.now_ns() + int(LOOK * 1e9))


def order(launch: Launch) -> list[Taken]:
    """The traces of a launch, before they are taken: rounds of all scenes, each in random order.

    In a launch of the first epoch a scene has two in each round: from storage, and from the page cache.
    """
    profiling = profiling_of(launch)
    lead = launch.cohort.lead.name
    scenes = [each for each in launch.cohort.scenes if each.kind in profiling.scenes and lead in each.active]
    sources = (Input.FROM_STORAGE, Input.ANEW) if profiling.first_epoch else (Input.GOES_ON,)
    found = []
    for number in range(1, profiling.times + 1):
        shuffled = [
            Taken(scene, (number - 1) * len(sources) + place, number, source)
            for scene in scenes
            for place, source in enumerate(sources, start=1)
        ]
        random.Random(f"{launch.seed}/{number}").shuffle(shuffled)
        found += shuffled
    return found


def profiling_of(launch: Launch) -> Profiling:
    """What is traced in a profile launch."""
    assert launch.design.profiling is not None
    return launch.design.profiling


def _taken(outcome: Profiled, stage: Stage, page: Page, taken: Taken, steps: Steps, traces: Path) -> Taken:
    """Set the scene, watch usual steps, have as many traced, and watch usual ones again."""
    launch, scene = outcome.launch, taken.scene
    lead, wanted = launch.cohort.lead, profiling_of(launch).steps
    eviction.change_shares(stage, scene.shares, anew=True)
    stage.switch([*scene.active, *(placebo_member(cpu) for cpu in scene.placebos)])
    settle = first_settle(launch.design, steps, lead.name, lead.requests)
    stage.sleep_until(stage.now_ns() + int(settle * 1e9))
    seconds = patience(wanted, steps.of_scene.get(scene.name) or steps.of_member.get(lead.name, 1.0))
    try:
        before = usual_beats(stage, lead.name, wanted, seconds)
        answer = answer_of(stage, page, lead.name, wanted, seconds, taken.input)
        stage.read_beats()  # or what was annotated at the end of the traced steps would be forgotten with them
        after = usual_beats(stage, lead.name, wanted, seconds)
        folder = traces / scene.name / str(taken.round)  # as TensorBoard lists them
        return understood(replace(taken, before=before, after=after), answer, traces, folder)
    except (NoAnswer, PageError) as problem:
        return replace(taken, reason=str(problem))


def _why_not_used(source: Input, read: int | None) -> str:
    """Why a trace shows no steps of what it was to show; "" where it does."""
    if source is Input.GOES_ON:
        return ""
    if read is None:
        return NOT_COUNTED
    if source is Input.FROM_STORAGE:
        return "" if read else NOTHING_READ
    return MUCH_READ if read > LITTLE else ""


def understood(taken: Taken, answer: dict[str, Any], traces: Path, folder: Path) -> Taken:
    """What an answer has, and its trace moved into its own folder."""
    try:
        here = traces / str(int(answer["trace"]))
        if not here.is_dir():
            raise NoAnswer("the trace is not where it should be")
        clocks = [(int(steady), int(real), int(bracket)) for steady, real, bracket in answer["clocks"]]
        intra, inter = map(int, answer["threads"])
        first, seconds = int(answer["first_step"]), float(answer["write_seconds"])
        read = None if answer.get("storage_bytes") is None else int(answer["storage_bytes"])
        versions = {str(name): str(version) for name, version in dict(answer.get("versions", {})).items()}
    except UNREADABLE:
        raise NoAnswer("its answer is not what `castmates help operations` describes") from None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        here.rename(folder)
    except OSError as problem:
        raise NoAnswer(f"its trace cannot be put into {folder.parent} ({reason(problem)})") from None
    return replace(
        taken,
        folder=folder,
        reason=_why_not_used(taken.input, read),
        storage_bytes=read,
        first_step=first,
        clocks=clocks,
        threads=(intra, inter),
        write_seconds=seconds,
        versions=versions,
    )
