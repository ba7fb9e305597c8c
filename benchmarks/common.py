"""What the benchmarks share: their command line, their time box, and the Markdown that they print."""

import argparse
import os
import platform
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import castmates
from castmates import project
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.linux.owned_names import folder_prefix
from castmates.machine.facts import cpu_model, hypervisor_flag
from castmates.machine.probes import detect_virtualisation, our_git_state
from castmates.machine.topology import read_topology
from castmates.pipeline.jobs import let_jobs_find_us
from castmates.study.cpus import format_cpu_list
from castmates.study.spec import Company
from castmates.workloads import environments, inputs

ROOT = Path(__file__).parents[1]


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
    parser.add_argument("--seed", type=int, default=20261121, help="of every random order and of the bootstrap")
    return parser


def say(message: str) -> None:
    """Tell whoever waits."""
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
    """A folder that goes with us; if we are killed, the next block removes it."""
    place = "/dev/shm" if in_memory and os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=folder_prefix(), dir=place) as folder:
        yield Path(folder)


@contextmanager
def beside(cpus: set[int], lead: set[int]) -> Iterator[None]:
    """Keep this process off the members' CPUs, or at least off the lead's, as the runner does."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, (allowed - cpus) or (allowed - lead) or allowed)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def build_environments(company: Company) -> None:
    """Build what the members run in and make what they read, unless it is there."""
    names = {member.environment for member in company.members if member.environment}
    for name in sorted({environments.NATIVE, *names}):
        environments.build(name, project.ENVIRONMENTS, cache_folder())
    for name in sorted({member.inputs for member in company.members if member.inputs}):
        inputs.build(name, project.ENVIRONMENTS, cache_folder())


class Report:
    """A benchmark's Markdown; the machine is watched from the making of this until it is printed."""

    def __init__(self, title: str, module: str) -> None:
        command = shlex.join(["python", "-m", f"benchmarks.{module}", *sys.argv[1:]])
        self._head = [f"## {title}", "", f"`{command}`, {datetime.now():%Y-%m-%d %H:%M}, {machine()}."]
        self._lines: list[str] = []
        self._ticks = _ticks()
        self._begin = time.monotonic()

    def text(self, *paragraphs: str) -> None:
        """Add paragraphs."""
        for paragraph in paragraphs:
            self._lines += ["", paragraph]

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table."""
        self._lines += ["", *markdown_table(header, rows)]

    def print(self) -> None:
        """Print all of it on standard output."""
        print("\n".join([*self._head, "", self._meanwhile(), *self._lines]), flush=True)

    def _meanwhile(self) -> str:
        total, stolen = (after - before for after, before in zip(_ticks(), self._ticks, strict=True))
        share = f"{stolen / total:.2%}" if total else "unknown"
        minutes = (time.monotonic() - self._begin) / 60
        return f"It took {minutes:.1f} minutes; the hypervisor took {share} of the CPUs' time meanwhile."


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def machine() -> str:
    """The machine and the versions in one line."""
    topology, found = read_topology(), detect_virtualisation()
    kind = next((word for key in ("vm", "container") if (word := found.get(key)) and word != "none"), None)
    virtual = hypervisor_flag(Path("/"))
    where = f"virtual ({kind or 'a hypervisor'})" if virtual or kind else "not virtual, as far as can be seen"
    checkout = our_git_state()
    commit = f" (commit {checkout['described']})" if checkout else ""
    return (
        f"Castmates {castmates.__version__}{commit}; {cpu_model(Path('/')) or platform.machine()}, "
        f"{len(topology.cores())} cores usable (CPUs {format_cpu_list(topology.allowed)}), Linux {platform.release()}, "
        f"{where}"
    )


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent."""
    return f"{100 * share:.{digits}f} %"


def _ticks() -> tuple[int, int]:
    """All CPU time since boot, and what of it was stolen, in ticks."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    ticks = [int(word) for word in words]
    return sum(ticks), ticks[7] if len(ticks) > 7 else 0
