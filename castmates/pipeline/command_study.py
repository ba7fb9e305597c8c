"""Writes the study that measures a command as it was typed: on as many CPUs as it uses, in windows that suit it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.english import counted, duration, listed
from castmates.errors import CastmatesError
from castmates.machine.topology import layout_of, read_topology
from castmates.pipeline.command_trial import HELPERS, Command, Trial, program_of, try_command
from castmates.pipeline.own_study import (
    budget_of,
    in_a_line,
    memory_of,
    name_of,
    one_of,
    refuse_unknown,
    scalar,
    variables_of,
)
from castmates.protocols import Say
from castmates.study.model import Placement, Study, Workload
from castmates.study.placement.layout import Layout
from castmates.study.placement.search import Need, search
from castmates.study.placement.seats import rules_of

LAUNCHES = 6
READY_WITHIN, SLOWER = 180.0, 4.0  # seconds, or so many times what the trial took


@dataclass(frozen=True)
class Seen:
    """A command as its trial showed it, and how many CPUs it is given."""

    command: Command
    trial: Trial
    cpus: int
    words: str  # why so many

    @property
    def seconds(self) -> float:
        """What a run or step takes there."""
        return self.trial.on(self.cpus)


def study_of(command: Command, beside: Sequence[str], name: str, known: Mapping[str, Workload], say: Say) -> Path:
    """The study that measures a command beside these workloads: the one that was written before, or a new one."""
    refuse_unknown(beside, known)
    program_of(command)  # at once, and not after the trial has waited for another sweep; also where the study is there
    layout = layout_of(read_topology())
    room = room_for(beside, known, layout)
    if command.cpus > room:
        raise CastmatesError(
            f"--cpus is {command.cpus}, but of the {counted(len(_usable(layout)), 'CPU')} that may be used here at "
            f"most {room} can be the program's: the others are for {listed(list(beside))}."
        )

    def text(own: str) -> str:
        seen = seen_of(command, try_command(command, say), room, len(_usable(layout)), beside)
        say(seen.words)
        return text_of(own, seen, beside, known)

    return one_of(name_of([name] if name else command.words), lambda study: measures(study, command, beside), text)


def room_for(beside: Sequence[str], known: Mapping[str, Workload], layout: Layout) -> int:
    """How many CPUs a lead can have beside each of these."""
    rules, others = rules_of(Placement(), layout, "measure"), max(known[name].cores for name in beside)
    sizes = range(len(_usable(layout)) - others, 1, -1)
    fitting = (n for n in sizes if search(rules, [Need("measure", "lead", (n, others))], layout, 1) is not None)
    return next(fitting, 1)


def _usable(layout: Layout) -> list[int]:
    return [cpu.id for cpu in layout.cpus if cpu.usable]


def seen_of(command: Command, trial: Trial, room: int, usable: int, beside: Sequence[str]) -> Seen:
    """How many CPUs it is given, and a sentence on that and on what it takes."""
    name, what = command.words[0], "run" if command.way == "runs" else "step"
    cpus = command.cpus or min(trial.cpus, room)
    length = duration(trial.seconds) if trial.seconds >= 100 else f"{trial.seconds:.3g} s"
    took = f"{name}: one {what} took {length} and"
    if command.counted:  # of which some come at a time
        took = f"{name}: {f'calls of {command.calls}' if command.calls else 'instructions'} are counted; it"
    short = f" and could have used {trial.wanted:.1f}" if trial.wanted - trial.busy > HELPERS else ""
    words = f"{took} kept {trial.busy:.1f} CPUs busy{short}; it is given {counted(cpus, 'CPU')}"
    if command.cpus:
        words += " (--cpus)"
    elif trial.cpus > room:
        words += (
            f" and not {trial.cpus}, because of the {usable} here the others are for {listed(list(beside))}: its "
            f"threads take turns, and a {what} takes about {trial.on(cpus):.3g} s"
        )
    elif cpus > 1 or trial.busy > 1:
        words += " (--cpus N gives it another number)"
    return Seen(command, trial, cpus, f"{words}.")


def text_of(name: str, seen: Seen, beside: Sequence[str], known: Mapping[str, Workload]) -> str:
    """The study as YAML: windows of as many runs as are good to have, as long as those take."""
    command, trial, workload = seen.command, seen.trial, f"{name}-own" if name in known else name
    took = f" # one {'run' if command.way == 'runs' else 'step'} took {trial.seconds:.3g} s"
    progress = f"{{calls: {scalar(command.calls)}}}" if command.calls else command.way
    lines = [
        "# Written by `castmates measure`; change it as you like, and go on with `castmates sweep`.",
        f"name: {scalar(name)}",
        f"title: {scalar(f'What {name} loses beside ' + ' and '.join(beside))}",
        "workloads:",
        f"  {scalar(workload)}:",
        f"    command: {in_a_line(command.words)}",
        f"    progress: {progress}{'' if command.counted else took}",
        *([f"    step_line: {scalar(command.step_line)}"] if command.step_line else []),
        *([f"    ready_line: {scalar(command.ready_line)}"] if command.ready_line else []),
        *variables_of(command.variables),
        *([f"    cores: {seen.cpus} # it kept {trial.busy:.1f} busy"] if seen.cpus > 1 or trial.cpus > 1 else []),
        *_ready_within(trial),
        f"    memory: {memory_of(trial)}",
        f"leads: {in_a_line([workload])}",
        f"antagonists: {in_a_line(beside)}",
        "controls:",
        "  reuse: true # launches of controls that were measured here since the machine started count too",
        *budget_of(seen.seconds, LAUNCHES),
    ]
    return "\n".join(lines) + "\n"


def _ready_within(trial: Trial) -> list[str]:
    """Written where the usual time is too short."""
    needed = SLOWER * trial.start
    return [f"    ready_within: {needed:.0f} # it took {trial.start:.0f} s"] if needed > READY_WITHIN else []


def measures(study: Study, command: Command, beside: Sequence[str]) -> bool:
    """Whether a study that is there measures just this."""
    if len(study.workloads) != 1 or study.antagonists != list(beside):
        return False
    (own,) = study.workloads.values()
    had = (own.words, own.way, own.calls, own.step_line, own.ready_line, own.variables)
    asked = (command.way, command.calls, command.step_line, command.ready_line)
    wanted = (list(command.words), *asked, dict(command.variables))
    return had == wanted and command.cpus in (0, own.cores)
