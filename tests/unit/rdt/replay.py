"""Replays the transcripts of real kernels on the fake, line by line.

A line is an operation (`mkdir g1 -> OK | ok`), a shell command (`$ ...`) with its output, or a note that the recording
script printed. Whatever is not compared is counted under the reason for it.
"""

import ast
import errno
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from castmates.rdt.fake import FakeResctrl

DATA = Path(__file__).parents[2] / "data" / "resctrl"
ROOT = "/sys/fs/resctrl"
OPERATION = re.compile(r"(?P<op>.*?)\s+-> (?P<result>[A-Z0-9]+)\s*\| (?P<status>.*?)(?:  => (?P<show>.*))?", re.DOTALL)
MOUNT_REFUSALS = {
    errno.EINVAL: f"mount: {ROOT}: wrong fs type, bad option, bad superblock on resctrl, missing codepage or helper"
    " program, or other error.",
    errno.EBUSY: f"mount: {ROOT}: resctrl already mounted on {ROOT}.",
    errno.ENOENT: f"mount: {ROOT}: mount point does not exist.",
}
MADE_UP = "occupancy and traffic that the laboratory made up, or names of real processes"
BLANK = "blank lines and headings"
MORE = "       dmesg(1) may have more information after failed mount system call."


class Replay:
    """One transcript and the fake that is to answer it."""

    def __init__(self, name: str, fake: FakeResctrl) -> None:
        self.name, self.fake = name, fake
        self.lines = (DATA / f"{name}.txt").read_text().rstrip("\n").split("\n")
        self.at = 0
        self.section = ""
        self.notes: Iterator[str | None] = iter(())  # what the script prints, in its order; None: not compared
        self.names: dict[str, int] = {}  # of processes, as the transcript writes them: "<C>"
        self.before: dict[str, Callable[[], object]] = {}  # operation or section -> what the script does silently first
        self.after: dict[str, Callable[[], object]] = {}
        self.shell: list[tuple[str, Callable[[], list[str]]]] = []
        self.current = ""  # shell command
        self.known = "ok"  # the status after the last operation
        self.operations = self.compared = 0
        self.skipped: Counter[str] = Counter()

    def run(self) -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line in ("mkdir a", "rmdir a"):  # a name with a newline in it
                self.lines[self.at : self.at + 2] = [line + "\n" + self.lines[self.at + 1]]
            elif not line:
                self.skip(BLANK)
            elif line.startswith("=== "):
                self.skip(BLANK)
                self.section = line.removeprefix("=== ")
                self.before.get(f"=== {self.section}", lambda: None)()
            elif line.startswith("$ "):
                self.command(line.removeprefix("$ "))
            elif found := OPERATION.fullmatch(line):
                self.operation(found)
            else:
                self.note()

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1
        self.at += 1

    def expect(self, said: str) -> None:
        line = self.lines[self.at] if self.at < len(self.lines) else None
        assert said == line, f"{self.name}.txt:{self.at + 1}: the fake says {said!r}, the kernel said {line!r}"
        self.compared += 1
        self.at += 1

    # Operations.

    def operation(self, found: re.Match[str]) -> None:
        op = found["op"]
        key = f"{self.section}: {op}"
        self.before.get(key, lambda: None)()
        result = self.result(lambda: self.perform(op))
        said = f"{self.named(op)} -> {result} | {self.status()}"
        if found["show"] is not None:
            shown = re.sub("/cpus$", "/cpus_list", op.split()[1])
            said += "  => " + self.named(" / ".join(self.text(shown).rstrip("\n").split("\n")))
        told = f"{op} -> {found['result']} | {found['status']}"
        told += "" if found["show"] is None else "  => " + found["show"]
        assert said == told, f"{self.name}.txt, section {self.section}: the fake says {said!r}, the kernel {told!r}"
        self.operations += 1
        self.at += 1
        self.after.get(key, lambda: None)()

    def result(self, call: Callable[[], object]) -> str:
        try:
            call()
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        return "OK"

    def status(self) -> str:
        """Print what the script prints of the last command's status: against the one before."""
        now = self.text("info/last_cmd_status").rstrip("\n")
        before, self.known = self.known, now
        if now == before != "ok":
            return "(last_cmd_status left as it was)"
        if before != "ok" and now.startswith(before + "\n"):
            return "(appended) " + self.named(now[len(before) + 1 :].replace("\n", " ; "))
        return self.named(now.replace("\n", " ; "))

    def text(self, path: str) -> str:
        try:
            return self.fake.read(path)
        except OSError as error:
            return f"<{errno.errorcode[error.errno or 0]}>"

    def flat(self, path: str) -> str:
        return self.text(path).replace("\n", "|")

    def named(self, text: str) -> str:
        for name, pid in self.names.items():
            text = text.replace(str(pid), name)
        return text

    def numbered(self, text: str) -> str:
        for name, pid in self.names.items():
            text = text.replace(name, str(pid))
        return text

    def perform(self, op: str) -> object:
        verb, _, rest = op.partition(" ")
        if long := re.fullmatch(r"(\w+ )(x+)\.\.\.\[(\d+)\]", op):
            rest = "x" * (int(long[3]) - len(long[1]))
        fake = self.fake
        match verb:
            case "write":
                path, _, data = rest.partition(" ")
                return fake.write(path, ast.literal_eval(self.numbered(data)))
            case "mkdir":
                return fake.make(rest)
            case "rmdir":
                return fake.remove(rest)
            case "unlink":
                return fake.unlink(rest)
            case "create":
                return fake.open(rest, "w", create=True).close()
            case "symlink":
                return fake.symlink("ln")
            case "chmod":
                return fake.chmod(rest.split()[0], int(rest.split()[1], 8))
            case "chown":
                return fake.chown(rest.split()[0], 1, 1)
            case "truncate" | "append":
                return fake.open("g1/schemata", "w", create=True).close()
            case "rename":
                return fake.rename(*RENAMES.get(rest, rest.split()))
        raise AssertionError(f"{self.name}.txt:{self.at + 1}: nobody knows how to do {op!r}")

    # Notes.

    def note(self) -> None:
        said = next(self.notes, "<the script prints nothing more>")
        if said is None:
            self.skip(MADE_UP)
        else:
            self.expect(self.named(said))

    # Shell.

    def command(self, command: str) -> None:
        self.at += 1
        self.compared += 1
        self.current = command
        for pattern, handler in self.shell:
            if re.match(pattern, command):
                for said in handler():
                    self.expect(self.named(said))
                return
        for part in command.split("; "):
            for said in self.simple(self.numbered(part)):
                self.expect(self.named(said))

    def simple(self, command: str) -> list[str]:
        """Return what a simple command prints."""
        words = command.split()
        match words:
            case ["cat", *paths, "|", "wc", "-l"]:
                return [str(sum(len(self.lines_of(path)) for path in paths))]
            case ["cat", *paths]:
                return [line for pattern in paths for path in self.glob(pattern) for line in self.lines_of(path)]
            case ["ls", *paths]:
                return self.ls(paths)
            case ["grep", "-c", "resctrl", "/proc/mounts"]:
                return [str(len(self.fake.proc("mounts").splitlines()))]
            case ["grep", "resctrl", "/proc/mounts"]:
                return self.fake.proc("mounts").splitlines()
            case ["echo", value, ">", path] if path.endswith("/online"):
                self.fake.set_online(int(re.sub(r".*/cpu(\d+)/online", r"\1", path)), value == "1")
                return []
            case ["umount", _]:
                self.fake.umount()
                return []
            case ["mount", "-t", "resctrl", *options, _, where]:
                return self.mount(options[-1] if options else "", where)
            case ["mkdir", "-p", _]:
                return []
        raise AssertionError(f"{self.name}.txt:{self.at}: nobody knows what {command!r} says")

    def mount(self, options: str, where: str) -> list[str]:
        try:
            self.fake.mount(options)
        except OSError as error:
            text = MOUNT_REFUSALS[error.errno or 0]
            if where != ROOT and error.errno == errno.EBUSY:
                text = f"mount: {where}: x already mounted or mount point busy."
            return [text, MORE, "[exit 32]"]
        return []

    def lines_of(self, path: str) -> list[str]:
        text = (
            self.fake.proc(path.removeprefix("/proc/")) if path.startswith("/proc/") else self.fake.read(inside(path))
        )
        return text.removesuffix("\n").split("\n") if text else []

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that a pattern with stars in folder or file names stands for."""
        if "*" not in pattern:
            return [pattern]
        found = [""]
        for part in inside(pattern).split("/"):
            wanted = re.compile(re.escape(part).replace(r"\*", ".*"))
            found = [
                f"{folder}/{name}".lstrip("/")
                for folder in found
                if folder in ("", "info") or not self.is_file(folder)
                for name in self.fake.names(folder)
                if wanted.fullmatch(name)
            ]
        return [path for path in found if self.is_file(path)]

    def is_file(self, path: str) -> bool:
        return self.result(lambda: self.fake.names(path)) == "ENOTDIR"

    def ls(self, paths: list[str]) -> list[str]:
        said, missing = [], []
        for path in paths:
            try:
                names = self.fake.names(inside(path))
            except FileNotFoundError:
                missing.append(f"ls: cannot access '{path}': No such file or directory")
                continue
            if len(paths) > 1:
                said += [*([""] if said else []), f"{path}:"]
            said += names
        return [*missing, *said, *(["[exit 2]"] if missing else [])]


RENAMES = {
    "m1 -> g1/mon_groups/mX": ("g1/mon_groups/m1", "g1/mon_groups/mX"),
    "back": ("g1/mon_groups/mX", "g1/mon_groups/m1"),
    "m1 -> mon_groups/m1 (root)": ("g1/mon_groups/m1", "mon_groups/m1"),
}


def inside(path: str) -> str:
    """Return a path relative to the mount point."""
    return path.removeprefix(ROOT).strip("/")
