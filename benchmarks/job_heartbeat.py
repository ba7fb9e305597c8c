"""What our heartbeat costs a Model Garden job: the same job in the same process, in turns with and without it.

Short stretches of steps in pairs of random order, in several launches. The upper end of the 95 % interval is to be
below 0.3 % of the job's time: that of the trimmed mean, and that of all pairs, which alone shows a rare cost.
"""

import argparse
import json
import math
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks import verdicts
from benchmarks.common import Report, arguments_of, run, say, scratch
from benchmarks.machine import ROOT
from benchmarks.precision import Floats, Mean, mean_of
from benchmarks.verdicts import Aim, Finding
from castmates import project
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.workloads import environments, inputs
from castmates.workloads.heartbeat import VARIABLE, create
from castmates.workloads.tfmodels import jobs

AIM = Aim(most=0.3)  # per cent
TRIM = 0.2  # share of the pairs that is cut off at each end: what else runs here strikes single stretches
FEWEST_PAIRS = 5


def main() -> None:
    """Measure in several launches and print the table."""
    options = _options()
    report = Report("What a heartbeat costs a Model Garden job", "job_heartbeat")
    words = ["--model", options.model, "--size", options.size, "--mode", options.mode, "--threads", "1"]
    if options.records:
        name = jobs.SHAPES[options.model, options.size].inputs
        folder = inputs.build(name, project.ENVIRONMENTS, cache_folder())
        words += ["--data", str(folder / ("*.tsv" if options.model == "dlrm" else "*.tfrecord"))]
    launches = []
    for launch in range(options.launches):
        say(f"launch {launch + 1} of {options.launches}: {' '.join(words)}")
        seconds = 60 * options.minutes / options.launches
        launches.append(_turns(words, seconds, options.stretch, options.seed + launch))
    describe(report, launches, options)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=4.0)
    parser.add_argument("--model", choices=jobs.MODELS, default="dlrm")
    parser.add_argument("--size", choices=jobs.SIZES, default="small")
    parser.add_argument("--mode", choices=jobs.MODES, default="train")
    parser.add_argument("--records", action="store_true", help="read records; batches from memory are less noisy")
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--stretch", type=int, default=2, help="steps that are timed together")
    return parser.parse_args()


def _turns(words: list[str], seconds: float, stretch: int, seed: int) -> dict[str, Floats]:
    """Run one launch; return the log-ratios of its pairs for each thing tried."""
    place = environments.build("tfmodels", project.ENVIRONMENTS, cache_folder())
    found = environments.environment_of(place)
    path = os.pathsep.join([found.pop("PATH"), os.environ["PATH"]])
    program = [str(place / "bin" / "python"), "-P", str(ROOT / "benchmarks" / "job_heartbeat_turns.py")]
    with scratch(in_memory=True) as folder:
        create(folder / "beats")
        variables = found | {"PATH": path, "TMPDIR": str(folder), VARIABLE: str(folder / "beats")}
        command = [*program, str(seconds), str(stretch), str(seed), "--", *words]
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise CastmatesError(f"the job ended with status {done.returncode}; its words are above.")
    pairs = json.loads(done.stdout.splitlines()[-1])["pairs"]
    return {name: np.log([other / plain for plain, other in both]) for name, both in pairs.items()}


def trimmed(values: Floats) -> Mean:
    """The trimmed mean in per cent, its error from the winsorised variance (Tukey and McLaughlin)."""
    _enough(values)
    cut = int(TRIM * len(values))
    ordered = np.sort(values)
    inner = ordered[cut : len(values) - cut]
    spread = np.std(np.clip(values, inner[0], inner[-1]), ddof=1) / (1 - 2 * TRIM)
    return Mean(100 * float(inner.mean()), 100 * float(spread) / math.sqrt(len(values)), len(inner) - 1)


def untrimmed(values: Floats) -> Mean:
    """The mean of all pairs in per cent: noisier, but it also holds what strikes few of them."""
    _enough(values)
    mean = mean_of(values)
    return Mean(100 * mean.value, 100 * mean.error, mean.freedom)


def _enough(values: Floats) -> None:
    if len(values) < FEWEST_PAIRS:
        raise CastmatesError(
            f"pairs of stretches: {len(values)} in a launch, at least {FEWEST_PAIRS} are needed; give more --minutes, "
            "fewer --launches or a shorter --stretch."
        )


def describe(report: Report, launches: Sequence[Mapping[str, Floats]], options: argparse.Namespace) -> None:
    """The result of each launch, which are the sample; within launches, for information, all pairs as one."""
    source = "records" if options.records else "memory"
    report.text(
        f"`{options.model} {options.size} {options.mode}`, batches from {source}, one thread. Stretches of "
        f"{options.stretch} steps in pairs of random order inside one process on one CPU, {options.launches} launches. "
        f"A launch gives the mean of its pairs' log-ratios without the outer {TRIM:.0%} at each end, and that of all "
        "pairs (untrimmed), in which a cost in few of the pairs is seen. The last column holds within these launches "
        "alone: it pools their pairs."
    )
    rows = []
    for name in launches[0]:
        pooled = trimmed(np.concatenate([launch[name] for launch in launches]))
        each = ", ".join(f"{trimmed(launch[name]).value:+.3f}" for launch in launches)
        count = sum(len(launch[name]) for launch in launches)
        rows.append([name, str(count), each, f"{pooled.value:+.3f} % ± {pooled.half_width:.3f}"])
        report.found(*findings(name, [launch[name] for launch in launches]))
    report.table(["the job with", "pairs", "loss in %, launch by launch", "pairs as units"], rows)


def findings(name: str, launches: Sequence[Floats]) -> Iterator[Finding]:
    """The loss over launches, of the trimmed means and of all pairs: both are to be below the aim."""
    for mean, which in ((trimmed, ""), (untrimmed, ", untrimmed")):
        losses = [mean(launch).value for launch in launches]
        yield verdicts.mean(f"loss by {name}{which}", losses, "%", "launches", AIM)


if __name__ == "__main__":
    run(main)
