"""Tries a program whose steps are to be traced: can they be followed, how long do they take, what does it need?"""

import itertools
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import IO, Any

from castmates.errors import CastmatesError
from castmates.files import mapping_if_there
from castmates.linux.marks import in_child
from castmates.machine.lock import machine_lock
from castmates.pipeline.own_study import FirstRun
from castmates.protocols import Say
from castmates.runner.cleanup.warden import guarded
from castmates.runner.processes.launch import clean_environment
from castmates.workloads import environments, heartbeat
from castmates.workloads.attached.pulse import FRAMEWORKS
from castmates.workloads.attached.pulse import VARIABLE as STATUS

MEASURED, LONGEST_MEASURED = 20, 10.0  # steps after the warm-up that show how long one takes; seconds of them at most
SOON = (
    5.0  # seconds after which Python would have begun, and after which only imports may still go on without a framework
)
LOOPS = 60.0  # … after which a step would have come beside compiled functions that are called all the time, …
LONGEST = 600.0  # … or a first step at all
NEWS = 15.0  # seconds between two lines of progress
LOOK = 0.1
OURS = "castmates: "  # before our own lines in a program's output
MISSING = re.compile(r"No module named '(\w+)")
ENVIRONMENTS = {"tensorflow": "tfmodels", "tf_keras": "tfmodels", "torch": "torch", "jax": "jax"}  # that have a module
SHOWN = 200  # letters of a command
MANY_CALLS = 30  # of a compiled function that may be the step
TRACEBACK = 30  # lines of what a program wrote before it failed
NAMES = "TensorFlow, PyTorch or JAX"
PYTHON = re.compile(r"python[\d.]*")
UNREAD = re.compile(
    r"-(?![WX])[a-zA-Z]*[IES][a-zA-Z]*"
)  # options with which Python does not read PYTHONPATH, or our module


@dataclass(frozen=True)
class Wish:
    """A program, and how its steps are followed."""

    command: Sequence[str]
    name: str  # for people
    step_function: str = ""
    cpus: int = 1
    variables: Mapping[str, str] = field(default_factory=dict)
    path_prefix: Mapping[str, str] = field(default_factory=dict)  # of the environment that it runs in


@dataclass(frozen=True)
class Steps(FirstRun):
    """What one step takes, and what the program needs."""

    start: float  # seconds until it was ready
    framework: str  # that makes its steps: what `attach` is to be
    versions: Mapping[str, str]


def try_steps(wish: Wish, cache: Path, say: Say) -> Steps:
    """Run a program until it has made some steps, as a launch would run it, and end it."""
    if why := _unread(wish.command):
        raise CastmatesError(why)
    with (
        machine_lock(f"a first run of {wish.name}", say=say),
        guarded() as warden,
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as errors,
    ):
        warden.guard_path(Path(folder))
        seen = _Seen(wish, Path(folder), say)
        cpus = tuple(sorted(os.sched_getaffinity(0))[: wish.cpus])
        environment = clean_environment(wish.variables, cpus, Path(folder), wish.path_prefix)
        environment |= environments.variables(environment, wish.step_function, cache) | seen.channels
        process = _started(wish.command, environment, cpus, errors)
        try:
            warden.guard_process(process.pid)
            seen.watch(process)
        finally:
            _kill(process)
        if why := seen.failure(process, errors, environment["PATH"]):
            raise CastmatesError(why)
        return seen.steps()


class _Seen:
    """What a program shows of itself while it runs."""

    def __init__(self, wish: Wish, folder: Path, say: Say) -> None:
        self._wish, self._say = wish, say
        self._status, beats = folder / "status", folder / "beats"
        heartbeat.create(beats)
        self._reader = heartbeat.Reader(beats)
        self.channels = {heartbeat.VARIABLE: str(beats), STATUS: str(self._status)}
        self._begun = self._imported = time.monotonic()
        self._ready = 0.0
        self._ended = False

    @property
    def facts(self) -> dict[str, Any]:
        """What it has reported; nothing where it is not followed."""
        return mapping_if_there(self._status)

    def watch(self, process: "subprocess.Popen[bytes]") -> None:
        """Until enough is known, or nothing more is to be expected."""
        news = NEWS
        while process.poll() is None and not self._enough():
            time.sleep(LOOK)
            if time.monotonic() - self._begun > news:
                self._say(f"trying {self._wish.name}: {self._progress()} ({news:.0f} s)")
                news += NEWS
        self._ended = process.poll() is not None
        if self._reader.state is heartbeat.State.READY:
            self._ready = self._ready or time.monotonic()

    def _enough(self) -> bool:
        now = time.monotonic()
        if self._reader.state is heartbeat.State.READY:
            self._ready = self._ready or now
            return self._reader.head > MEASURED or (self._reader.head > 1 and now - self._ready > LONGEST_MEASURED)
        passed, facts = now - self._begun, self.facts
        if not _frameworks(facts):
            self._imported = now if facts.get("imports", False) else self._imported
            return now - self._imported > SOON
        return passed > LONGEST or (passed > LOOPS and not facts.get("steps") and bool(_candidates(facts)))

    def _progress(self) -> str:
        facts = self.facts
        return f"{_frameworks(facts) or 'it imports'}, {facts.get('steps', 0)} steps so far"

    def steps(self) -> Steps:
        """What they take."""
        times = [at_ns for at_ns, _ in self._reader.beats().records]
        seconds = median(after - before for before, after in pairwise(times)) / 1e9
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        return Steps(
            max(seconds, 1e-5),
            memory,
            self._ready - self._begun,
            self.facts["framework"],
            self.facts.get("versions", {}),
        )

    def failure(self, process: "subprocess.Popen[bytes]", errors: IO[bytes], path: str) -> str:
        """Why nothing can be traced, in a sentence; "" where it can."""
        facts, program, wanted = self.facts, _shown(self._wish.command), self._wish.step_function
        if self._reader.head > 1 and facts.get("traceable") and not self._ended:
            return ""
        errors.seek(0)
        words = errors.read().decode(errors="replace").strip().splitlines()
        theirs = [line for line in words if not line.startswith(OURS)]
        if self._ended and process.returncode:
            for line in theirs[-TRACEBACK:]:
                self._say(line)
            return _status(self._wish.command, process.returncode, theirs[-1] if theirs else "", path)
        if ours := next((line for line in words if line.startswith(f"{OURS}steps ")), ""):
            return f"{program}: {ours.removeprefix(OURS)}"
        instead = f"`castmates measure -- {program}` measures what any command loses."
        if not facts:
            how = "no Python program is seen to begin" + ("" if self._ended else f" within {SOON:.0f} s")
            return f"{program}: {how}, and only programs that train by {NAMES} can be traced; {instead}"
        if not (seen := _frameworks(facts)):
            how = "ended without importing" if self._ended else f"has done other things for {SOON:.0f} s than to import"
            return (
                f"{program} {how} {NAMES} (Python {facts['python']}), and only programs that train by one of these can "
                f"be traced; {instead}"
            )
        if self._reader.head > 1 and not facts.get("traceable"):
            return f"{program} trains by another framework than {NAMES}, which cannot be traced so far."
        return self._no_steps(facts, f"{program} ({seen})", wanted)

    def _no_steps(self, facts: Mapping[str, Any], program: str, wanted: str) -> str:
        steps, called = facts.get("steps", 0), _candidates(facts)
        what = f"calls of {wanted}" if wanted else "training steps"
        how = f"ended after {steps} {what}" if self._ended else f"has made {steps} {what} by now"
        if steps:
            return f"{program} {how}, and a launch needs hundreds: give it more data, or more epochs."
        if called:
            return (
                f"{program} {how}, but calls compiled functions: {', '.join(called)}. Name the step by --step-function."
            )
        return (
            f"{program} {how}, and a step is a call of Keras' train function (fit, train_on_batch), of an optimizer of "
            "torch.optim, or of a function that TensorFlow or JAX compiles: train by one of these, or have the program "
            "report its steps (castmates help add-a-workload)."
        )


def _unread(command: Sequence[str]) -> str:
    """Why the Python of a command cannot be followed at all, by its options; "" where it can."""
    python = next((at for at, word in enumerate(command) if PYTHON.fullmatch(Path(word).name)), None)
    if python is None:
        return ""
    options = itertools.takewhile(lambda word: word.startswith("-") and word not in ("-c", "-m"), command[python + 1 :])
    found = next((word for word in options if UNREAD.fullmatch(word)), "")
    return (
        f"{_shown(command)}: steps of a Python with {found} cannot be followed: leave that option out." if found else ""
    )


def _frameworks(facts: Mapping[str, Any]) -> str:
    """The frameworks that a program has imported, with their versions."""
    return ", ".join(f"{name} {facts[key]}" for key, name in FRAMEWORKS.items() if key in facts)


def _shown(command: Sequence[str]) -> str:
    """A command in a sentence: on one line, and not too long."""
    return textwrap.shorten(shlex.join(command), SHOWN, placeholder=" …")


def _candidates(facts: Mapping[str, Any]) -> list[str]:
    """Functions that may be the step, those that are called most first."""
    calls = sorted(facts.get("calls", {}).items(), key=lambda each: -each[1])
    return [f"{name} ({count} times)" for name, count in calls if count >= MANY_CALLS][:5]


def _status(command: Sequence[str], status: int, words: str, path: str) -> str:
    said = f': it wrote "{words}"' if words else ""
    sentence = f"{command[0]} ended with status {status}{said}; only a program that trains can be traced."
    missing = MISSING.search(words)
    if missing is None:
        return sentence
    where = shutil.which(command[0], path=path) or command[0]
    ours = ENVIRONMENTS.get(missing[1])
    return f"{sentence} {command[0]} is {where}: name the interpreter of your own environment in the command" + (
        f", or take --environment {ours}." if ours and f"/{ours}-" not in where else "."
    )


def _started(
    command: Sequence[str], environment: Mapping[str, str], cpus: Sequence[int], errors: IO[bytes]
) -> "subprocess.Popen[bytes]":
    program = shutil.which(command[0], path=environment["PATH"])
    try:
        process = subprocess.Popen(
            [program or command[0], *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=dict(environment),
            process_group=0,
            preexec_fn=in_child(),
        )
    except OSError as problem:
        raise CastmatesError(f"{command[0]} cannot be started: {problem.strerror}.") from None
    with suppress(ProcessLookupError):  # it has ended already
        os.sched_setaffinity(process.pid, cpus)
    return process


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
