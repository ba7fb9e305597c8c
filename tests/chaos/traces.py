"""What a killed run may leave behind, found without any code of castmates."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet

TABLES = ("windows", "steps", "samples")
TEMPORARY = re.compile(r"\..+\.\d+(@.*)?")
MAKER = re.compile(r"[.-](\d+)-\d+-\d+[.-]")  # in the name of a group or folder: number, start, PID namespace
KNOB = Path("/proc/sys/kernel/numa_balancing")  # which launches turn, where they may


class Traces:
    """Everything that bears the name of one test's folder, or the number of one of its runners."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder, self.temporary = folder, temporary
        self.runners: set[int] = set()
        self.knob = KNOB.read_text().strip() if os.geteuid() == 0 and os.access(KNOB, os.W_OK) else None

    def processes(self) -> dict[int, str]:
        """Who works in the folder, or has it on the command line or in the environment: number -> command."""
        found = {}
        mark = os.fsencode(self.folder)
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with suppress(OSError):
                if state_of(int(entry.name)) in "ZX":
                    continue
                words = (entry / "cmdline").read_bytes()
                if b"measure_launch" in words and b"python" in words.split(b"\0")[0] and mark in _place(entry):
                    self.runners.add(int(entry.name))
                if mark in words or mark in _place(entry) or mark in (entry / "environ").read_bytes():
                    found[int(entry.name)] = words.replace(b"\0", b" ").decode(errors="replace")[:200]
        return found

    def groups(self) -> list[Path]:
        """The control groups of our runners, in all hierarchies."""
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        tops = {Path(words[1]) for words in mounts if words[2] in ("cgroup", "cgroup2")}
        groups = (Path(place, name) for top in tops for place, names, _ in os.walk(top) for name in names)
        return [one for one in groups if one.name.startswith("castmates.") and self._is_ours(one.name)]

    def folders(self) -> list[Path]:
        """The scratch folders of our runners, in memory and on disk."""
        in_memory = [one for one in Path("/dev/shm").glob("castmates-*") if self._is_ours(one.name)]
        return in_memory + list(self.temporary.glob("castmates-*"))

    def locks(self) -> list[str]:
        """The machine's locks that a runner of ours holds."""
        held = []
        for lock in (Path("/run/lock/castmates.lock"), Path("/tmp/castmates.lock")):
            with suppress(FileNotFoundError):
                inode = str(lock.stat().st_ino)
                for line in Path("/proc/locks").read_text().splitlines():
                    words = line.split()
                    if "->" not in words and words[5].endswith(f":{inode}") and int(words[4]) in self.runners:
                        held.append(line)
        return held

    def turned(self) -> list[str]:
        """The knob, where it is not as it was before the first launch."""
        if self.knob is None or (now := KNOB.read_text().strip()) == self.knob:
            return []
        return [f"{KNOB} is '{now}', and was '{self.knob}'"]

    def changes(self) -> list[str]:
        """What is written down as changed and not as put back."""
        open_: dict[int, str] = {}
        with suppress(FileNotFoundError):
            for line in (self.temporary / "state/journal").read_text().splitlines():
                entry = json.loads(line)
                if "close" in entry:
                    open_.pop(entry["close"])
                else:
                    open_[entry["open"]] = line
        return list(open_.values())

    def everything(self) -> list[str]:
        """All of it, in words."""
        processes = [f"process {pid}: {words}" for pid, words in self.processes().items()]
        return [*processes, *map(str, self.groups() + self.folders()), *self.locks(), *self.turned(), *self.changes()]

    def _is_ours(self, name: str) -> bool:
        named = MAKER.search(name)
        return named is not None and int(named[1]) in self.runners


def state_of(pid: int) -> str:
    """The letter for what a process does."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def parent_of(pid: int) -> int:
    """The process that would be notified of its end."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _place(entry: Path) -> bytes:
    return os.fsencode((entry / "cwd").readlink())


def assert_whole(results: Path) -> None:
    """Check that every file that bears its final name can be read to its end, and that records have their tables."""
    for file in _files(results):
        if file.suffix == ".json":
            json.loads(file.read_text())
        elif file.suffix == ".parquet":
            pyarrow.parquet.read_table(file)
        elif file.suffix == ".csv":
            assert file.read_text().endswith("\n"), file
    for record in results.glob("launches/*/*/launch.json"):
        told = json.loads(record.read_text())
        counts = {table: pyarrow.parquet.read_table(record.parent / f"{table}.parquet") for table in TABLES}
        assert len(counts["windows"]["window"].unique()) == told["windows"], record
        assert told["status"] in ("measured", "failed"), record


def _files(results: Path) -> Iterator[Path]:
    for file in results.rglob("*"):
        if file.is_file() and not TEMPORARY.fullmatch(file.name):
            yield file
