"""Keeps a stressor of stress-ng running, a fixed number of bogo ops at a time, and reports each of them.

stress-ng reports its bogo ops only when it ends, so it is run again and again with `--NAME-ops N`. What its own metrics
report is what counts: less than N is a failure. Standard library only.
"""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from castmates.workloads import child
from castmates.workloads.heartbeat import HeartbeatError, Writer

MEANINGS = {2: "the stressor failed", 3: "it could not get what it needs", 4: "it does not exist on this machine"}
DONE = re.compile(r"^\s*bogo-ops:\s*(\d+)\s*$", re.MULTILINE)
PATIENCE = 1.5  # seconds that stress-ng has to end after SIGTERM


class Refused(Exception):
    """It cannot go on; one sentence for the user."""


def _arguments(words: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="castmates.workloads.stressng", description=__doc__, allow_abbrev=False)
    parser.add_argument("--stressor", required=True, help="its name, as `stress-ng --stressors` lists it")
    parser.add_argument("--ops", type=int, required=True, help="bogo ops in one run, all instances together")
    parser.add_argument("--units", type=int, default=0, help="stop after at least so many bogo ops")
    given, further = parser.parse_known_args(words)
    if given.ops < 1:
        parser.error(f"--ops must be a whole number from 1 on, but is {given.ops}")
    return given, further


def command_of(stressor: str, ops: int, instances: int, report: str, further: Sequence[str]) -> list[str]:
    """One run; further options go to stress-ng as they are, such as --stream-l3-size 16M."""
    name = f"--{stressor}"
    amount = [name, str(instances), f"{name}-ops", str(ops), "--timeout", "0"]
    told = ["--metrics-brief", "--yaml", report, "--temp-path", str(Path(report).parent)]
    return ["stress-ng", *amount, *told, *further]


def _once(command: list[str], report: Path, log: Path, ops: int) -> int:
    """Run it and return how many bogo ops its metrics report."""
    report.unlink(missing_ok=True)
    with log.open("wb") as output:
        try:
            status = child.run(command, output, patience=PATIENCE)
        except FileNotFoundError:
            raise Refused("there is no program stress-ng on the PATH; install the package stress-ng") from None
    if status != 0:
        raise Refused(f"stress-ng ended with status {status} ({MEANINGS.get(status, 'an error')}){_last(log)}")
    done = sum(map(int, DONE.findall(report.read_text(encoding="utf-8")))) if report.is_file() else 0
    if done < ops:
        raise Refused(f"stress-ng did {done} of {ops} bogo ops{_last(log)}")
    return done


def _last(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    complaints = [line for line in lines if "fail" in line or "nrecogni" in line or "skip" in line or "rror" in line]
    said = (complaints or lines)[-1:]
    return f'; it wrote "{said[0][:200]}"' if said else ""


def _cycle(given: argparse.Namespace, further: list[str], heartbeat: Writer) -> None:
    instances = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="stress-ng-", ignore_cleanup_errors=True) as folder:
        report, log, total = Path(folder) / "metrics.yaml", Path(folder) / "log", 0
        command = command_of(given.stressor, given.ops, instances, str(report), further)
        heartbeat.ready()
        try:
            while given.units == 0 or total < given.units:
                done = _once(command, report, log, given.ops)
                heartbeat.beat(done)
                total += done
        finally:
            child.ignore()  # the folder is removed in peace


def main(words: Sequence[str] | None = None) -> int:
    """Run until SIGTERM; the exit status."""
    given, further = _arguments(words)
    child.listen()
    heartbeat = Writer(None)
    try:
        heartbeat = Writer.from_environment()
        _cycle(given, further, heartbeat)
    except child.Stopped:
        pass
    except (Refused, HeartbeatError) as problem:
        heartbeat.failed()
        print(f"castmates stressng: {given.stressor}: {problem}", file=sys.stderr, flush=True)
        return 1
    heartbeat.finished()
    return 0


if __name__ == "__main__":
    sys.exit(main())
