"""The gap between two runs of a finite command: the next one prepared, against a plain restart.

The commands run on one CPU beside a busy lead on another, kept by Castmates' own keeper in each of its three ways,
taken in turns.
"""

import argparse
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks import verdicts
from benchmarks.common import Report, compiled, run
from benchmarks.verdicts import Aim, Finding
from castmates.errors import CastmatesError
from castmates.runner.processes.restarts import Restarts
from castmates.workloads import heartbeat
from castmates.workloads.native import build as native

AIM = Aim(most=5.0)  # ms; 95 % of the gaps are to be shorter where the next run is prepared
SHORTER = Aim(most=1.0)  # who prepares the next run wants a shorter gap
ROUNDS = 8
WAYS = {"exec": "waits after exec", "fork": "waits before exec", "no": "plain restart"}
SCRIPT = "import time; a = time.monotonic_ns(); import sys, struct; sum(range(200000)); "
SCRIPT += "open(sys.argv[1], 'ab').write(struct.pack('QQ', a, time.monotonic_ns()))"
PREPARED = ("exec", "fork")
PLAIN_RUNS = 200  # of `true`, in each round

Times = list[float]  # milliseconds


@dataclass(frozen=True)
class Gaps:
    """What lay between two runs: as the keeper saw it, and from the end of one main to the begin of the next."""

    keeper: Times
    program: Times


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

    def gaps(self, way: str, command: list[str], runs: int) -> Gaps:
        """The gaps between the runs of a command that leaves its stamps in a file."""
        stamps = self.folder / "stamps"
        stamps.write_bytes(b"")
        restarts = self.run(way, [*command, str(stamps)], runs)
        keeper = [(end - begin) / 1e6 for begin, end in restarts.inside(0, time.monotonic_ns())]
        times = list(struct.iter_unpack("QQ", stamps.read_bytes()))
        return Gaps(keeper, [(after[0] - before[1]) / 1e6 for before, after in pairwise(times)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261122, help="of the order of the ways in each round")
    chance = random.Random(parser.parse_args().seed)
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
            "python -c": ([sys.executable, "-S", "-c", SCRIPT], 21),
        }
        with lead(bench.folder, cpus[0]):
            found = {name: gaps(bench, chance, *command) for name, command in commands.items()}
            runs = throughput(bench, chance)
    describe_gaps(found, report)
    for name, ways in found.items():
        report.found(*findings(name, ways))
    describe_throughput(runs, report)
    report.print()


def compile_programs(folder: Path) -> None:
    """Compile the keeper, the lead and the finite program."""
    for source in (native.SOURCES / "loop.c", native.SOURCES / "stream.c", Path(__file__).with_suffix(".c")):
        compiled(source, folder)


@contextmanager
def lead(folder: Path, cpu: int) -> Iterator[None]:
    """Keep the first CPU and the memory busy."""
    process = subprocess.Popen([str(folder / "stream")], preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def gaps(bench: Bench, chance: random.Random, command: list[str], runs: int) -> dict[str, list[Gaps]]:
    """The gaps of a command by way and round, the ways in turns."""
    found: dict[str, list[Gaps]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in chance.sample(list(WAYS), len(WAYS)):
            found[way].append(bench.gaps(way, command, runs))
    return found


def throughput(bench: Bench, chance: random.Random) -> dict[str, Times]:
    """Runs per second of the shortest command there is, by way and round."""
    command = [shutil.which("true") or "true"]
    found: dict[str, Times] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in chance.sample(list(WAYS), len(WAYS)):
            begin = time.perf_counter()
            bench.run(way, command, PLAIN_RUNS)
            found[way].append(PLAIN_RUNS / (time.perf_counter() - begin))
    return found


def describe_gaps(found: Mapping[str, Mapping[str, Sequence[Gaps]]], report: Report) -> None:
    """Two rows per command and way: what the keeper saw, and what the programs themselves saw."""
    report.text(
        f"Gap in ms over all of {ROUNDS} rounds, in which the ways took turns in random order. `End of main to main` "
        "is what users wait, and what is judged."
    )
    rows = []
    for name, ways in found.items():
        for label, pick in (("exit seen to resumed", "keeper"), ("end of main to main", "program")):
            for way, words in WAYS.items():
                times = [ms for one in ways[way] for ms in getattr(one, pick)]
                figures = [f"{one:.3f}" for one in (statistics.median(times), p95(times), max(times))]
                rows.append([name, words, label, str(len(times)), *figures])
    report.table(["command", "the next run", "from, to", "restarts", "median", "p95", "max"], rows)


def findings(name: str, ways: Mapping[str, Sequence[Gaps]]) -> Iterator[Finding]:
    """How each prepared way does against the plain restart of the same round, and against the aim."""
    plain = [statistics.median(one.program) for one in ways["no"]]
    for way in PREPARED:
        ours = [statistics.median(one.program) for one in ways[way]]
        shares = [mine / theirs for mine, theirs in zip(ours, plain, strict=True)]
        what = f"{name}, {WAYS[way]}"
        yield verdicts.ratio(f"{what}: gap from main to main, of a plain restart's", shares, "rounds", SHORTER)
        worst = [p95(one.program) for one in ways[way]]
        yield verdicts.mean(f"{what}: 95 % of the gaps from main to main are shorter than", worst, "ms", "rounds", AIM)


def describe_throughput(found: Mapping[str, Times], report: Report) -> None:
    """How many of the shortest runs get done, against the plain restart of the same round."""
    report.text(f"Runs of `true` per second, median of {ROUNDS} rounds.")
    report.table(
        ["the next run", "runs/s"], [[words, f"{statistics.median(found[way]):.0f}"] for way, words in WAYS.items()]
    )
    for way in PREPARED:
        ratios = [ours / plain for ours, plain in zip(found[way], found["no"], strict=True)]
        report.found(verdicts.ratio(f"runs of `true` per second, {WAYS[way]}, of a plain restart's", ratios, "rounds"))


def p95(times: Times) -> float:
    """The time that 95 % of them do not exceed."""
    return sorted(times)[int(0.95 * len(times))]


if __name__ == "__main__":
    run(main)
