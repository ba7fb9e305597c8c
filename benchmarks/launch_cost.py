"""What a launch costs besides its rounds: where the time of a measuring job goes, part by part.

With --against another checkout (its path) launches of both are measured in turns.
"""

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks import verdicts
from benchmarks.common import Report, TimeBox, arguments_of, run, say, scratch
from benchmarks.launches import cohort_plan, numbered, only, study_of
from benchmarks.machine import ROOT
from benchmarks.verdicts import Finding
from castmates import project
from castmates.errors import CastmatesError
from castmates.files import cache_folder, replace_text
from castmates.study.plan_text import plan_text
from castmates.study.spec import Plan

PARTS = {
    "interpreter": "interpreter",
    "imports": "imports",
    "plan": "plan",
    "lock": "*waiting for the machine*",
    "healing": "looking for what killed runs left",
    "warden": "warden",
    "knobs": "knobs",
    "scratch, freezer": "scratch folders, choosing a freezer",
    "launch": "starting the processes",
    "hardware, perf": "choosing collectors, trying perf and counters",
    "barrier": "waiting until all are ready",
    "rounds": "*rounds*",
    "cost windows": "windows that show what watching costs",
    "dismissal": "members end by themselves",
    "clean-up": "clean-up: groups, folders, warden",
    "record": "tables and record",
    "rest": "what is in no other part",
    "end": "end of the interpreter",
}
NO_COST = ("rounds", "lock")  # who waits for the machine waits for another measurement
# The interpreter and imports are what a job that holds several launches would pay once.
ONCE = ("interpreter", "imports", "end")
CONFIG = Path("config/studies/quick.yaml")
# What each shell of a sweep runs before its command.
NOTING = r"""case "$BASH_EXECUTION_STRING" in *castmates.pipeline\ measure_launch*)
date +%s.%N >>{times}
trap 'date +%s.%N >>{times}' EXIT
esac
"""


@dataclass(frozen=True)
class Launch:
    """The seconds of one measuring job by part, the CPU seconds of its runner, and what its lead did to get ready."""

    seconds: Mapping[str, float]
    own: Mapping[str, float]
    lead: Mapping[str, float]  # empty where the lead does not show it


Figure = Callable[[Mapping[str, float]], float]

SUMS: dict[str, Figure] = {
    "**all but rounds**": lambda parts: sum(seconds for part, seconds in parts.items() if part not in NO_COST),
    "of it interpreter and imports": lambda parts: sum(parts.get(part, 0.0) for part in ONCE),
}


def main() -> None:
    """Measure launches in turns and print the tables."""
    parser = arguments_of(__doc__, 3)
    parser.add_argument("--lead", default="chase")
    parser.add_argument("--antagonists", nargs="+", default=["compute"])
    parser.add_argument(
        "--against", type=Path, help="another checkout, launches of which are measured in turns with ours"
    )
    parser.add_argument("--launches", type=int, default=20, help="at most, of each checkout")
    parser.add_argument(
        "--sweep", type=int, default=6, help="launches of a sweep that shows Snakemake's share; 0: none"
    )
    arguments = parser.parse_args()
    trees = [ROOT] + ([arguments.against.resolve()] if arguments.against else [])
    report = Report(f"What a launch of {arguments.lead} costs besides its rounds", "launch_cost")
    with scratch() as folder:
        study = study_of(
            CONFIG, arguments.seed, rounds=1, spare_rounds=0, window=0.05, settle=0.01, longest_settle=0.01
        )
        plan = cohort_plan(study, arguments.lead, arguments.antagonists, folder)
        launches: dict[Path, list[Launch]] = {tree: [] for tree in trees}
        for number in TimeBox(arguments.minutes).portions():
            for tree in trees if number % 2 else reversed(trees):
                launches[tree].append(launched(tree, plan, number + 1, folder))
            if number + 1 >= arguments.launches:
                break
        shares = snakemakes_shares(folder, arguments.lead, arguments.antagonists, arguments.sweep)
    describe(report, launches)
    report.found(*findings(launches))
    if shares:
        ms = ", ".join(f"{1e3 * share:.0f}" for share in sorted(shares))
        report.text(
            f"Between the end of a measuring job and the start of the next, in a sweep of {len(shares) + 1} launches, "
            f"Snakemake took {ms} ms."
        )
    report.print()


def launched(tree: Path, plan: Plan, number: int, folder: Path) -> Launch:
    """Measure a launch of the plan by this checkout, in a separate process."""
    launch = numbered(plan, number)
    place = folder / tree.name / launch.path
    place.mkdir(parents=True)
    replace_text(place / "plan.json", plan_text(only(plan, launch)))
    words = [
        str(ROOT / "benchmarks" / "launch_parts.py"),
        repr(time.monotonic()),
        str(place / "plan.json"),
        launch.path,
    ]
    environment = os.environ | {"PYTHONPATH": str(tree), "CASTMATES_CACHE": str(cache_folder().resolve())}
    done = subprocess.run(
        [sys.executable, "-P", *words, str(place)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, cwd=tree, check=False,
    )  # fmt: skip
    end = time.monotonic()
    if done.returncode != 0 or not (place / "launch.json").is_file():
        said = done.stderr.strip().splitlines() or ["no message"]
        raise CastmatesError(f"launch {launch.path} could not be measured: {said[-1].removeprefix('castmates: ')}")
    noted = json.loads((place / "parts.json").read_text())
    seconds, own = ({part: both[which] for part, both in noted["parts"].items()} for which in (0, 1))
    measured = Launch(seconds | {"end": end - noted["done"]}, own, before_ready(place, plan))
    say(f"{tree.name}, launch {number}: {SUMS['**all but rounds**'](measured.seconds):.2f} s besides rounds")
    return measured


def before_ready(place: Path, plan: Plan) -> dict[str, float]:
    """What a Model Garden lead wrote of its start, and the steps that warmed it up; nothing of other leads."""
    lead = plan.launches[0].cohort.lead.name
    record = json.loads((place / "launch.json").read_text())
    for line in (place / "logs" / f"{lead}.log").read_text().splitlines():
        if line.startswith("{") and (known := json.loads(line).get("seconds")):
            ready = record["members"][lead]["ready_seconds"]
            return {**known, "warm-up, and what is in no other part": ready - sum(known.values()), "ready": ready}
    return {}


def snakemakes_shares(folder: Path, lead: str, antagonists: Sequence[str], launches: int) -> list[float]:
    """The seconds between the jobs of a sweep over these launches; their shells record the times."""
    if launches < 2:
        return []
    name = f"a-benchmark-{os.getpid()}"
    budget = {"launches": launches, "rounds": 1, "spare_rounds": 0, "window": 0.05, "settle": 0.01}
    study = {"name": name, "leads": [lead], "antagonists": [*antagonists], "controls": None, "budget": budget}
    file, times = folder / "sweep.yaml", folder / "times"
    file.write_text(yaml.safe_dump(study), encoding="utf-8")
    noting = folder / "noting.sh"
    noting.write_text(NOTING.format(times=shlex.quote(str(times))))
    project_ = project.load(file)
    targets = [str(project_.results.record_file(launch)) for launch in project_.plan().launches]
    words = [sys.executable, "-m", "snakemake", "--cores", "all", "--config", f"study={file}", "--", *targets]
    environment = os.environ | {"BASH_ENV": str(noting)}
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False
        )
    finally:
        for place in (project_.results.path, *Path("logs").glob(f"*/{name}")):
            shutil.rmtree(place, ignore_errors=True)
    if done.returncode != 0:
        raise CastmatesError(f"the sweep of launches failed: {done.stderr.strip().splitlines()[-1]}")
    noted = [float(line) for line in times.read_text().splitlines()]
    return [start - end for end, start in zip(noted[1::2], noted[2::2], strict=False)]


def describe(report: Report, launches: Mapping[Path, Sequence[Launch]]) -> None:
    """Add the tables of parts."""
    ours = launches[ROOT]
    other = next((measured for tree, measured in launches.items() if tree != ROOT), None)
    report.text(
        f"Minimum and median of {len(ours)} launches{' each, in turns' if other else ''}: seconds, and seconds of the "
        "runner's own CPU time, which other programs change little."
    )
    header = ["part", "s, minimum", "median", "CPU, minimum", "median"]
    if other:
        header += [f"before: {name}" if name.endswith("minimum") else name for name in header[1:]]
    choices = {name: of_part(part) for part, name in PARTS.items()}
    rows = [[name, *figures(ours, of), *(figures(other, of) if other else ())] for name, of in (choices | SUMS).items()]
    report.table(header, rows)
    if other:
        whole = SUMS["**all but rounds**"]
        ratios = [whole(before.seconds) / whole(now.seconds) for now, before in zip(ours, other, strict=True)]
        report.found(verdicts.ratio("all but rounds: the other checkout's time, of ours", ratios, "pairs of launches"))
    if ours[0].lead:
        shown = [[launch.lead[name] for launch in ours] for name in ours[0].lead]
        report.text("What the lead did until it was ready, in seconds:")
        report.table(
            ["", "minimum", "median"],
            [
                [name, f"{min(values):.2f}", f"{statistics.median(values):.2f}"]
                for name, values in zip(ours[0].lead, shown, strict=True)
            ],
        )


def findings(launches: Mapping[Path, Sequence[Launch]]) -> Iterator[Finding]:
    """What a launch of this checkout takes besides its rounds."""
    for what, of in SUMS.items():
        values = [of(launch.seconds) for launch in launches[ROOT]]
        yield verdicts.mean(what.strip("*"), values, "s", "launches")


def of_part(part: str) -> Figure:
    """One part; what a launch never came to took it no time."""
    return lambda parts: parts.get(part, 0.0)


def figures(launches: Sequence[Launch], of: Figure) -> list[str]:
    """The minimum and the median of seconds, then of CPU seconds."""
    both = ([of(launch.seconds) for launch in launches], [of(launch.own) for launch in launches])
    return [f"{figure:.3f}" for values in both for figure in (min(values), statistics.median(values))]


if __name__ == "__main__":
    run(main)
