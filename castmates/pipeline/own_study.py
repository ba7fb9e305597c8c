"""Writes study files: one to begin with; and what those have in common that are written of a command."""

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.files import replace_text, written_text
from castmates.results.find import is_taken
from castmates.results.named import OWN_STUDY
from castmates.study.model import Study, Workload
from castmates.study.reading import did_you_mean, read_keys

STARTER = Path(__file__).with_name("starter.yaml")
STUDIES = Path("studies")  # that were written for a command
WINDOW, MOST_RUNS, FEWEST_RUNS = 0.5, 10, 4  # seconds of a scene in a round, and runs that should fit into them
LONGEST_WINDOW = 600.0  # that a study may have
LEAST_UNITS = 2  # that its schema allows in a window
ROOM = 1.5  # times the memory that was seen
ROUNDS = 3


@dataclass(frozen=True)
class FirstRun:
    """What one run of a command takes, or one step."""

    seconds: float
    bytes: int  # of memory


def write_starter(folder: Path) -> Path:
    """Write a commented study into a folder; one that is there already stays as it is."""
    file = folder / OWN_STUDY
    if file.exists():
        raise CastmatesError(f"{file} is there already, and stays as it is; for another one: castmates init FOLDER.")
    schema = Path(os.path.relpath(shipped.schema("study"), folder))
    modeline = f"# yaml-language-server: $schema={schema}\n"  # editors then complete and check the keys
    replace_text(file, modeline + STARTER.read_text(encoding="utf-8"))
    return file


def one_of(base: str, is_it: Callable[[Study], bool], text_of: Callable[[str], str]) -> Path:
    """The study of this name, or of this name and a number, that is the wanted one; or a new one with a free name."""
    for number in range(1, 1000):
        file = STUDIES / f"{base}{'' if number == 1 else f'-{number}'}.yaml"
        if file.exists():
            if is_it(read_keys(Study, written_text(file, "the study"), str(file))):
                return file
        elif not is_taken(file.stem):
            text = text_of(file.stem)
            read_keys(Study, text, str(file))  # a study that nobody can read is not left behind
            replace_text(file, text)
            return file
    raise CastmatesError(f"{STUDIES} has a thousand studies of {base}; give another one with --name.")


def name_of(command: Sequence[str]) -> str:
    """The program's name, as a study may have it."""
    written = re.sub(r"[^a-z0-9._-]+", "-", Path(command[0]).name.lower())
    return written.lstrip("._-")[:40] or "program"


def memory_of(trial: FirstRun) -> str:
    """What a program takes of the machine's memory, with some room."""
    return f"{max(10, math.ceil(ROOM * trial.bytes / 1e6))} MB"


def budget_of(seconds: float, launches: int) -> list[str]:
    """The budget as lines of YAML: windows that hold as many units of so many seconds as are good to have."""
    fitting = math.floor(LONGEST_WINDOW / seconds)
    if fitting < LEAST_UNITS:
        raise CastmatesError(
            f"one run or step takes {seconds:.0f} s: a window of {LONGEST_WINDOW:.0f} s, which is the longest, "
            f"would hold fewer than {LEAST_UNITS}. Give it less to do."
        )
    units = min(fitting, max(FEWEST_RUNS, min(MOST_RUNS, math.floor(WINDOW / seconds))))
    window = min(LONGEST_WINDOW, max(WINDOW, round(units * seconds, 2)))
    return [
        "budget:",
        f"  launches: {launches}",
        f"  rounds: {ROUNDS}",
        f"  window: {window:g}",
        f"  steps: {units}",
        f"  longest_window: {min(LONGEST_WINDOW, max(5.0, 2 * window)):g}",
    ]


def in_a_line(words: Sequence[str] | Mapping[str, str]) -> str:
    """A list or mapping as YAML, with quotes where a word would be read as something else: true, 007."""
    plain = dict(words) if isinstance(words, Mapping) else list(words)
    return yaml.safe_dump(plain, default_flow_style=True, width=math.inf, allow_unicode=True, sort_keys=False).strip()


def variables_of(variables: Mapping[str, str]) -> list[str]:
    """The line of a workload that sets variables, where there are any."""
    return [f"    variables: {in_a_line(variables)}"] if variables else []


def scalar(text: str) -> str:
    """A text as YAML."""
    return in_a_line([text])[1:-1]


def refuse_unknown(beside: Sequence[str], known: Mapping[str, Workload], alone: bool = False) -> None:
    """Refuse antagonists that the catalogue does not have, and none where the program cannot run `alone`."""
    if not beside and not alone:
        raise CastmatesError("--beside names nothing; give one or more workloads, as in --beside stream,chase.")
    for name in beside:
        if name not in known:
            raise CastmatesError(
                f"--beside: '{name}' is not in the catalogue{did_you_mean(name, known)} "
                "(`castmates workloads` lists what there is)."
            )


def last_line(output: bytes) -> str:
    """The last line that a program wrote."""
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
