"""SPEC CPU2017: a run directory that runcpu has set up, run from a copy of it and judged by the suite's own rules."""

import re
import resource
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from castmates.workloads.suites import job
from castmates.workloads.suites.job import Step, SuiteError, digest_of, last_words, run

# The language of SPEC's command files, speccmds.cmd and compare.cmd, as its own `specinvoke` reads them.
#
# A line is a comment (`#`), an option that holds for all (`-E NAME VALUE`, `-C FOLDER`, `-b BIND`, `-N HOW`, `-r`, `-S
# MILLISECONDS`), or a command for /bin/sh with its own options before it (`-i -o -e FILE`, `-c FOLDER`, `-k`). With
# `-r` the commands hold their redirections already. Of several copies (`-C`, one for each) the first is taken.

NO_INPUT = {"n": "< /dev/null", "z": "< /dev/null", "f": "< /dev/null", "c": "0<&-"}


@dataclass(frozen=True)
class Command:
    """A line for the shell."""

    line: str
    output: str = ""  # the file its standard output goes to
    errors: str = ""
    may_fail: bool = False


@dataclass
class CommandFile:
    """What a file of SPEC's commands holds."""

    folder: str = ""  # in which the first copy was to run
    environment: dict[str, str] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)


class NotUnderstood(ValueError):
    """A line that specinvoke would refuse; the message names it."""


def parse(text: str) -> CommandFile:
    """Read a command file."""
    found, raw = CommandFile(), []
    bind, redirects, no_input = "", True, NO_INPUT["c"]
    for number, written in enumerate(text.splitlines(), start=1):
        line = written.strip()
        if line == "__END__":
            break
        if not line or line.startswith("#"):
            continue
        option, rest = line[:2], line[2:].strip()
        if option in ("-C", "-u"):
            found.folder = found.folder or rest
        elif option == "-E":
            name, _, value = rest.partition(" ")
            found.environment[name] = value.strip()
        elif option == "-b":
            bind = bind or rest
        elif option == "-r":
            redirects = False
        elif option == "-N":
            no_input = NO_INPUT.get(rest[:1].lower(), no_input)
        elif option != "-S":
            raw.append(_options(line, number))
    for options, command in raw:
        line = command.replace("$BIND", bind).replace("$SPECCOPYNUM", "0")
        if redirects:
            line += _redirections(options, no_input)
        folder = options.get("c")
        line = f"cd {folder} && {line}" if folder and not found.folder else line
        found.commands.append(Command(line, options.get("o", ""), options.get("e", ""), "k" in options))
    if not found.commands:
        raise NotUnderstood("it has no command")
    return found


def _options(line: str, number: int) -> tuple[dict[str, str], str]:
    """Take the options off the front of a command."""
    options: dict[str, str] = {}
    rest = line
    while rest.startswith("-"):
        letter, rest = rest[1:2], rest[2:]
        if letter == "k":
            options["k"] = ""
        elif letter in ("c", "i", "o", "e") and rest[:1].isspace():
            value, *more = rest.split(None, 1)
            options[letter], rest = value, more[0] if more else ""
        else:
            raise NotUnderstood(f"line {number}: '-{letter}' is no option of specinvoke")
        rest = rest.strip()
    if not rest:
        raise NotUnderstood(f"line {number}: there is no command")
    return options, rest


def _redirections(options: dict[str, str], no_input: str) -> str:
    words = [f"< {options['i']}" if "i" in options else no_input]
    words += [f"> {options['o']}"] if "o" in options else []
    words += [f"2>> {options['e']}"] if "e" in options else []
    return " " + " ".join(words)


def from_dry_run(output: str) -> list[str]:
    """The commands in what `specinvoke -n` prints: the line after each `# Starting run`; none where more is needed."""
    lines = output.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("# Starting run for copy #0")]
    found = [lines[number + 1] for number in starts if number + 1 < len(lines)]
    return [] if any("spec_empty_file" in line for line in found) else found


COMMANDS, COMPARISONS = "speccmds.cmd", "compare.cmd"
BENCHMARKS = Path("benchspec") / "CPU"
OF_A_RUN = re.compile(r"(?:speccmds|compare)\.(?!cmd$).*|.*\.cmp")  # what specinvoke left there
SEVERAL = re.compile(r"[;|]|&&|&\s*$")  # a line that is more than one command of the shell


class Benchmark:
    """A run directory such as benchspec/CPU/505.mcf_r/run/run_base_refrate_mytest-m64.0000."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.source = root, root / folder
        self.home = self.source.parent.parent
        self.name = self.home.name

    def digest(self) -> str:
        """Digest the programs and commands."""
        return digest_of([self.source / COMMANDS, *self._programs()])

    @cached_property
    def _file(self) -> CommandFile:
        return _parsed(self.source / COMMANDS)

    def _programs(self) -> list[Path]:
        """The binaries, unpatched, that the commands begin with."""
        found = dict.fromkeys(shlex.split(command.line)[0] for command in self._file.commands)
        return [self._program(word) for word in found]

    def _program(self, word: str) -> Path:
        name = Path(word).name
        for place in (self.source / name, self.home / "exe" / name):
            if place.is_file():
                return place
        if "_base." in name or "_peak." in name:
            raise SuiteError(
                f"{self.source}: the program '{name}' of {COMMANDS} is neither there nor in {self.home / 'exe'}; build "
                "it (runcpu --action=setup)"
            )
        raise SuiteError(
            f"{self.source / COMMANDS}: a command begins with '{word}', which is not a program of the benchmark: the "
            "config has a 'submit' that would take it off its CPUs; set the directory up again without one"
        )

    def prepare(self, place: Path) -> None:
        """Fill an empty folder with what a run needs."""
        # The commands name their own directory, ../run_base_refrate_mytest-m64.0000/mcf_r_base.mytest-m64, so the
        # copy has the same name.
        self._place = place / self.source.name
        self._place.mkdir()
        for program in self._programs():
            if program.parent != self.source:
                (self._place / program.name).symlink_to(program)
        self._copy = job.copy_tree(self.source, self._place, self._left_over())
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))  # some need more than the usual 8 MiB

    def _left_over(self) -> set[str]:
        """What an earlier run left in the directory: taken for a result, it would hide that there is none."""
        there = {file.name for file in self.source.iterdir()}
        outputs = {name for command in self._file.commands for name in (command.output, command.errors)}
        outputs |= {file.name for file in self._expected()}
        inputs = {file.name for folder in self._data("input") for file in folder.iterdir()}
        return {name for name in there if OF_A_RUN.fullmatch(name)} | (outputs & there) - inputs

    def _data(self, what: str) -> list[Path]:
        size = self.source.name.split("_")[2]
        folders = [self.home / "data" / one / what for one in (size, "all")]
        return [folder for folder in folders if folder.is_dir()]

    def _expected(self) -> Iterator[Path]:
        return (file for folder in self._data("output") for file in sorted(folder.iterdir()) if file.is_file())

    def renew(self) -> None:
        """Make the folder what it was before the first run."""
        self._copy.renew()

    def steps(self) -> list[Step]:
        """The commands of one run, in order."""
        lines = self._as_specinvoke_says or [command.line for command in self._file.commands]
        may_fail = [command.may_fail for command in self._file.commands]
        return [self._step(line, may, self._file) for line, may in zip(lines, may_fail, strict=True)]

    @cached_property
    def _as_specinvoke_says(self) -> list[str]:
        """The commands as the suite's own program reads them; none where it is not there or cannot run here."""
        program = self.root / "bin" / "specinvoke"
        try:
            done = subprocess.run(
                [program, "-n", COMMANDS], cwd=self.source, capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        lines = from_dry_run(done.stdout) if done.returncode == 0 else []
        return lines if len(lines) == len(self._file.commands) else []

    def _step(self, line: str, may_fail: bool, file: CommandFile) -> Step:
        for old in {file.folder, str(self.source)}:
            if old.startswith("/"):
                line = line.replace(old, str(self._place))
        whole = line if SEVERAL.search(line) else f"exec {line}"
        output = self._place.parent / "output"
        return Step(line, ["/bin/sh", "-c", whole], self._place, output, file.environment, may_fail)

    def wrong(self) -> str:
        """Compare what the last run wrote with what the suite expects."""
        comparisons = self.source / COMPARISONS
        return self._compared(comparisons) if comparisons.is_file() else self._byte_by_byte()

    def _compared(self, comparisons: Path) -> str:
        """Run the comparisons that runcpu wrote: specdiff with the tolerances of the benchmark."""
        file = _parsed(comparisons)
        for command in file.commands:
            step = self._step(command.line, True, file)
            status = run(step)
            if status != 0:
                said = self._place / command.output if command.output else step.output
                what = command.output.removesuffix(".cmp") or command.line
                return f"{what} is not what SPEC expects ({COMPARISONS}, status {status}){last_words(said)}"
        return ""

    def _byte_by_byte(self) -> str:
        expected = list(self._expected())
        if not expected:
            return f"there is neither {COMPARISONS} nor data/*/output to compare with"
        for file in expected:
            made = self._place / file.name
            how = "is missing" if not made.is_file() else "differs" if made.read_bytes() != file.read_bytes() else ""
            if how:
                return (
                    f"{file.name} {how}; without {COMPARISONS} in {self.source} outputs are compared byte by byte, "
                    "which leaves no tolerance: let runcpu run the benchmark there once, so that it writes that file"
                )
        return ""


def _parsed(file: Path) -> CommandFile:
    try:
        return parse(file.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError as problem:
        raise SuiteError(
            f"{file} cannot be read ({problem.strerror}); runcpu --action=setup, or a run, writes it"
        ) from None
    except NotUnderstood as problem:
        raise SuiteError(f"{file}: {problem}") from None
