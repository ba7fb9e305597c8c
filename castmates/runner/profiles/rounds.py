"""What a profile launch does in the place of rounds: it traces steps of the lead in each scene, several times.

The scenes of a round come in random order, and each is set anew, so that its trace does not depend on the one before.
What is traced runs slower: usual steps right before and right after each trace show how much.
"""

import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from castmates.files import reason
from castmates.machine.topology import Topology
from castmates.protocols import Say
from castmates.runner import outcome as progress
from castmates.runner.outcome import Outcome
from castmates.runner.processes.launch import Start, WorkloadFailed
from castmates.runner.processes.starts import helper_start, placebo_member
from castmates.runner.rounds import stage as eviction
from castmates.runner.rounds.pace import Steps, first_settle
from castmates.runner.rounds.round import warm_up
from castmates.runner.rounds.stage import Stage
from castmates.study.profile_launches import traced_by
from castmates.study.spec import Launch, Member, Profiling, Scene
from castmates.workloads.tfmodels import profile_page
from castmates.workloads.tfmodels.profile_page import FOLDER, GRAPH, VARIABLE, Input, Page, PageError

# Asks the lead for a profile of its next steps, and watches usual steps right before and after.

LOOK = 0.1  # seconds between two looks at the page
PATIENCE = 60.0  # seconds, and …
SLOWER = 10.0  # … so many times the usual length of the steps
SPOILT = "its page was removed, replaced or cut"
Awaited = TypeVar("Awaited")


class NoAnswer(Exception):
    """A scene was not profiled; the message gives the reason."""


def offer(lead: Start, channels: Path, traces: Path | None = None, *, primitives: bool = False) -> None:
    """Give the lead, before its start, the page on which it can be asked, and a folder where it is to leave traces.

    With `primitives` oneDNN's log is switched on, which can be done at its start alone.
    """
    path = channels / f"{lead.name}.profile"
    Page.create(path).close()
    lead.environment[VARIABLE] = str(path)
    if traces is not None:
        lead.environment[FOLDER] = str(traces.absolute())
    if primitives:
        lead.environment.update(profile_page.LOG_SETTINGS, **{profile_page.LOG_VARIABLE: "1"})


@contextmanager
def page_of(stage: Stage, lead: str, say: Say) -> Iterator[Page | None]:
    """Open the page that the lead was given; None where it was given none, or cannot be asked."""
    path = stage.cast[lead].start.environment.get(VARIABLE)
    if path is None:
        yield None
        return
    try:
        page = Page(Path(path))
    except PageError:
        say(f"{lead} cannot be profiled: {SPOILT}")
        yield None
        return
    try:
        if not page.sound:
            say(f"{lead} cannot be profiled: {SPOILT}")
        elif not page.able:
            say(
                f"{lead} cannot be profiled: it does not look at the page that {VARIABLE} names (castmates help layers)"
            )
        yield page if page.sound and page.able else None
    finally:
        page.close()


def patience(steps: int, step_seconds: float) -> float:
    """How many seconds an answer may take."""
    return PATIENCE + SLOWER * steps * step_seconds


def answer_of(
    stage: Stage, page: Page, lead: str, steps: int, seconds: float, source: Input = Input.GOES_ON
) -> dict[str, Any]:
    """Ask for a profile of so many steps, and wait for it."""
    if not page.sound:
        raise NoAnswer(SPOILT)
    if source is not Input.GOES_ON and not page.begins_anew:
        raise NoAnswer(f"{lead} cannot begin its input anew")
    number = page.ask(steps, source)
    answer = _awaited(stage, lambda: page.answered(number), seconds)
    if "error" in answer:
        raise NoAnswer(f"the profiler of {lead} failed: {answer['error']}")
    return answer


def usual_beats(stage: Stage, lead: str, steps: int, seconds: float) -> list[int]:
    """The times of the next heartbeats, which enclose so many steps at least."""
    stage.forget_beats()

    def enough() -> list[tuple[int, int]] | None:
        records = stage.cast[lead].records
        return list(records) if len(records) > steps else None

    return [t_ns for t_ns, _ in _awaited(stage, enough, seconds)]


def mean_step(beats: list[int]) -> float:
    """The mean seconds of the steps between these heartbeats."""
    return (beats[-1] - beats[0]) / 1e9 / (len(beats) - 1)


def _awaited(stage: Stage, look: Callable[[], Awaited | None], seconds: float) -> Awaited:
    """Return what `look` returns when the lead has gone on for a while."""
    deadline = time.monotonic() + seconds
    while (awaited := look()) is None:
        if time.monotonic() > deadline:
            raise NoAnswer(f"nothing came for {seconds:.0f} s")
        stage.sleep_until(stage.now_ns() + int(LOOK * 1e9))
    return awaited


# What a profile launch comes to: traces, before they are read.


@dataclass(frozen=True)
class Taken:
    """What is known of a trace, or why there is none."""

    scene: Scene
    round: int  # of the scene in its launch, from 1
    pair: int = 0  # of the launch, from 1: from storage and from the page cache; 0 where it has none
    input: Input = Input.GOES_ON  # where its steps have their input from
    folder: Path | None = None  # where it lies; None where there is none
    reason: str = ""
    first_step: int = 0  # of the lead since its start, before which it has made so many
    clocks: list[tuple[int, int, int]] = field(default_factory=list)  # monotonic, real, and how sure, in nanoseconds
    threads: tuple[int, int] = (0, 0)  # of an operation, and of operations side by side
    write_seconds: float = 0.0
    storage_bytes: int | None = None  # that were read while it was taken; None where that is not known
    versions: dict[str, str] = field(default_factory=dict)  # of the frameworks of a program that is not ours
    before: list[int] = field(default_factory=list)  # heartbeats of usual steps, CLOCK_MONOTONIC
    after: list[int] = field(default_factory=list)


@dataclass
class Profiled(Outcome):
    """What a profile launch comes to."""

    taken: list[Taken] = field(default_factory=list)
    graph: bytes | None = None  # that the lead left of its step
    roofs: dict[str, Any] = field(default_factory=dict)  # of the lead's CPUs, where they were measured

    def fail(self, reason: str) -> None:
        """Note that a workload failed."""
        super().fail(reason)
        self.taken.clear()


# What the lead's CPUs can do at most: the roofs under which its operations are drawn.
#
# Two kernels of ours stand still beside the members, and run alone on the lead's CPUs before its first trace: one
# streams through four times the last-level cache, the other multiplies and adds in registers.

MEMORY, COMPUTE = "roof:memory", "roof:compute"  # no workload may have a colon in its name
TIMES = 4  # the last-level cache, that is streamed through
SETTLE, SECONDS, TRIES = 0.3, 0.2, 6  # the best of so many stretches counts: others only ever take some away
MIB = 1 << 20
CHAINS = 12  # of the kernel `avx`: a unit is a step of each, a multiplication and an addition in every place
_WIDTH = re.compile(r"(\d+)-bit vectors")
BITS_OF_A_DOUBLE = 64


@dataclass(frozen=True)
class Roofs:
    """What is started, and what its units are."""

    starts: list[Start]
    flops_per_unit: float  # of numbers of 64 bits
    bytes: int = 0  # of memory
    why_not: str = ""  # in a sentence, why one is not measured


def roofs_of(lead: Member, topology: Topology, native: Path, scratch: Path) -> Roofs:
    """Return what measures the roofs of a lead's CPUs; less where the machine does not show what it takes."""
    starts, why = [], []
    sizes = [llc.bytes for llc in topology.llcs if set(llc.cpus) & set(lead.cpus)]
    threads = str(len(lead.cpus))
    known = [size for size in sizes if size]
    streamed = 0
    if known and len(known) == len(sizes):
        streamed = TIMES * sum(known)
        command = [str(native / "stream"), "--bytes", str(streamed), "--threads", threads]
        starts.append(_on(lead, helper_start(MEMORY, lead.cpus[0], command, scratch)))
    else:
        why.append("the kernel does not show how large the last-level cache is")
    flops = _flops_per_unit(native / "avx")
    if flops:
        command = [str(native / "avx"), "--threads", threads]
        starts.append(_on(lead, helper_start(COMPUTE, lead.cpus[0], command, scratch)))
    else:
        why.append("the kernel avx does not show how wide its vectors are")
    return Roofs(starts, flops, streamed, "; ".join(why))


def _on(lead: Member, start: Start) -> Start:
    """The same on all CPUs, and in the memory, of the lead."""
    return replace(start, cpus=lead.cpus, nodes=lead.nodes)


def _flops_per_unit(program: Path) -> float:
    """What a unit of the kernel comes to as it was built here; 0 where it does not show that."""
    try:
        words = subprocess.run([str(program), "--help"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return 0.0
    found = _WIDTH.search(words)
    return 2.0 * CHAINS * int(found[1]) / BITS_OF_A_DOUBLE if found else 0.0


def measure(stage: Stage, roofs: Roofs) -> dict[str, Any]:
    """Let each run alone for a moment: GB and 10^9 operations in a second, None where that is not known."""
    units = {start.name: _rate(stage, start.name) for start in roofs.starts}
    memory, compute = units.get(MEMORY), units.get(COMPUTE)
    return {
        "memory_gbs": None if memory is None else round(memory * MIB / 1e9, 3),
        "compute_gflops_f64": None if compute is None else round(compute * roofs.flops_per_unit / 1e9, 3),
        "why_not": roofs.why_not,
    }


def _rate(stage: Stage, name: str) -> float | None:
    """The most units in a second of one that runs alone."""
    stage.switch([name])
    stage.sleep_until(stage.now_ns() + int(SETTLE * 1e9))
    best = None
    for _ in range(TRIES):
        stage.forget_beats()
        stage.sleep_until(stage.now_ns() + int(SECONDS * 1e9))
        records = stage.cast[name].records
        if len(records) > 1 and records[-1][0] > records[0][0]:
            rate = (records[-1][1] - records[0][1]) / (records[-1][0] - records[0][0]) * 1e9
            best = rate if best is None else max(best, rate)
    stage.switch([])
    return best


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
