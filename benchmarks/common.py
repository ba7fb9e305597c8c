"""What the benchmarks share: their command line, their time box, and the Markdown that they print."""

import argparse
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from benchmarks import machine, runs
from benchmarks.machine import ROOT as ROOT
from benchmarks.machine import Moment
from benchmarks.runs import Run, markdown_table
from benchmarks.verdicts import Finding
from castmates import project
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.linux.owner import folder_prefix
from castmates.pipeline.planned_sweep import let_jobs_find_us
from castmates.study.spec import PROTOCOL, Cohort
from castmates.workloads import environments, inputs
from castmates.workloads.native.build import compile_flags, compile_program, find_compiler


def run(main: Callable[[], None]) -> None:
    """Call `main` in the project's root; an error is a sentence, and a request to end lets everything be cleaned up."""
    os.chdir(ROOT)
    let_jobs_find_us()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        main()
    except CastmatesError as problem:
        sys.exit(f"benchmark: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)


def arguments_of(doc: str | None, minutes: float) -> argparse.ArgumentParser:
    """A parser with what every benchmark understands."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--minutes", type=float, default=minutes, help="time box; the first portion is always finished")
    parser.add_argument("--seed", type=int, default=20261121, help="seed of every random order and of the bootstrap")
    return parser


def say(message: str) -> None:
    """Show progress to the user."""
    print(f"{datetime.now():%H:%M:%S} {message}", file=sys.stderr, flush=True)


class TimeBox:
    """How much time is left, and whether a further portion will fit in."""

    def __init__(self, minutes: float) -> None:
        self.whole = minutes * 60
        self._begin = time.monotonic()
        self._took: list[float] = []

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begin

    def expected(self) -> int:
        """How many portions will fit in altogether; one before the first is done."""
        return max(1, int(self.whole * len(self._took) / sum(self._took))) if self._took else 1

    def portions(self) -> Iterator[int]:
        """Number portions from 0, until one as long as the longest so far would not fit in any more."""
        number = 0
        while number == 0 or self.spent + max(self._took) <= self.whole:
            begin = time.monotonic()
            yield number
            self._took.append(time.monotonic() - begin)
            number += 1


@contextmanager
def scratch(in_memory: bool = False) -> Iterator[Path]:
    """A folder that is removed at the end; if this process is killed, the next launch removes it."""
    place = "/dev/shm" if in_memory and os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=folder_prefix(), dir=place) as folder:
        yield Path(folder)


def compiled(source: Path, folder: Path, *flags: str) -> Path:
    """Compile a C program into a folder, as the kernels are compiled, with further flags."""
    compiler = find_compiler()
    if compiler is None:
        raise CastmatesError("There is no working C compiler: install one or set CC.")
    program = folder / source.stem
    compile_program(source, program, compiler, (*compile_flags(compiler), *flags))
    return program


@contextmanager
def beside(cpus: set[int], lead: set[int]) -> Iterator[None]:
    """Keep this process off the members' CPUs, or at least off the lead's, as the runner does."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, (allowed - cpus) or (allowed - lead) or allowed)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def build_environments(cohort: Cohort) -> None:
    """Build what the members run in and make what they read, unless it is there."""
    names = {member.environment for member in cohort.members if member.environment}
    for name in sorted({environments.NATIVE, *names}):
        environments.build(name, project.ENVIRONMENTS, cache_folder())
    for name in sorted({member.inputs for member in cohort.members if member.inputs}):
        inputs.build(name, project.ENVIRONMENTS, cache_folder())


class Report:
    """A benchmark's section and key figures; the machine is watched from the making of this until it is printed."""

    def __init__(self, title: str, module: str) -> None:
        self._title = title
        self._command = shlex.join(["python", "-m", f"benchmarks.{module}", *sys.argv[1:]])
        self._commit = machine.commit()
        self._begun, self._before = datetime.now().astimezone(), Moment.now()
        self._lines: list[str] = []
        self._findings: list[Finding] = []

    def text(self, *paragraphs: str) -> None:
        """Add paragraphs."""
        for paragraph in paragraphs:
            self._lines += ["", paragraph]

    def items(self, items: Sequence[str]) -> None:
        """Add a list."""
        self._lines += ["", *(f"- {item}" for item in items)]

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table."""
        self._lines += ["", *markdown_table(header, rows)]

    def found(self, *findings: Finding) -> None:
        """Add key figures; the result of each is at the end of the section."""
        self._findings += findings

    def run(self) -> Run:
        """What there is up to now."""
        after = Moment.now()
        minutes = round((datetime.now().astimezone() - self._begun).total_seconds() / 60, 2)
        return Run(
            title=self._title,
            command=self._command,
            begun=self._begun.replace(microsecond=0),
            minutes=minutes,
            commit=self._commit.words(),
            protocol=PROTOCOL,
            machine=machine.machine(),
            cpus=os.cpu_count() or 1,
            load=(self._before.load, after.load),
            steal=self._before.stolen_until(after),
            findings=tuple(self._findings),
            section=tuple(self._lines),
        )

    def print(self) -> None:
        """Print all of it on standard output, and write it to the requested file, if there is one."""
        run = self.run()
        print(run.markdown(), flush=True)
        if file := os.environ.get(runs.VARIABLE):
            runs.write(run, Path(file))


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent."""
    return f"{100 * share:.{digits}f} %"
