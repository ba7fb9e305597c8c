"""How long tables, figures and page of a large study take, and how much memory, as the study doubles.

The study is generated (benchmarks/scale_study.py): every table is from chance, nothing in it was measured. With
--against, the tree of another commit analyses the same launches in turns with this one.
"""

import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import log2
from pathlib import Path
from statistics import median

import psutil

from benchmarks import verdicts
from benchmarks.common import Report, arguments_of, run, say, scratch
from benchmarks.launches import environment_of
from benchmarks.machine import ROOT
from benchmarks.scale_study import NAME, Scale, make_plan, make_study, part_of_study
from benchmarks.verdicts import Aim, Finding
from castmates.errors import CastmatesError
from castmates.report.figures.index import figures_of
from castmates.results.bundle_names import bundles
from castmates.results.folder import StudyFolder
from castmates.study.spec import Plan

CORES = 2
AIM_SECONDS, AIM_GB = Aim(most=40.0), Aim(most=2.0)  # of the largest study
AIM_CPU = Aim(most=5.0)  # seconds, of a study of a few launches
FEW = 100
LOOK = 0.25  # seconds
AIM_GROWTH = Aim(most=2.0)  # twice the launches, twice the time; the start of each process is the same
GATHERING, ANALYSIS = "bundles", "analysis"


@dataclass(frozen=True)
class Step:
    """A process of the workflow."""

    part: str
    name: str
    seconds: float
    cpu_seconds: float
    most_bytes: int


@dataclass(frozen=True)
class Run:
    """One study, analysed and drawn."""

    launches: int
    steps: tuple[Step, ...]
    seconds: float  # of tables, figures and page, so many processes at a time
    bundles_seconds: (
        float  # of gathering, which a sweep does while it measures; nothing in a repetition, which has them
    )

    @property
    def cpu_seconds(self) -> float:
        """Of tables, figures and page."""
        return sum(step.cpu_seconds for step in self.steps if step.part != GATHERING)

    @property
    def gigabytes(self) -> float:
        """The most that processes which may run at the same time can have taken together."""
        gathering = sorted((step.most_bytes for step in self.steps if step.part == GATHERING), reverse=True)
        return max(sum(gathering[:CORES]), *(step.most_bytes for step in self.steps if step.part != GATHERING)) / 1e9


def main() -> None:
    """Generate, analyse, draw, report."""
    parser = arguments_of(__doc__, minutes=30)
    parser.add_argument("--launches", type=int, nargs="+", default=[1000, 10000], help="studies, each of so many")
    parser.add_argument("--mixes", type=int, default=40, help="leads beside antagonists, each also under partitions")
    parser.add_argument("--keep", type=Path, help="a folder for the generated studies; used again if it is there")
    parser.add_argument("--times", type=int, default=3, help="that each study is analysed and drawn, in turns")
    parser.add_argument("--against", metavar="COMMIT", help="a commit whose tree analyses them too")
    given = parser.parse_args()
    with scratch() as folder:
        home = (given.keep or folder).resolve()
        report = Report("Scale: a study of many launches", "scale")
        plan = _generated(home, Scale(max(given.launches), given.mixes))
        trees = [ROOT, *([export(given.against, folder / "tree")] if given.against else [])]
        rounds: list[list[list[Run]]] = [[] for _ in trees]
        for _ in range(given.times):
            for tree, runs in zip(trees, rounds, strict=True):
                runs.append([_analysed(tree, plan, home, launches) for launches in sorted(given.launches)])
    describe(report, plan, rounds[0])
    report.found(*findings(rounds[0]))
    for before in rounds[1:]:
        report.text(f"The tree of commit {given.against}, in turns with this one:")
        report.table(HEADER, [_row(runs) for runs in zip(*before, strict=True)])
        report.found(*compared(rounds[0], before))
    report.print()


def _generated(home: Path, scale: Scale) -> Plan:
    plan = make_plan(scale, home)
    study = (home / "study.yaml").read_text()
    # So that counters, Top-Down, layers and phases are drawn too: a modelled study has none of these figures.
    (home / "drawn.yaml").write_text(
        study.replace("platform: modelled", "platform: measured") + "counters: {profile: 2}\n"
    )
    if not (home / NAME / "plan.json").exists():
        begin = time.monotonic()
        make_study(plan, home / NAME)
        say(f"{len(plan.launches)} launches generated in {time.monotonic() - begin:.0f} s")
    return plan


def _analysed(tree: Path, plan: Plan, home: Path, launches: int) -> Run:
    results = home / ("this" if tree == ROOT else "before") / str(launches) / NAME
    if not results.exists():
        part_of_study(plan, home / NAME, launches, results)
    begin = time.monotonic()
    # What the rules of the workflow run, as `--cores 2` would: a bundle is gathered when its launches are measured.
    steps = [] if (results / "bundles").exists() else _in_turns(tree, _gatherings(results))
    gathered = time.monotonic()
    shutil.rmtree(results / "tables", ignore_errors=True)
    for words in _analyses(tree, results, home / "drawn.yaml", figures_of(plan, StudyFolder(results))):
        steps += _in_turns(tree, [(ANALYSIS, words[0], words)])
    seconds = time.monotonic() - gathered
    say(f"{tree.name}, {launches} launches: {seconds:.1f} s, and {gathered - begin:.1f} s for the bundles")
    return Run(launches, tuple(steps), seconds, gathered - begin)


def _analyses(tree: Path, results: Path, study: Path, figures: Sequence[str]) -> list[list[str]]:
    """The processes that make tables, figures and page, one after the other."""
    read = ["--study", str(study), "--results", str(results)]
    jobs, plan, tables = ["--jobs", str(CORES)], ["--plan", f"{results}/plan.json"], ["--output", f"{results}/tables"]
    if (tree / "scripts/analyse.py").exists():
        return [["analyse", *read, *jobs]]
    return [
        ["estimate_effects", *plan, "--machine", f"{results}/machine.json", "--margin", "0.02", *jobs, *tables],
        ["recommend_partitions", *plan, "--lead-loss", "0", *tables],
        ["draw_figures", *figures, *jobs, *read, "--output", f"{results}/figures"],
        ["write_report", *read, "--output", f"{results}/report/index.html"],
    ]


def _gatherings(results: Path) -> list[tuple[str, str, list[str]]]:
    def words(name: str) -> list[str]:
        output = results / "bundles" / name
        return ["gather_launches", name, "--plan", str(results / "plan.json"), "--output", str(output)]

    names = bundles(
        f"{file.parent.parent.name}/{file.parent.name}" for file in results.glob("launches/*/*/launch.json")
    )
    return [(GATHERING, name, words(name)) for name in names]


def _in_turns(tree: Path, jobs: Sequence[tuple[str, str, list[str]]]) -> list[Step]:
    with ThreadPoolExecutor(CORES) as threads:  # each waits for a process
        return list(threads.map(lambda job: _step(tree, *job), jobs))


def _step(tree: Path, part: str, name: str, words: Sequence[str]) -> Step:
    """Run one script of the workflow."""
    script, *arguments = words
    begin = time.monotonic()
    whole = [sys.executable, f"scripts/{script}.py", *arguments]
    process = subprocess.Popen(
        whole,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=tree,
        env=environment_of(tree),
    )
    most, over = [0], threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, most, over))
    watcher.start()
    assert process.stderr is not None
    with process.stderr as errors:
        said = errors.read().decode(errors="replace")
    over.set()
    watcher.join()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise CastmatesError(
            f"scripts/{script}.py failed for {name}: {said.strip().splitlines()[-1] if said.strip() else status}"
        )
    return Step(part, name, time.monotonic() - begin, _cpu(usage), max(most[0], usage.ru_maxrss * 1024))


def _watch(pid: int, most: list[int], over: threading.Event) -> None:
    """Keep the most memory that a process and its children are seen to take together; what they share counts once."""
    while not over.wait(LOOK):
        try:
            whole = psutil.Process(pid)
            taken = sum(one.memory_full_info().pss for one in (whole, *whole.children(recursive=True)))
        except psutil.Error:
            continue  # one of them has just ended
        most[0] = max(most[0], taken)


def _cpu(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def describe(report: Report, plan: Plan, rounds: Sequence[Sequence[Run]]) -> None:
    """A row for each size, and the dearest processes of the largest."""
    windows = len(plan.launches[0].cohort.scenes) * plan.launches[0].design.rounds
    cohorts = {launch.cohort.id for launch in plan.launches}
    report.text(
        f"A generated study of {len(cohorts)} cohorts and {len(plan.mixes)} mixes (each partition is one), "
        f"{windows} windows in each launch, with 9 events, Top-Down, phases and layers; nothing in it was measured. "
        f"Each script runs as its rule would on {CORES} cores, one after the other, bundles {CORES} at a time and only "
        f"in the first of {len(rounds)} rounds over all sizes. Seconds are the medians of the rounds. Memory: the most "
        f"that was seen of a script and its processes together, every {LOOK:g} s."
    )
    report.table(HEADER, [_row(runs) for runs in zip(*rounds, strict=True)])
    largest = rounds[0][-1]
    report.text(f"The dearest processes at {largest.launches} launches, in the first round:")
    rows = [
        [f"{step.part}: {step.name}", f"{step.seconds:.1f}", f"{step.cpu_seconds:.1f}", f"{step.most_bytes / 1e9:.2f}"]
        for step in sorted(largest.steps, key=lambda step: -step.cpu_seconds)[:8]
    ]
    report.table(["process", "s", "CPU s", "memory GB"], rows)


HEADER = ["launches", "bundles s, while measured", "tables to page s", "CPU s", "memory GB"]


def compared(rounds: Sequence[Sequence[Run]], before: Sequence[Sequence[Run]]) -> Iterator[Finding]:
    """What each study takes, over what it took in the other tree."""
    for place, first in enumerate(rounds[0]):
        pairs = [(new[place], old[place]) for new, old in zip(rounds, before, strict=True)]
        what = f"of {first.launches} launches, over the tree before"
        yield verdicts.ratio(f"CPU time {what}", [new.cpu_seconds / old.cpu_seconds for new, old in pairs], "rounds")
        yield verdicts.ratio(f"memory {what}", [new.gigabytes / old.gigabytes for new, old in pairs], "rounds")


def findings(rounds: Sequence[Sequence[Run]]) -> Iterator[Finding]:
    """What the largest study takes, and what each further launch does, over rounds."""
    largest = rounds[0][-1].launches
    seconds, memory = [runs[-1].seconds for runs in rounds], [runs[-1].gigabytes for runs in rounds]
    yield verdicts.mean(f"tables to page of {largest} launches on {CORES} cores", seconds, "s", "rounds", AIM_SECONDS)
    yield verdicts.mean(f"memory for {largest} launches on {CORES} cores", memory, "GB", "rounds", AIM_GB)
    if (fewest := rounds[0][0].launches) <= FEW:
        cpu = [runs[0].cpu_seconds for runs in rounds]
        yield verdicts.mean(f"CPU time from tables to page of {fewest} launches", cpu, "s", "rounds", AIM_CPU)
    for place in range(1, len(rounds[0])):
        before, after = rounds[0][place - 1].launches, rounds[0][place].launches
        more = [1e3 * (runs[place].seconds - runs[place - 1].seconds) / (after - before) for runs in rounds]
        yield verdicts.mean(f"each launch between {before} and {after}", more, "ms", "rounds")
        grown = [_growth(runs[place], runs[place - 1]) for runs in rounds]
        what = f"time for twice the launches, between {before} and {after}"
        yield verdicts.ratio(what, grown, "rounds", AIM_GROWTH)


def _row(runs: Sequence[Run]) -> list[str]:
    """The rounds of one size."""
    seconds, cpu = median(run.seconds for run in runs), median(run.cpu_seconds for run in runs)
    return [
        str(runs[0].launches),
        *(f"{number:.1f}" for number in (runs[0].bundles_seconds, seconds, cpu)),
        f"{max(run.gigabytes for run in runs):.2f}",
    ]


def _growth(run: Run, before: Run) -> float:
    """By how much the time grew, as if there had been twice the launches."""
    return float((run.seconds / before.seconds) ** (1 / log2(run.launches / before.launches)))


def export(commit: str, folder: Path) -> Path:
    """Write the files of a commit into a folder."""
    folder.mkdir(parents=True)
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False)
    if packed.returncode != 0:
        said = packed.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise CastmatesError(
            f"the tree of commit {commit} is not available ({said[-1]}): a checkout with git is needed."
        )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder


if __name__ == "__main__":
    run(main)
