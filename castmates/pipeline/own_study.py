"""Writes study files: one to begin with, and one that measures a command as it was typed."""

import math
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.files import replace_text, written_text
from castmates.linux.marks import in_child
from castmates.machine.lock import machine_lock
from castmates.results.find import is_taken
from castmates.results.named import OWN_STUDY
from castmates.runner.cleanup.warden import guarded
from castmates.study.model import Study, Workload
from castmates.study.reading import did_you_mean, read_keys

STARTER = Path(__file__).with_name("starter.yaml")
STUDIES = Path("studies")  # that were written for a command
LONGEST_RUN = 120.0  # seconds of a command that is run again and again
AT_ONCE = 10.0  # a run that takes less is tried twice: the first one reads its files from the disk
WINDOW, MOST_RUNS, FEWEST_RUNS = 0.5, 10, 4  # seconds of a scene in a round, and runs that should fit into them
LONGEST_WINDOW = 600.0  # that a study may have
LEAST_UNITS = 2  # that its schema allows in a window
ROOM = 1.5  # times the memory that was seen
LAUNCHES, ROUNDS = 6, 3


@dataclass(frozen=True)
class FirstRun:
    """What one run of a command takes."""

    seconds: float
    bytes: int  # of memory


def write_starter(folder: Path) -> Path:
    """Write a commented study into a folder; one that is there already stays as it is."""
    file = folder / OWN_STUDY
    if file.exists():
        raise CastmatesError(f"{file} is there already, and stays as it is; for another one: castmates init FOLDER.")
    schema = Path(os.path.relpath(shipped.schema("study"), folder))
    modeline = f"# yaml-language-server: $schema={schema}\n"  # editors then complete and check the keys
    replace_text(file, modeline + STARTER.read_text(encoding="utf-8"))
    return file


def study_of(command: Sequence[str], beside: Sequence[str], name: str, known: Mapping[str, Workload]) -> Path:
    """The study that measures a command beside these workloads: the one that was written before, or a new one."""
    refuse_unknown(beside, known)
    return one_of(
        name_of([name] if name else command),
        lambda study: _measures(study, command, beside),
        lambda own: text_of(own, command, beside, try_command(command), known),
    )


def one_of(base: str, is_it: Callable[[Study], bool], text_of: Callable[[str], str]) -> Path:
    """The study of this name, or of this name and a number, that is the wanted one; or a new one with a free name."""
    for number in range(1, 1000):
        file = STUDIES / f"{base}{'' if number == 1 else f'-{number}'}.yaml"
        if file.exists():
            if is_it(read_keys(Study, written_text(file, "the study"), str(file))):
                return file
        elif not is_taken(file.stem):
            text = text_of(file.stem)
            read_keys(Study, text, str(file))  # a study that nobody can read is not left behind
            replace_text(file, text)
            return file
    raise CastmatesError(f"{STUDIES} has a thousand studies of {base}; give another one with --name.")


def name_of(command: Sequence[str]) -> str:
    """The program's name, as a study may have it."""
    written = re.sub(r"[^a-z0-9._-]+", "-", Path(command[0]).name.lower())
    return written.lstrip("._-")[:40] or "program"


def try_command(command: Sequence[str]) -> FirstRun:
    """Run a command to its end, as it will be run: nothing to read, and its output dropped."""
    trial = _run(command)
    return _run(command) if trial.seconds < AT_ONCE else trial


def text_of(
    name: str, command: Sequence[str], beside: Sequence[str], trial: FirstRun, known: Mapping[str, Workload]
) -> str:
    """The study as YAML: windows of as many runs as are good to have, as long as those take."""
    workload = f"{name}-own" if name in known else name
    lines = [
        "# Written by `castmates measure`; change it as you like, and go on with `castmates sweep`.",
        f"name: {scalar(name)}",
        f"title: {scalar(f'What {name} loses beside ' + ' and '.join(beside))}",
        "workloads:",
        f"  {scalar(workload)}:",
        f"    command: {in_a_line(command)}",
        f"    progress: runs # one run took {trial.seconds:.3g} s",
        f"    memory: {memory_of(trial)}",
        f"leads: {in_a_line([workload])}",
        f"antagonists: {in_a_line(beside)}",
        *budget_of(trial.seconds, LAUNCHES),
    ]
    return "\n".join(lines) + "\n"


def memory_of(trial: FirstRun) -> str:
    """What a program takes of the machine's memory, with some room."""
    return f"{max(10, math.ceil(ROOM * trial.bytes / 1e6))} MB"


def budget_of(seconds: float, launches: int) -> list[str]:
    """The budget as lines of YAML: windows that hold as many units of so many seconds as are good to have."""
    fitting = math.floor(LONGEST_WINDOW / seconds)
    if fitting < LEAST_UNITS:
        raise CastmatesError(
            f"one run or step takes {seconds:.0f} s: a window of {LONGEST_WINDOW:.0f} s, which is the longest, "
            f"would hold fewer than {LEAST_UNITS}. Give it less to do."
        )
    units = min(fitting, max(FEWEST_RUNS, min(MOST_RUNS, math.floor(WINDOW / seconds))))
    window = min(LONGEST_WINDOW, max(WINDOW, round(units * seconds, 2)))
    return [
        "budget:",
        f"  launches: {launches}",
        f"  rounds: {ROUNDS}",
        f"  window: {window:g}",
        f"  steps: {units}",
        f"  longest_window: {min(LONGEST_WINDOW, max(5.0, 2 * window)):g}",
    ]


def in_a_line(words: Sequence[str]) -> str:
    """A list as YAML, with quotes where a word would be read as something else: true, 007."""
    return yaml.safe_dump(list(words), default_flow_style=True, width=math.inf, allow_unicode=True).strip()


def scalar(text: str) -> str:
    """A text as YAML."""
    return in_a_line([text])[1:-1]


def refuse_unknown(beside: Sequence[str], known: Mapping[str, Workload]) -> None:
    """Refuse antagonists that the catalogue does not have."""
    if not beside:
        raise CastmatesError("--beside names nothing; give one or more workloads, as in --beside stream,chase.")
    for name in beside:
        if name not in known:
            raise CastmatesError(
                f"--beside: '{name}' is not in the catalogue{did_you_mean(name, known)} "
                "(`castmates workloads` lists what there is)."
            )


def _measures(study: Study, command: Sequence[str], beside: Sequence[str]) -> bool:
    """Whether a study that is there measures just this: runs of the command, and not steps."""
    programs = [(workload.words, workload.progress) for workload in study.workloads.values()]
    return programs == [(list(command), "runs")] and study.antagonists == list(beside)


def _run(command: Sequence[str]) -> FirstRun:
    what = f"a first run of {command[0]}"
    with machine_lock(what), guarded() as warden, tempfile.TemporaryFile() as errors:
        begun = time.monotonic()  # not before: another sweep may have had the machine for minutes
        try:
            process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, process_group=0,
                preexec_fn=in_child(),
            )  # fmt: skip
        except OSError as problem:
            raise CastmatesError(f"{command[0]} cannot be started: {problem.strerror}.") from None
        warden.guard_process(process.pid)
        late = threading.Timer(LONGEST_RUN, _kill, [process])
        late.start()
        try:
            status = process.wait()
        finally:
            late.cancel()
            _kill(process)
        seconds = time.monotonic() - begun
        if status:
            errors.seek(0)
            raise CastmatesError(_why(command, status, seconds, last_line(errors.read())))
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # the warden's is not in it: it goes on
    return FirstRun(max(seconds, 1e-4), memory)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End whatever is left of a run."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _why(command: Sequence[str], status: int, seconds: float, words: str) -> str:
    if seconds >= LONGEST_RUN:
        return (
            f"{command[0]} has not ended after {LONGEST_RUN:.0f} s: a command that is measured is run again and again. "
            "For a program that goes on, write a study in which it reports its steps (castmates help "
            "add-a-workload), or "
            "take `castmates profile` if it trains by TensorFlow."
        )
    said = f': it wrote "{words}"' if words else ""
    return f"{command[0]} ended with status {status}{said}; only a command that ends with status 0 can be measured."


def last_line(output: bytes) -> str:
    """The last line that a program wrote."""
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
