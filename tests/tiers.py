"""Runs the tests of a tier, and shows how long each part took by the clock: `python -m tests.tiers all`.

Most tests run beside others; those that need a quiet machine run last, alone, one after the other. pytest leaves the
seconds of each test in .cache/tests/PART.xml; a tier has a budget for all that it starts.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / ".cache" / "tests"
# Seconds on two quiet cores, where everything is built.
BUDGETS = {"check": 180, "test": 360, "all": 1500, "nightly": 3 * 3600}
EXAMPLES = {"all": 25, "nightly": 500}  # of each property, drawn at random; in the other tiers they are always the same
CPUS = len(os.sched_getaffinity(0))
PROCESSES = ("workflow", "chaos", "browser", "runner", "real")  # what takes longest comes first
SLOWEST = 12  # files that are listed


class Part(NamedTuple):
    """A command, or a run of pytest."""

    name: str
    marks: str = ""
    folders: tuple[str, ...] = ()
    workers: int = 0  # 0: in one process
    command: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def words(self) -> list[str]:
        """What is started."""
        if self.command:
            return list(self.command)
        words = [sys.executable, "-m", "pytest", "-q", f"--junitxml={self.report}", "-m", self.marks, *self.options]
        if self.folders != ("unit", "golden"):
            words.append("--once-more")
        if self.workers:
            # Some tests wait most of the time: there is one worker more than CPUs.
            words += ["-n", str(self.workers), "--dist", "loadfile", "--no-loadscope-reorder"]
        return words + [f"tests/{folder}" for folder in self.folders]

    @property
    def report(self) -> Path:
        """Where pytest writes what it ran."""
        return REPORTS / f"{self.name}.xml"


class Took(NamedTuple):
    """How a part ended."""

    part: Part
    status: int
    seconds: float


QUICK = "pure and not simulation and not landing and not nightly"
LINT = Part("lint", command=("make", "--no-print-directory", "lint"))
ALL = "not quiet and not nightly and not slurm and not lab and not simulation"
TEST = f"({QUICK} or (real or core) and not quiet and not landing and not tensorflow and not nightly)"
LONG = ("-o", "faulthandler_timeout=7200")
TIERS: dict[str, list[Part]] = {
    "check": [LINT, Part("pure", QUICK, ("unit", "golden"), CPUS)],
    "test": [
        Part("most", TEST, (*PROCESSES, "unit", "golden"), CPUS + 1),
        Part("quiet", "quiet and (real or core) and not landing and not tensorflow and not nightly", PROCESSES),
    ],
    "all": [
        LINT,
        Part("most", ALL, (*PROCESSES, "unit", "golden"), CPUS + 1),
        Part("lab", "lab and not nightly", ("lab",)),  # three guests at a time
        Part("quiet", "quiet and not nightly", PROCESSES),
    ],
    "nightly": [
        Part("pure", "pure", ("unit", "golden"), CPUS),
        Part("nightly", "nightly and not pure or lab or chaos", (*PROCESSES, "lab"), options=LONG),
    ],
}


def run(tier: str) -> int:
    """Run all parts, the next one also where one failed, and return 1 where any did."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    if tier in EXAMPLES:
        seed = os.environ.setdefault("CASTMATES_SEED", str(time.time_ns() // 10**9))
        os.environ.setdefault("CASTMATES_RANDOM", str(EXAMPLES[tier]))
        print(f"CASTMATES_SEED={seed}", flush=True)
    began, took = time.monotonic(), list[Took]()
    for part in TIERS[tier]:
        part.report.unlink(missing_ok=True)
        started = time.monotonic()
        with subprocess.Popen(part.words(), cwd=ROOT) as process:
            try:
                status = process.wait()
            except BaseException:
                process.terminate()
                raise
        took.append(Took(part, status, time.monotonic() - started))
    _tell(tier, took, time.monotonic() - began)
    return int(any(one.status for one in took))


def _tell(tier: str, took: list[Took], seconds: float) -> None:
    """Print the seconds of each part, the slowest files, and the sum against the budget."""
    files, outcomes = Counter[str](), Counter[str]()
    for part in (one.part for one in took if one.part.report.exists()):
        for case in ET.parse(part.report).iter("testcase"):
            files[case.get("classname", "").removeprefix("tests.")] += float(case.get("time", 0))
            outcomes[_outcome({child.tag for child in case})] += 1
    print(f"\nThe tests of '{tier}', on {CPUS} CPUs:")
    for part, status, lasted in took:
        print(f"  {part.name:8}{lasted:6.0f} s{f', failed with status {status}' if status else ''}")
    if files:
        print(f"  slowest: {', '.join(f'{name} {lasted:.0f} s' for name, lasted in files.most_common(SLOWEST))}")
    over = ", OVER its budget: was the machine busy, or did it build something?" if seconds > BUDGETS[tier] else ""
    print(f"  whole   {seconds:6.0f} s of {BUDGETS[tier]} s{over}")
    print(f"{outcomes['passed']} passed, {outcomes['failed']} failed, {outcomes['skipped']} skipped")


def _outcome(tags: set[str]) -> str:
    return "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"


def _stop(signum: int, frame: object) -> None:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    parser = argparse.ArgumentParser(description="Run the tests of a tier.")
    parser.add_argument("tier", choices=TIERS)
    sys.exit(run(parser.parse_args().tier))
