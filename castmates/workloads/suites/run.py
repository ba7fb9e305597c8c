"""`python -m castmates.workloads.suites.run SUITE …`: what a workload of a suite is started as (expand.py)."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from castmates.workloads.heartbeat import HeartbeatError, Writer
from castmates.workloads.suites import npb, parsec, spec2017
from castmates.workloads.suites.job import Job, SuiteError
from castmates.workloads.suites.keeper import Keeper, complain

CHECKS = ("first", "every", "never")


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="castmates.workloads.suites.run", description=__doc__)
    parser.add_argument("suite", choices=("spec2017", "parsec", "npb"))
    parser.add_argument("--root", type=Path, required=True, help="the installation")
    parser.add_argument("--at", type=Path, required=True, help="run directory, package or program, from the root")
    parser.add_argument("--build", default="", help="parsec: a folder of inst/")
    parser.add_argument("--size", default="", help="parsec: the input")
    parser.add_argument("--check", choices=CHECKS, default="every", help="which runs have their results compared")
    parser.add_argument("--digest", default="", help="of the programs, as it was when this was planned")
    parser.add_argument("--units", type=int, default=0, help="stop after so many runs")
    return parser.parse_args(words)


def _job(given: argparse.Namespace) -> Job:
    if given.suite == "spec2017":
        return spec2017.Benchmark(given.root, given.at)
    if given.suite == "parsec":
        return parsec.Package(given.root, given.at, given.build, given.size, len(os.sched_getaffinity(0)))
    return npb.Program(given.root, given.at)


def main(words: Sequence[str] | None = None) -> int:
    """Run it until SIGTERM; the exit status."""
    given = _arguments(words)
    place = Path(tempfile.mkdtemp(prefix=f"{given.suite}-"))
    heartbeat = None
    try:
        heartbeat = Writer.from_environment()
        job = _job(given)
        if given.digest and job.digest() != given.digest:
            raise SuiteError(f"{given.root / given.at}: programs or commands changed since it was planned; plan again")
        job.prepare(place)
        return Keeper(job, given.check, heartbeat).keep(given.units)
    except SuiteError as problem:
        if heartbeat is not None:
            heartbeat.failed()
        return complain(problem)
    except HeartbeatError as problem:
        return complain(SuiteError(str(problem)))
    except OSError as problem:
        if heartbeat is not None:
            heartbeat.failed()
        return complain(SuiteError(f"{problem.filename or place}: {problem.strerror}"))
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
