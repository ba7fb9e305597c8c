"""What files of BenchCast hold: mixes, what mixes are drawn from, suites, events; and what cannot be taken over.

A file is recognised by its content: BENCH_CONF.py, experiment_list.py, commands of bench_cast and topdown.py in a
script, a table of results, a list of events.
"""

import ast
import csv
import platform
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from castmates.errors import CastmatesError
from castmates.study.event_spelling import as_perf_spells

CONFIGURATION = "BENCH_CONF.py"
SUITES = ("SPEC", "NPB", "PARSEC")
OTHERWISE_NAMED = {"xalanbmk": "xalancbmk_r", "specrand_f": "specrand_fr", "specrand_i": "specrand_ir"}
WITH_VALUE = "pnlcvsrmeta"  # its options of one letter; of those without a value there are b and w
# What has no counterpart, or comes about by itself here.
NOT_TAKEN = {
    "-b": "programs are not left running: a launch ends with its last window",
    "-w": "there is no simulator here to hand a region of interest to",
    "-s": "a window is as long as the programs need for their steps (budget.window, budget.longest_window)",
    "-l": "members wait for one another while they start, and the settle time of a change of scene is measured",
    "-r": "each scene is measured in several rounds of several launches (budget.rounds, budget.launches)",
    "-v": "results go to results/NAME, as Parquet and CSV",
    "-n": "a mix has the programs that are named",
    "--seconds": "a window is as long as the programs need for their steps (budget.window, budget.longest_window)",
    "--outdir": "results go to results/NAME",
    "--filename": "results go to results/NAME",
    "--infile": "a sweep goes on where it stopped by itself",
    "--userdt": "shares of the cache are the key cache.sweeps, with ways of the machine at hand",
    "rdtset": "shares of the cache are the key cache.sweeps, with ways of the machine at hand",
}
_COMMAND = re.compile(r"(?:\S*/)?(?:bench_cast|topdown\.py|experiment_BenchCast\.py)")
_EVENT = re.compile(r"[A-Za-z][\w.:]*")


class Program(NamedTuple):
    """A benchmark as BenchCast names it."""

    suite: str
    name: str
    input: str

    @classmethod
    def of(cls, suite: str, words: str) -> "Program":
        """Of `mcf.1`; without an input it is the first."""
        name, _, chosen = words.partition(".")
        return cls(suite, name, chosen or "1")

    @property
    def workload(self) -> str:
        """What it is called here."""
        if self.suite == "SPEC":
            return f"spec2017.{OTHERWISE_NAMED.get(self.name, f'{self.name.lower()}_r')}"
        return f"{self.suite.lower()}.{self.name}"

    @property
    def benchmark(self) -> str:
        """Its name in a catalogue file."""
        return self.workload.partition(".")[2]


@dataclass
class Found:
    """What was read of all files."""

    mixes: list[tuple[Program, ...]] = field(default_factory=list)
    pool: list[Program] = field(default_factory=list)  # to draw from
    drawn: dict[str, int] = field(default_factory=dict)  # numtests, max_apps, num_procs
    events: list[str] = field(default_factory=list)
    roots: dict[str, Path] = field(default_factory=dict)
    label: str = ""  # of SPEC's builds
    reserve: int = 0
    left: dict[str, None] = field(default_factory=dict)  # a sentence for all that cannot be taken over

    def leave(self, what: str, why: str) -> None:
        """Note what is not taken over, once."""
        self.left.setdefault(f"{what}: {why}.")


def read_file(file: Path, found: Found) -> None:
    """Take what a file of BenchCast has."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is no text"
        raise CastmatesError(f"{file}: it cannot be read ({why}).") from None
    for place in (file.parent, file.parent.parent):
        if not found.roots and (own := place / CONFIGURATION).is_file():
            _take_roots(own, found)
    commands = list(_commands(text))
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    values = _assigned(text) if file.suffix == ".py" else {}
    if "PATHS" in values:
        _take_roots(file, found)
    elif "exp_list" in values:
        _take_pool(file, values["exp_list"], found)
    elif commands:
        for words in commands:
            _take_command(file, words, found)
    elif lines and "Benchmark" in next(csv.reader(lines[:1])):
        _take_table(file, text, found)
    elif lines and all(map(_EVENT.fullmatch, lines)):
        _take_events(lines, found)
    else:
        raise CastmatesError(
            f"{file}: it is none of BenchCast's files that can be taken over: BENCH_CONF.py, experiment_list.py, a "
            "script with commands of bench_cast or topdown.py, a table of results, a list of events."
        )


def _take_roots(file: Path, found: Found) -> None:
    """Where the suites are, from BENCH_CONF.py; relative paths are meant from its folder."""
    paths = _assigned(file.read_text(encoding="utf-8")).get("PATHS")
    for suite, path in (paths if isinstance(paths, dict) else {}).items():
        if suite in SUITES:
            found.roots[suite] = (file.parent / str(path)).resolve()


def _take_pool(file: Path, pool: Any, found: Found) -> None:  # noqa: ANN401 (what a file may hold)
    for suite, programs in (pool if isinstance(pool, dict) else {}).items():
        for name, inputs in (programs if isinstance(programs, dict) else {}).items():
            for one in sorted(map(str, inputs)):
                program = Program(str(suite), str(name), one)
                if _is_known(program, file.name, found) and program not in found.pool:
                    found.pool.append(program)


def _take_table(file: Path, text: str, found: Found) -> None:
    """The mixes of a table of results: -SPEC.mcf.1-NPB.ft.C."""
    for number, row in enumerate(csv.DictReader(text.splitlines()), start=2):
        parts = [part.split(".") for part in (row["Benchmark"] or "").split("-") if part]
        if not parts or any(len(part) != 3 or part[0] not in (*SUITES, "llama") for part in parts):
            found.leave(f"{file.name}, line {number}", "its mix does not name the suite of each program")
        else:
            _take_mix([Program(*part) for part in parts], 0, f"{file.name}, line {number}", found)


def _take_events(lines: Iterable[str], found: Found) -> None:
    for line in lines:
        try:
            event = as_perf_spells(line)
        except ValueError:
            found.leave(line, "PAPI derives it from several events, so name the processor's own in counters.sets")
            continue
        if event not in found.events:
            found.events.append(event)


def _take_mix(programs: Sequence[Program], processors: int, where: str, found: Found) -> None:
    """A mix of these programs, one to a processor: of more processors in turns, of fewer the first ones."""
    unknown = [program for program in programs if not _is_known(program, where, found)]
    if unknown:
        return
    mix = tuple(programs[at % len(programs)] for at in range(processors or len(programs)))
    if len(mix) < 2:
        found.leave(where, f"{mix[0].name} runs alone there, which every study measures of each program anyway")
    elif mix not in found.mixes:
        found.mixes.append(mix)


def _is_known(program: Program, where: str, found: Found) -> bool:
    if program.suite not in SUITES:
        why = f"{program.name} is of no suite that is known here; add it as a workload with 'progress: barriers'"
        found.leave(f"{where}, {program.suite} {program.name}", why)
        return False
    return True


# Commands in a script.


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each command of BenchCast's, from what comes before the program on."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        try:
            tokens = [*lexer, ";"]
        except ValueError:  # a quote that is not closed: prose
            continue
        words: list[str] = []
        for token in tokens:
            if token.strip(";&|"):
                words.append(token)
                continue
            at = next((at for at, word in enumerate(words) if _COMMAND.fullmatch(word)), None)
            if at is not None and not {"cd", "cp", "rm", "make"} & set(words[:at]):
                yield words
            words = []


def _take_command(file: Path, words: Sequence[str], found: Found) -> None:
    at = next(at for at, word in enumerate(words) if _COMMAND.fullmatch(word))
    if any(Path(word).name == "rdtset" for word in words[:at]):
        found.leave("rdtset", NOT_TAKEN["rdtset"])
    if any("$" in word for word in words[at:]):
        what = f"{file.name}, {shlex.join(words[at:])}"
        found.leave(what, "it has a variable of the shell, whose value is not known")
        return
    options = list(_options(words[at + 1 :]))
    if words[at].endswith(".py"):
        _take_experiment(file, options, found)
    else:
        _take_launch(file, options, found)


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Option and value; `-p8`, `-p 8`, `--SPEC mcf.1` and `--SPEC=mcf.1` are the same to getopt."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            flag = name in ("--userdt", "--nosingle", "--help")
            yield name, value if equals or flag or not rest else rest.pop(0)
        elif word.startswith("-") and len(word) > 1:
            takes = word[1] in WITH_VALUE
            yield word[:2], (word[2:] or (rest.pop(0) if rest else "")) if takes else ""


def _take_launch(file: Path, options: Iterable[tuple[str, str]], found: Found) -> None:
    """One command of bench_cast: a mix."""
    programs, processors, threads = [], 0, False
    for name, value in options:
        if name.removeprefix("--") in (*SUITES, "llama"):
            programs.append(Program.of(name.removeprefix("--"), value))
        elif name == "-p":
            processors = _number(file, name, value)
        elif name == "-c":
            found.label = f"{value}-{'m64' if platform.machine() == 'x86_64' else '64'}"
        elif name == "-m":
            found.reserve = max(found.reserve, _number(file, name, value))
        elif name == "-e":
            _take_event_file(file, value, found)
        elif name in ("-t", "-a"):
            threads = True
        elif name in NOT_TAKEN:
            found.leave(f"{name} {value}".strip(), NOT_TAKEN[name])
    where = f"{file.name}, {' '.join(f'--{one.suite} {one.name}.{one.input}' for one in programs)}"
    if threads:
        why = "a program of several threads is a workload with 'cores'; add it to the catalogue and to the mix"
        found.leave("-t, -a", why)
    if programs:
        _take_mix(programs, processors, where, found)


def _take_experiment(file: Path, options: Iterable[tuple[str, str]], found: Found) -> None:
    """One command of topdown.py: how mixes are drawn."""
    for name, value in options:
        if name in ("--numtests", "--mintests", "--max_apps", "--num_procs"):
            found.drawn[name.removeprefix("--").replace("mintests", "numtests")] = _number(file, name, value)
        elif name == "--eventfile":
            _take_event_file(file, value, found)
        elif name == "--reffile":
            found.leave(f"{name} {value}", "give the table itself with --from, and its mixes are taken")
        elif name in NOT_TAKEN:
            found.leave(f"{name} {value}".strip(), NOT_TAKEN[name])


def _take_event_file(file: Path, named: str, found: Found) -> None:
    """A list of events that a command names, from the script's folder or the one above."""
    for place in (file.parent / named, file.parent.parent / named):
        if place.is_file():
            lines = place.read_text(encoding="utf-8", errors="replace").splitlines()
            _take_events(filter(None, map(str.strip, lines)), found)
            return
    found.leave(f"{named}", "this list of events is not there; give it with --from")


def _number(file: Path, name: str, value: str) -> int:
    if not value.isdecimal() or int(value) > 10_000:
        raise CastmatesError(f"{file}: {name} is '{value}', expected a whole number.")
    return int(value)


def _assigned(text: str) -> dict[str, Any]:
    """The names that a Python file gives to literals, and to collections of these; nothing of it is run."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    known: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = _value(node.value, known)
    return known


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:  # noqa: ANN401 (what a file may hold)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {_value(key, known): _value(value, known) for key, value in pairs if isinstance(key, ast.Constant)}
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        return [_value(each, known) for each in node.elts]
    return None
