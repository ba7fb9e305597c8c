"""How long nobody runs between two runs of a finite command: the next one prepared, against a plain restart.

The commands run on one CPU beside a busy lead on another, kept by Castmates' own keeper in each of its three ways,
taken in turns.
"""

import argparse
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from benchmarks.common import Report, run
from castmates.errors import CastmatesError
from castmates.runner.processes.restarts import Restarts
from castmates.workloads import heartbeat
from castmates.workloads.native import build as native

AIM = 5.0  # ms; 95 % of the gaps that the keeper sees are to be shorter where the next run is prepared
ROUNDS = 5
WAYS = {"exec": "waits after exec", "fork": "waits before exec", "no": "plain restart"}
SCRIPT = "import time; a = time.monotonic_ns(); import sys, struct; sum(range(200000)); "
SCRIPT += "open(sys.argv[1], 'ab').write(struct.pack('QQ', a, time.monotonic_ns()))"
PREPARED = ("exec", "fork")
PLAIN_RUNS = 200  # of `true`, in each round

Times = list[float]  # milliseconds


@dataclass
class Gaps:
    """What lay between two runs: as the keeper saw it, and from the end of one main to the begin of the next."""

    keeper: Times = field(default_factory=list)
    program: Times = field(default_factory=list)


@dataclass(frozen=True)
class Bench:
    """Where things are and on which CPU the commands run."""

    folder: Path
    cpu: int

    def run(self, way: str, command: list[str], runs: int) -> Restarts:
        """Let the keeper run a command so many times."""
        for name in ("beats", "restarts"):
            (self.folder / name).unlink(missing_ok=True)
        heartbeat.create(self.folder / "beats")
        restarts = Restarts.create(self.folder / "restarts")
        subprocess.run(
            [str(self.folder / "loop"), "--ahead", way, "--units", str(runs), "--", *command],
            env=os.environ | {heartbeat.VARIABLE: str(self.folder / "beats")} | restarts.variables,
            preexec_fn=lambda: os.sched_setaffinity(0, {self.cpu}),
            check=True,
        )
        restarts.read()
        return restarts

    def gaps(self, way: str, command: list[str], runs: int, into: Gaps) -> None:
        """Add the gaps between the runs of a command that leaves its stamps in a file."""
        stamps = self.folder / "stamps"
        stamps.write_bytes(b"")
        restarts = self.run(way, [*command, str(stamps)], runs)
        into.keeper += [(end - begin) / 1e6 for begin, end in restarts.inside(0, time.monotonic_ns())]
        times = list(struct.iter_unpack("QQ", stamps.read_bytes()))
        into.program += [(after[0] - before[1]) / 1e6 for before, after in pairwise(times)]


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    report = Report("The gap between two runs of a finite command", "restart_gap")
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise CastmatesError("The restart gap is measured beside a lead: two CPUs are needed.")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="castmates-gap-", dir=memory) as directory:
        bench = Bench(Path(directory), cpus[-1])
        compile_programs(bench.folder)
        commands = {
            "a native program": ([str(bench.folder / "restart_gap")], 31),
            "python -c": ([sys.executable, "-S", "-c", SCRIPT], 11),
        }
        with lead(bench.folder, cpus[0]):
            found = {name: gaps(bench, *command) for name, command in commands.items()}
            runs = throughput(bench)
    tell_gaps(found, report)
    tell_throughput(runs, report)
    tell_verdict(found, report)
    report.print()


def compile_programs(folder: Path) -> None:
    """Compile the keeper, the lead and the finite program."""
    compiler = native.find_compiler()
    if compiler is None:
        raise CastmatesError("There is no working C compiler: install one or set CC.")
    for source in (native.SOURCES / "loop.c", native.SOURCES / "stream.c", Path(__file__).with_suffix(".c")):
        native.compile_program(source, folder / source.stem, compiler, native.compile_flags(compiler))


@contextmanager
def lead(folder: Path, cpu: int) -> Iterator[None]:
    """Keep the first CPU and the memory busy."""
    process = subprocess.Popen([str(folder / "stream")], preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def gaps(bench: Bench, command: list[str], runs: int) -> dict[str, Gaps]:
    """The gaps of a command by way, the ways in turns."""
    found = {way: Gaps() for way in WAYS}
    for number in range(ROUNDS):
        for way in in_turns(number):
            bench.gaps(way, command, runs, found[way])
    return found


def throughput(bench: Bench) -> dict[str, Times]:
    """Runs per second of the shortest command there is, by way and round."""
    command = [shutil.which("true") or "true"]
    found: dict[str, Times] = {way: [] for way in WAYS}
    for number in range(ROUNDS):
        for way in in_turns(number):
            begin = time.perf_counter()
            bench.run(way, command, PLAIN_RUNS)
            found[way].append(PLAIN_RUNS / (time.perf_counter() - begin))
    return found


def in_turns(number: int) -> list[str]:
    """The ways, each round beginning with another."""
    ways = list(WAYS)
    return ways[number % len(ways) :] + ways[: number % len(ways)]


def tell_gaps(found: dict[str, dict[str, Gaps]], report: Report) -> None:
    """Two rows per command and way: what the keeper saw, and what the programs themselves saw."""
    report.text("Gap in ms; ratio = median of the plain restart / median of this way.")
    rows = []
    for name, ways in found.items():
        for label, pick in (("exit seen to resumed", "keeper"), ("end of main to main", "program")):
            plain = statistics.median(getattr(ways["no"], pick))
            for way, words in WAYS.items():
                times = getattr(ways[way], pick)
                median = statistics.median(times)
                figures = [f"{one:.3f}" for one in (median, p95(times), max(times))]
                rows.append([name, words, label, str(len(times)), *figures, f"{plain / median:.1f}"])
    report.table(["command", "the next run", "from, to", "restarts", "median", "p95", "max", "ratio"], rows)


def tell_throughput(found: dict[str, Times], report: Report) -> None:
    """How many of the shortest runs get done, against the plain restart of the same round."""
    report.text(f"Runs of `true` per second, median of {ROUNDS} rounds; ratio = median of the ratios within a round.")
    rows = []
    for way, words in WAYS.items():
        ratios = [ours / plain for ours, plain in zip(found[way], found["no"], strict=True)]
        rows.append([words, f"{statistics.median(found[way]):.0f}", f"{statistics.median(ratios):.2f}"])
    report.table(["the next run", "runs/s", "ratio"], rows)


def tell_verdict(found: dict[str, dict[str, Gaps]], report: Report) -> None:
    """The aim is for the ways that prepare the next run."""
    worst, name, way = max((p95(ways[way].keeper), name, way) for name, ways in found.items() for way in PREPARED)
    word = "met" if worst < AIM else "missed"
    report.text(
        f"**Verdict.** With the next run prepared, 95 % of the gaps from exit to resume take no more than "
        f"{worst:.3f} ms at worst ({name}, {WAYS[way]}): the aim of {AIM:g} ms is {word}."
    )


def p95(times: Times) -> float:
    """The time that 95 % of them do not exceed."""
    return sorted(times)[int(0.95 * len(times))]


if __name__ == "__main__":
    run(main)
