"""The language of SPEC's command files, speccmds.cmd and compare.cmd, as its own `specinvoke` reads them.

A line is a comment (`#`), an option that holds for all (`-E NAME VALUE`, `-C FOLDER`, `-b BIND`, `-N HOW`, `-r`,
`-S MILLISECONDS`), or a command for /bin/sh with its own options before it (`-i -o -e FILE`, `-c FOLDER`, `-k`). With
`-r` the commands hold their redirections already. Of several copies (`-C`, one for each) the first is taken.
"""

from dataclasses import dataclass, field

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
