"""`python -m castmates.workloads.suites.run SUITE …`: what a workload of a suite is started as (expand.py)."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from castmates.workloads import child
from castmates.workloads.heartbeat import HeartbeatError, Writer
from castmates.workloads.suites import npb, parsec, spec2017
from castmates.workloads.suites.job import Job, SuiteError, last_words, run

# Runs a benchmark again and again, one beat for each whole run whose result is right.

WRONG_RESULT = 3


class Keeper:
    """Keeps one benchmark running."""

    def __init__(self, job: Job, check: str, heartbeat: Writer) -> None:
        self._job, self._check, self._heartbeat = job, check, heartbeat

    def keep(self, units: int = 0) -> int:
        """Run until SIGTERM, or so many times; the exit status."""
        child.listen()
        try:
            try:
                self._cycle(units)
            finally:
                child.ignore()
        except child.Stopped:
            pass
        self._heartbeat.finished()
        return 0

    def _cycle(self, units: int) -> None:
        self._heartbeat.ready()
        done = 0
        while units == 0 or done < units:
            if done:
                self._job.renew()
            self._run()
            if self._check == "every" or (self._check == "first" and done == 0):
                self._judge()
            self._heartbeat.beat()
            done += 1

    def _run(self) -> None:
        for step in self._job.steps():
            status = run(step)
            if status != 0 and not step.may_fail:
                how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
                raise SuiteError(f"`{step.shown}` {how}{last_words(step.output)}")

    def _judge(self) -> None:
        if wrong := self._job.wrong():
            raise WrongResult(f"the result is wrong: {wrong}")


class WrongResult(SuiteError):
    """A run ended well, and what it wrote is not what the suite expects."""


def complain(problem: SuiteError) -> int:
    """Report what is wrong, and choose the exit status after it."""
    print(f"castmates suites: {problem}", file=sys.stderr, flush=True)
    return WRONG_RESULT if isinstance(problem, WrongResult) else 1


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
