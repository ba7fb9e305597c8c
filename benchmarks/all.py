"""`make benchmarks`: runs what has not been run with this code, keeps each run, and writes the page.

Whoever stops it loses the benchmark that runs; the same command goes on with that one.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks import page
from benchmarks.commands import COMMANDS, Command
from benchmarks.common import run, say, scratch
from benchmarks.machine import ROOT
from benchmarks.runs import FOLDER, VARIABLE, Run, code_of, keep, kept, raw_of, read
from castmates.errors import CastmatesError

APART = timedelta(hours=1)  # between the beginnings of two repetitions


def main() -> None:
    """Run what is missing, outdated or named."""
    options = _options()
    commands = [command for command in COMMANDS if command.name in options.only] if options.only else due(options.runs)
    failed = measure(commands, options.runs, options.page)
    later = [command.name for command in COMMANDS if _lacks_repetitions(command, options.runs)]
    if later:
        say(f"repeat with the same command, an hour after the last time: {', '.join(later)}")
    if failed:
        raise CastmatesError(f"failed (see above), and not on the page: {', '.join(failed)}.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [command.name for command in COMMANDS]
    parser.add_argument("--only", nargs="+", default=[], choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--runs", type=Path, default=FOLDER, help="folder in which runs are kept")
    parser.add_argument("--page", type=Path, default=page.PAGE, help="the page that is written from them")
    options = parser.parse_args()
    options.runs, options.page = options.runs.resolve(), options.page.resolve()
    return options


def due(folder: Path, commands: Sequence[Command] = COMMANDS, now: datetime | None = None) -> list[Command]:
    """The commands that were not run with this code, or not in enough separate hours."""
    moment = now or datetime.now().astimezone()
    return [command for command in commands if _is_due(command, _with_this_code(command, folder), moment)]


def _with_this_code(command: Command, folder: Path) -> list[Run]:
    code = code_of(command.module)
    return [one for one in kept(command.name, folder) if one.code == code and one.command == command.line]


def _is_due(command: Command, runs: Sequence[Run], now: datetime) -> bool:
    return not runs or (len(runs) < command.hours and now - runs[-1].begun >= APART)


def _lacks_repetitions(command: Command, folder: Path) -> bool:
    return 0 < len(_with_this_code(command, folder)) < command.hours


def measure(
    commands: Sequence[Command], folder: Path, output: Path, start: Callable[[Command], Run] | None = None
) -> list[str]:
    """Run them, each kept and on the page as soon as it is done; return the names of those that failed."""
    takes = {command.name: _minutes(command, folder) for command in commands}
    failed = []
    for number, command in enumerate(commands):
        left = sum(takes[one.name] for one in commands[number:])
        here = f"about {takes[command.name]:.1f} minutes, {left:.0f} until all is done"
        say(f"{number + 1} of {len(commands)}: {command.line} ({here})")
        try:
            keep((start or started)(command), command.name, folder)
        except CastmatesError as problem:
            say(str(problem))
            failed.append(command.name)
        page.write(folder, output)
    page.write(folder, output)
    return failed


def _minutes(command: Command, folder: Path) -> float:
    """What it took the last time, or takes as a rule."""
    last = [one.minutes for one in kept(command.name, folder) if one.command == command.line]
    return last[-1] if last else command.minutes


def started(command: Command) -> Run:
    """Run a benchmark in a separate process, and return its output if it ended well."""
    code = code_of(command.module)
    whole = [sys.executable, "-m", f"benchmarks.{command.module}", *shlex.split(command.words)[1:]]
    with scratch() as place:
        file = place / "run.json"
        environment = os.environ | {VARIABLE: str(file)}
        process = subprocess.Popen(
            whole, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment, cwd=ROOT
        )
        try:
            process.wait()
        except BaseException:
            process.terminate()  # never killed: it has to end its own processes
            process.wait()
            raise
        if process.returncode != 0 or not file.exists():
            raise CastmatesError(f"'{command.line}' failed with status {process.returncode} (see above).")
        return read(file).model_copy(update={"code": code, "raw": raw_of(file)})


if __name__ == "__main__":
    run(main)
