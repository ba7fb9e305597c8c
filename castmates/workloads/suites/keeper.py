"""Runs a benchmark again and again, one beat for each whole run whose result is right."""

import sys

from castmates.workloads import child
from castmates.workloads.heartbeat import Writer
from castmates.workloads.suites.job import Job, SuiteError, last_words, run

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
