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

from pydantic import TypeAdapter, ValidationError

from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.study.counter_keys import EventText, event_name

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
UNKNOWN = "this option has no counterpart here"
BENCH_EVENTS, TOPDOWN_EVENTS = "BenchCast_PAPI_events.cfg", "TOPDOWN_events.cfg"  # that are counted by default
_COMMAND = re.compile(r"(?:\S*/)?(?:bench_cast|topdown\.py|experiment_BenchCast\.py)")
_EVENT = re.compile(r"[A-Za-z][\w.:-]*")
_WRITTEN = TypeAdapter(EventText)


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
    draws: bool = False  # whether a command draws mixes
    drawn: dict[str, int] = field(default_factory=dict)  # numtests, max_apps, num_procs
    recorded: list[tuple[list[Program], str]] = field(default_factory=list)  # the mixes of tables, and where they stand
    wanted: dict[str, str] = field(default_factory=dict)  # files that commands use, and why they are worth giving
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
    lines = _without_comments(text)
    values = _assigned(text) if file.suffix == ".py" else {}
    if "PATHS" in values:
        _take_roots(file, found)
    elif "exp_list" in values:
        _take_pool(file, values, found)
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
    values = _assigned(file.read_text(encoding="utf-8"))
    for suite, path in _entries(values.get("PATHS"), file, found):
        if suite in SUITES and isinstance(path, str):
            found.roots[suite] = (file.parent / path).resolve()
    _leave_computed(values, file, found)


def _take_pool(file: Path, values: Mapping[str, Any], found: Found) -> None:
    for suite, programs in _entries(values["exp_list"], file, found):
        for name, inputs in _entries(programs, file, found):
            for one in sorted(str(one) for one, _ in _entries(inputs, file, found)):
                program = Program(str(suite), str(name), one)
                if _is_known(program, file.name, found) and program not in found.pool:
                    found.pool.append(program)
    _leave_computed(values, file, found)


def _take_table(file: Path, text: str, found: Found) -> None:
    """The mixes of a table of results: -SPEC.mcf.1-NPB.ft.C."""
    for number, row in enumerate(csv.DictReader(text.splitlines()), start=2):
        parts = [part.split(".") for part in (row["Benchmark"] or "").split("-") if part]
        if not parts or any(len(part) != 3 or part[0] not in (*SUITES, "llama") for part in parts):
            found.leave(f"{file.name}, line {number}", "its mix does not name the suite of each program")
        else:
            found.recorded.append(([Program(*part) for part in parts], f"{file.name}, line {number}"))


def _without_comments(text: str) -> list[str]:
    return [line for each in text.splitlines() if (line := each.partition("#")[0].strip())]


def _take_events(lines: Iterable[str], found: Found) -> None:
    for line in lines:
        try:
            event = _WRITTEN.validate_python(line)
        except ValidationError as problem:
            derived = "PAPI derives it from several events, so name the processor's own in counters.sets"
            expected = f"counters.sets takes {problem.errors()[0]['msg'].removeprefix('Value error, ')}"
            found.leave(line, derived if line.startswith("PAPI_") else expected)
            continue
        if event_name(event) not in map(event_name, found.events):
            found.events.append(event)


def take_recorded(found: Found) -> None:
    """The mixes of tables, once it is known on how many processors a command repeats them."""
    processors = found.drawn.get("num_procs", 0)
    if found.recorded and not processors:
        why = "topdown.py repeats a table's programs on all processors of the machine there; repeat them in the mixes"
        found.leave("--num_procs is not given", why)
    for programs, where in found.recorded:
        _take_mix(programs, processors, where, found)


def _take_mix(programs: Sequence[Program], processors: int, where: str, found: Found) -> None:
    """A mix of these programs, one to a processor: of more processors in turns."""
    unknown = [program for program in programs if not _is_known(program, where, found)]
    if unknown:
        return
    if 0 < processors < len(programs):
        why = f"BenchCast refuses {counted(len(programs), 'program')} on {counted(processors, 'processor')}"
        found.leave(where, why)
        return
    mix = tuple(programs[at % len(programs)] for at in range(processors or len(programs)))
    if len(mix) < 2:
        found.leave(where, f"{mix[0].name} has no other program beside it, and what it does alone every study measures")
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
        _take_experiment(file, Path(words[at]).name, options, found)
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
    programs, processors, threads, listed = [], 0, False, False
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
            listed = True
            _take_event_file(file, value, found)
        elif name in ("-t", "-a"):
            threads = True
        elif name in NOT_TAKEN:
            found.leave(f"{name} {value}".strip(), NOT_TAKEN[name])
        else:
            found.leave(f"{name} {value}".strip(), UNKNOWN)
    where = f"{file.name}, {' '.join(f'--{one.suite} {one.name}.{one.input}' for one in programs)}"
    if threads:
        why = "a program of several threads is a workload with 'cores'; add it to the catalogue and to the mix"
        found.leave("-t, -a", why)
    if not listed:
        found.wanted[BENCH_EVENTS] = "bench_cast counts its events where no -e is given; give it with --from"
    if programs and not processors:
        why = "without -p it repeats them on all processors of the machine there; repeat them in `antagonists`"
        found.leave(where, why)
    if programs:
        _take_mix(programs, processors, where, found)


def _take_experiment(file: Path, script: str, options: Iterable[tuple[str, str]], found: Found) -> None:
    """One command of topdown.py: how mixes are drawn."""
    named = dict(options)
    topdown = script == "topdown.py"
    found.draws |= "--reffile" not in named
    for name, value in named.items():
        if name == "--num_procs" and not topdown:
            found.leave(f"{name} {value}", f"{script} reads it and takes all processors of the machine there")
        elif name in ("--numtests", "--mintests", "--max_apps", "--num_procs"):
            found.drawn[name.removeprefix("--").replace("mintests", "numtests")] = _number(file, name, value)
        elif name == "--eventfile":
            _take_event_file(file, value, found)
        elif name == "--reffile":
            found.wanted[Path(value).name] = "give this table with --from, and its mixes are taken"
        elif name in NOT_TAKEN:
            found.leave(f"{name} {value}".strip(), NOT_TAKEN[name])
        else:
            found.leave(f"{name} {value}".strip(), UNKNOWN)
    if "--eventfile" not in named:
        default = TOPDOWN_EVENTS if topdown else BENCH_EVENTS
        found.wanted[default] = f"{script} counts its events where no list is given; give it with --from"


def _take_event_file(file: Path, named: str, found: Found) -> None:
    """A list of events that a command names, from the script's folder or the one above."""
    for place in (file.parent / named, file.parent.parent / named):
        if place.is_file():
            _take_events(_without_comments(place.read_text(encoding="utf-8", errors="replace")), found)
            return
    found.leave(f"{named}", "this list of events is not there; give it with --from")


def _number(file: Path, name: str, value: str) -> int:
    if not value.isdecimal() or int(value) > 10_000:
        raise CastmatesError(f"{file}: {name} is '{value}', expected a whole number.")
    return int(value)


# Values of a Python file, of which nothing is run.

CHANGED = ""  # the name under which stand the lines that may change a value


class Computed(NamedTuple):
    """In place of a value that only running the file would show."""

    line: int


def _leave(one: Computed, file: Path, found: Found) -> None:
    found.leave(f"{file.name}, line {one.line}", "it is computed, and nothing is run")


def _leave_computed(values: Mapping[str, Any], file: Path, found: Found) -> None:
    for one in values.get(CHANGED, ()):
        _leave(one, file, found)


def _entries(value: Any, file: Path, found: Found) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 (what a file may hold)
    """Name and value of a mapping, each element and itself of a list; a sentence for what is computed."""
    if isinstance(value, list):
        pairs = [(each, each) for each in value]
    elif isinstance(value, dict):
        pairs = list(value.items())
    else:
        pairs = [(value, value)] if isinstance(value, Computed) else []
    for pair in pairs:
        computed = next((one for one in pair if isinstance(one, Computed)), None)
        if computed is None:
            yield pair
        else:
            _leave(computed, file, found)


def _assigned(text: str) -> dict[str, Any]:
    """The names that a Python file gives to literals, and to collections of these; nothing of it is run."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    known: dict[str, Any] = {}
    changed: list[Computed] = []
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and all(isinstance(one, ast.Name) for one in targets):
            value = _value(node.value, known) if node.value else Computed(node.lineno)
            known |= {one.id: value for one in targets if isinstance(one, ast.Name)}
        elif any(isinstance(one, ast.Name) and one.id in known for one in ast.walk(node)):
            changed.append(Computed(node.lineno))
    return {**known, CHANGED: changed}


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:  # noqa: ANN401 (what a file may hold)
    computed = Computed(node.lineno)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id, computed)
    if isinstance(node, ast.Dict):
        pairs = [(key and _value(key, known), value) for key, value in zip(node.keys, node.values, strict=True)]
        return {  # without a key it is another mapping, **A
            key if isinstance(key, str) else Computed(value.lineno): _value(value, known) for key, value in pairs
        }
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        return [_value(each, known) for each in node.elts]
    return computed
