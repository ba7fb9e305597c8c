"""What a sweep of thousands of launches costs before anything is measured: start, graph and planning again.

Snakemake looks at a modelled study (`--dry-run`) of which nothing, or every launch, is measured, and beside it at a
plain workflow of as many jobs: each has one input, one output and a log, and one rule wants them all. What a further
launch costs more there than a further empty job is Castmates' own.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks import verdicts
from benchmarks.common import Report, arguments_of, run, say, scratch
from benchmarks.machine import ROOT
from benchmarks.scale_study import NAME, Scale, make_plan
from benchmarks.verdicts import Aim, Finding
from castmates.errors import CastmatesError
from castmates.files import make_folder, replace_text
from castmates.results.bundle_names import RECORDS, bundles, records_text
from castmates.results.columns.launch import LAUNCH_TABLES, RECORD, table_file
from castmates.results.folder import StudyFolder
from castmates.study.spec import Plan

AIM_MS, AIM_KB = Aim(most=1.0), Aim(most=20.0)  # of a launch beyond an empty job
OURS, PLAIN = "Castmates", "empty jobs"
FRESH, DONE = "nothing is measured", "every launch is measured"
WORKFLOW = """
rule all:
    input: expand("made/{number}", number=range(int(config["jobs"])))


rule one:
    input: "given"
    output: "made/{number}"
    log: "logs/{number}.log"
    shell: "touch {output}"
"""
LOOK = 0.05  # seconds
SNAKEMAKE = (sys.executable, "-m", "snakemake", "--cores", "2")


@dataclass(frozen=True)
class Taken:
    """What one process took."""

    seconds: float  # of CPU time: what else the machine does counts less in it
    kilobytes: float  # at most, resident


Round = Mapping[tuple[str, str, int], Taken]  # whose, state and launches


def main() -> None:
    """Look at every size in every state, in turns, and report."""
    parser = arguments_of(__doc__, minutes=30)
    parser.add_argument("--launches", type=int, nargs="+", default=[1000, 5000, 20000], help="studies, each of so many")
    parser.add_argument("--times", type=int, default=3, help="that each of them is looked at, in turns")
    parser.add_argument("--keep", type=Path, help="a folder for the studies; used again if it is there")
    given = parser.parse_args()
    sizes = sorted(given.launches)
    with scratch() as folder:
        home = (given.keep or folder).resolve()
        for size in sizes:
            prepare(home, size)
        report = Report("Scale: the graph of many launches", "dag_scale")
        rounds = [dict(_looked(home, sizes)) for _ in range(given.times)]
    describe(report, sizes, rounds)
    report.found(*findings(sizes, rounds))
    report.print()


def prepare(home: Path, size: int) -> None:
    """Make a study and as many empty jobs, of each of which nothing and everything is made."""
    if (home / str(size) / "ready").exists():
        return
    for state in (FRESH, DONE):
        ours, plain = _folder(home, OURS, state, size), _folder(home, PLAIN, state, size)
        make_folder(plain)
        plan = make_plan(Scale(size), ours)
        replace_text(plain / "Snakefile", WORKFLOW)
        replace_text(plain / "given", "")
        if state == DONE:
            say(f"{size} launches are made")
            _measured(plan, ours / "results" / NAME)
            for number in range(size):
                _write(plain / "made" / str(number), "")
            for whose, folder, until in ((OURS, ours, ["--until", "model_launch"]), (PLAIN, plain, [])):
                _ran(folder, [*_words(whose, size), "--touch", *until])  # Snakemake notes what they were made of
    replace_text(home / str(size) / "ready", "")


def _measured(plan: Plan, results: Path) -> None:
    """Write what is looked at of measured launches: a record of the usual length, and tables that nobody reads."""
    about = {"status": "measured", "rounds": 4, "hardware": {name: {"counters": "none"} for name in LAUNCH_TABLES}}
    for file in ("machine.json", "plan.json"):
        replace_text(results / file, "{}\n")
    for launch in plan.launches:
        place = results / "launches" / launch.path
        for name in LAUNCH_TABLES:
            _write(place / table_file(name), "")
        record = {**about, "started": f"{launch.number}", "spec": launch.model_dump(mode="json")}
        _write(place / RECORD, json.dumps(record, indent=1, sort_keys=True))
    study = StudyFolder(results)
    for name, paths in bundles(launch.path for launch in plan.launches).items():  # gathered while the study is measured
        replace_text(study.bundle(name) / RECORDS, records_text([study.launch(path) for path in paths]))


def _write(file: Path, text: str) -> None:
    """Write a file of a scratch folder: there are hundreds of thousands, which need not outlive a power cut."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _looked(home: Path, sizes: Sequence[int]) -> Iterator[tuple[tuple[str, str, int], Taken]]:
    for size in sizes:
        for state in (FRESH, DONE):
            for whose in (PLAIN, OURS):
                taken = _ran(_folder(home, whose, state, size), [*_words(whose, size), "--dry-run", "--quiet", "all"])
                say(f"{size} launches, {state}, {whose}: {taken.seconds:.1f} s CPU, {taken.kilobytes / 1e3:.0f} MB")
                yield (whose, state, size), taken


def _words(whose: str, size: int) -> list[str]:
    if whose == PLAIN:
        return [*SNAKEMAKE, "--config", f"jobs={size}"]
    files = ["--snakefile", ROOT / "workflow" / "Snakefile", "--workflow-profile", ROOT / "profiles" / "default"]
    return [*SNAKEMAKE, *map(str, files), "--config", "study=study.yaml"]


def _folder(home: Path, whose: str, state: str, size: int) -> Path:
    return home / str(size) / state.replace(" ", "-") / whose.replace(" ", "-")


def _ran(folder: Path, words: Sequence[str]) -> Taken:
    """Run Snakemake in this folder to its end."""
    log, most = folder / "said.txt", 0.0
    with log.open("wb") as said:
        process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        while not (done := os.wait4(process.pid, os.WNOHANG))[0]:
            most = max(most, _most(process.pid))
            time.sleep(LOOK)
    _, status, usage = done
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise CastmatesError(f"{shlex.join(words)} failed in {folder}: {log.read_text(errors='replace')[-500:]}")
    return Taken(usage.ru_utime + usage.ru_stime, most)


def _most(pid: int) -> float:
    """The most that a process has had resident, in kB: what the kernel counts at its end begins with our own memory."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM:")), 0.0)


def describe(report: Report, sizes: Sequence[int], rounds: Sequence[Round]) -> None:
    """A row for each size and state."""
    report.text(
        "A modelled study of 40 cohorts, looked at by `snakemake --dry-run` with the project's profile, and a plain "
        "workflow of as many jobs that do nothing (one input, one output and a log each). Seconds of CPU time and the "
        f"most resident memory, medians of {len(rounds)} rounds."
    )
    header = ["launches", "state", "empty jobs s", "Castmates s", "empty jobs MB", "Castmates MB"]
    report.table(header, [_row(rounds, size, state) for state in (FRESH, DONE) for size in sizes])


def findings(sizes: Sequence[int], rounds: Sequence[Round]) -> Iterator[Finding]:
    """What each further launch costs beyond a further empty job, and how the whole grows, over rounds."""
    for state in (FRESH, DONE):
        for before, after in pairwise(sizes):
            where = f"each launch between {before} and {after} beyond an empty job, {state}"
            ms = [1e3 * _more(one, state, before, after, "seconds") for one in rounds]
            yield verdicts.mean(f"CPU time of {where}", ms, "ms", "rounds", AIM_MS)
            kilobytes = [_more(one, state, before, after, "kilobytes") for one in rounds]
            yield verdicts.mean(f"memory of {where}", kilobytes, "kB", "rounds", AIM_KB)


def _more(one: Round, state: str, before: int, after: int, what: str) -> float:
    def grown(whose: str) -> float:
        was, now = (float(getattr(one[whose, state, size], what)) for size in (before, after))
        return now - was

    return (grown(OURS) - grown(PLAIN)) / (after - before)


def _row(rounds: Sequence[Round], size: int, state: str) -> list[str]:
    def of(what: str, whose: str) -> float:
        return float(median(getattr(one[whose, state, size], what) for one in rounds))

    seconds = [f"{of('seconds', whose):.1f}" for whose in (PLAIN, OURS)]
    return [str(size), state, *seconds, *(f"{of('kilobytes', whose) / 1e3:.0f}" for whose in (PLAIN, OURS))]


if __name__ == "__main__":
    run(main)
