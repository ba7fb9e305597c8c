"""From a plan to the files of one launch, measured or modelled, ending in good order however it is ended."""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from types import FrameType

from castmates import shipped
from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.files import make_folder, mapping_if_there
from castmates.linux.processes import read_process
from castmates.linux.signals import ENDING, deaf
from castmates.pipeline.failures import ENDED
from castmates.protocols import Say
from castmates.results.columns.launch import RECORD
from castmates.results.folder import StudyFolder
from castmates.results.known_nodes import node_here, note_attempt, note_refusal
from castmates.results.records import REUSED, mostly_busy, record_or_why, too_busy
from castmates.runner import outcome as progress
from castmates.runner.launch import kind_of
from castmates.runner.outcome import Outcome
from castmates.runner.staging import OtherNode, refuse_other_node
from castmates.study.curves import as_launched
from castmates.study.plan_text import Task, task_in
from castmates.study.rounds import FIRST_LAUNCHES, undecided
from castmates.study.spec import Launch, Member, Plan
from castmates.workloads import environments
from castmates.workloads.native import build as native


class Interrupted(BaseException):
    """A signal, or the end of the process that asked for the launch; nothing may swallow it."""


def measure_launch(plan: Plan, name: str, folder: Path, cache: Path, owner: int | None = None) -> None:
    """Measure the launch of this name (COHORT/NUMBER), or play it where its machine is modelled."""
    task = planned(task_in(plan, name), name, plan.study)
    refuse_other_node(task.launch, task.machines)
    measure(task, folder, cache, owner)


def measure(task: Task, folder: Path, cache: Path, owner: int | None = None) -> None:
    """Make a launch of any kind on a node of its class, or play it where its machine is modelled.

    Its files are written into `folder`. It ends early when the process `owner` is gone; progress goes to standard
    error.
    """
    launch = task.launch
    kind, run_launch = kind_of(launch), _runner_of(task)
    logs = folder / "logs"
    make_folder(logs)
    say = _printer(kind.name_of(launch))
    try:
        with _signals_raise():
            outcome = run_launch(as_launched(built_for_us(launch, cache)), logs, cache, say, _follow(owner))
        outcome.launch = launch  # as planned; where its programs are built, `environments` of the record shows
        if kind.reading:
            say(kind.reading)
        # What is measured is written, even if we are asked to end now; reading traces may take long, and can be ended.
        with _signals_raise() if kind.reading else deaf():
            kind.write(outcome, folder)
    except Interrupted as interruption:
        say(f"{ENDED}: {interruption}")
        sys.exit(130)
    progress.ended(outcome)
    if outcome.status == "failed":
        say(f"failed: {outcome.reason}" + (f" (below {logs})" if kind.keeps_logs else ""))
    else:
        say(kind.words(outcome))


def refuse_busy_machine(folder: StudyFolder) -> None:
    """Measure no more where nothing of the first launches counts because others ran: the next ones would end alike."""
    read = ((file, record_or_why(file)) for file in folder.launches.glob(f"*/*/{RECORD}"))
    own = dict(islice(((file, record) for file, record in read if not record.get(REUSED)), FIRST_LAUNCHES + 1))
    if len(own) > FIRST_LAUNCHES or not too_busy(list(own.values())):
        return
    if len(own) == FIRST_LAUNCHES or mostly_busy(next(iter(own.values()))):
        raise CastmatesError(
            f"{too_busy_words([file.parent for file in own])} Then measure these again: `castmates sweep --retry` with "
            "this study."
        )


def too_busy_words(places: Sequence[Path]) -> str:
    """Why nothing counts of the first launches, which lie there, who is to blame, and what to do about them."""
    from castmates.pipeline.busy import busy_words  # it reads tables

    who = busy_words(places)
    first = f"first {counted(len(places), 'launch')}" if len(places) > 1 else "first launch"
    unseen = "others ran that cannot be seen from here, such as other guests of its host. Wait until they are quiet"
    why = f"other programs ran: {who}. Stop them" if who else unseen
    return f"this machine is too busy: nothing of the {first} counts, because {why}."


def _runner_of(task: Task) -> Callable[[Launch, Path, Path, Say, Callable[[], None]], Outcome]:
    """Import what measures the launch, or what plays it; a launch need not wait for both."""
    if task.launch.design.model is None:
        from castmates.runner import launch as real

        return partial(real.run_launch, needs=task.needs)
    from castmates.runner.modelled import launch as modelled

    return modelled.run_launch


def planned(task: Task | None, name: str, study: str) -> Task:
    """The launch, where the plan of the study has it and it can be measured now."""
    task = in_plan_of(study, task, f"launch '{name}'")
    if undecided([task.launch]):
        raise CastmatesError(
            f"how many rounds the launch '{name}' has is decided after the first {FIRST_LAUNCHES} launches of "
            "its cohort: run the sweep, or write a number for 'budget.rounds'."
        )
    return task


def in_plan_of(study: str, task: Task | None, what: str) -> Task:
    """The launch, where the plan of the study has it."""
    if task is None:
        raise CastmatesError(
            f"the plan of the study '{study}' has no {what}; if the study was edited while the sweep was starting, "
            "run the same command again; if its results were copied here, remove their plan.json before."
        )
    return task


def _printer(prefix: str) -> Callable[[str], None]:
    """Progress of a launch, one line a message, on standard error."""

    def say(message: str) -> None:
        with suppress(OSError):  # the listener may be gone; a full disk shows at what matters, the launch's own files
            print(f"{datetime.now():%H:%M:%S} {prefix}: {message}", file=sys.stderr, flush=True)

    return say


def _follow(owner: int | None) -> Callable[[], None]:
    """A check that ends the launch when the process that asked for it is gone (its number may be reused)."""
    if owner is None:
        return lambda: None
    asked = read_process(owner)

    def check() -> None:
        now = read_process(owner)
        if asked is None or now is None or not now.alive or now.born != asked.born:
            raise Interrupted(f"process {owner}, which started this launch, is gone")

    return check


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Turn a request to end into an exception, so that everything is cleaned up on the way out."""

    def end(number: int, _frame: FrameType | None) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # a second Ctrl-C must not interrupt the clean-up
        raise Interrupted(f"{signal.Signals(number).name} came")

    # What is ignored stays so: `nohup` means it.
    ours = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# A launch on a node of a cluster, whose processor may be another one than that of the machine that planned.


def built_for_us(launch: Launch, cache: Path) -> Launch:
    """The launch with our own programs as this processor needs them: they are built for the very one that builds them.

    Their sources have to be those that the launch was planned with.
    """
    planned, ours = launch.cohort.native_key, environments.key(environments.NATIVE, shipped.environments())
    if launch.design.model is not None or ours == planned:
        return launch
    place = environments.place_of(environments.NATIVE, planned, cache)
    if not environments.ready_file(place).is_file():
        return launch  # a launch by hand, without a sweep that builds: it reports what is not built
    if mapping_if_there(environments.ready_file(place)).get("sources") != native.sources():
        raise CastmatesError(
            "the sources of the kernels are no longer those that this launch was planned with; run the same command "
            "again."
        )
    environments.build(environments.NATIVE, shipped.environments(), cache)
    members = tuple(_with_native(member, ours) for member in launch.cohort.members)
    return launch.model_copy(
        update={"cohort": launch.cohort.model_copy(update={"native_key": ours, "members": members})}
    )


def _with_native(member: Member, key: str) -> Member:
    is_native = member.environment == environments.NATIVE
    return member.model_copy(update={"environment_key": key}) if is_native else member


# A launch is refused on a node that is not of its class; what the next attempt has to know is noted.


def refuse_wrong_node(folder: StudyFolder, task: Task, path: str) -> None:
    """Note the attempt at the launch of this path, and refuse it on another node than it was planned for."""
    node = node_here()
    if node:
        note_attempt(folder, path, node)
    try:
        refuse_other_node(task.launch, task.machines)
    except OtherNode:
        if node:
            note_refusal(folder, task.launch.cohort.machine, node)
        raise
