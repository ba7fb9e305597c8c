"""What the script that recorded `ref-*.txt` does besides its printed operations: processes, sleeps, notes, shell."""

import re
import stat
from collections.abc import Iterator

from castmates.rdt.fake import FakeResctrl, Kernel, SetNumbers
from tests.unit.rdt.replay import ROOT, Replay

MACHINE = "says what machine and kernel it is, not what resctrl does"
PROCESSES = "lists the processes of a real machine"
DATES = "shows dates"
BUSY = 6 << 20  # bytes that the busy process of the script leaves in the cache


class Reference:
    """The script beside one transcript."""

    def __init__(self, name: str, kernel: Kernel) -> None:
        self.source = SetNumbers()
        self.fake = FakeResctrl(kernel=kernel, source=self.source, options=None)
        self.replay = Replay(name, self.fake)
        text = "\n".join(self.replay.lines)
        # The script wrote its own pid, and that of its first child in hex, in clear.
        self.me = int(re.findall(r"write tasks '(\d+)\\n'", text)[1])
        self.first = int(re.findall(r"write g1/tasks '0x(\w+)\\n'", text)[0], 16)
        self.shells = [int(pid) for pid in re.findall(r"(\d+) sleep (?:79|77|78)", text)]
        self.busy = int(re.findall(r"write g1/tasks '(\d\d+)\\n'", text)[-1])
        self.stranger = int(re.findall(r'sh -c "echo (\d+) >', text)[0])
        self.fake.processes.fork(pid=self.me)
        self.handles = ()
        self.replay.notes = self.notes()
        self.replay.before = {
            "=== tasks": self.begin_processes,
            "=== monitor data": self.begin_busy,
            "=== removal": self.open_files,
            "=== pid edge": lambda: self.fake.processes.fork(self.me, pid=self.stranger, uid=65534),
            "removal: write info/L3_MON/max_threshold_occupancy '589824\\n'": self.close_files,
            "limits: rmdir mon_groups/again": self.remove_many,
        }
        for line in self.replay.lines:
            if found := re.match(r"mkdir mon_groups/q(\d+) ", line):
                self.many = int(found[1])
                self.replay.before[f"limits: mkdir mon_groups/q{self.many}"] = self.make_many
        self.replay.after = {
            "limits: rmdir mon_groups/again": self.rest,
            "pid edge: mkdir p": lambda: self.fake.chmod("p/tasks", 0o666),
        }
        self.replay.shell = [
            (r"uname |dmesg ", self.about_machine),
            (r"ls -la ", self.list_bare),
            (r"cd \S+ && find ", self.find),
            (r"cd \S+/info && for f in", self.info_files),
            (r"cd \S+ && for f in", self.group_files),
            (r"ls -l ", self.owner),
            (r"printf |echo \"L3|bash -c", self.write_by_shell),
            (r"setpriv ", self.as_nobody),
            (r"flock ", self.flock),
        ]

    def run(self) -> Replay:
        with self.fake.acting(self.me):
            self.replay.run()
        assert next(self.replay.notes, None) is None
        return self.replay

    # What happens silently.

    def begin_processes(self) -> None:
        fork = self.fake.processes.fork
        fork(self.me, pid=self.first)
        second = fork(self.me, pid=self.first + 1)
        fork(second)
        self.replay.names = {"<C>": self.first, "<C2>": second}

    def begin_busy(self) -> None:
        self.fake.processes.fork(self.me, pid=self.busy)
        self.source.lying["g1", 0] = BUSY

    def open_files(self) -> None:
        self.handles = (
            self.fake.open("g1/schemata", "rw"),
            self.fake.open("g1/mon_data/mon_L3_00/llc_occupancy"),
            self.fake.open("g1/tasks", "rw"),
        )

    def close_files(self) -> None:
        for handle in self.handles:
            handle.close()
        self.fake.processes.exit(self.busy)
        self.fake.processes.exit(self.first)

    def make_many(self) -> None:
        for number in range(self.many):
            self.fake.make(f"mon_groups/q{number}")

    def remove_many(self) -> None:
        for number in range(7):
            self.fake.remove(f"c{number}")

    def rest(self) -> None:
        self.source.lying.clear()
        self.fake.advance(12)

    # What the script prints.

    def notes(self) -> Iterator[str | None]:
        fake, text, flat = self.fake, self.replay.text, self.replay.flat
        yield flat("g1/size")
        yield from self.odd_writes()
        yield f"bit_usage {text('info/L3/bit_usage')}".rstrip("\n")
        yield f"bit_usage {text('info/L3/bit_usage')}".rstrip("\n")
        yield flat("g3/schemata")
        yield "0 -> self:"
        yield f"self in g1: {str(self.me) in text('g1/tasks').split()}"
        yield f"self in g1: {str(self.me) in text('g1/tasks').split()}"
        shell, *children = self.shells
        fake.processes.fork(self.me, pid=shell)
        with fake.acting(shell):
            fake.write("g1/tasks", f"{shell}\n")
        for child in children:
            fake.processes.fork(shell, pid=child)
        yield None
        yield f"in g1: {len(text('g1/tasks').split())}"
        for child in children:  # the shell, which nobody waits for, stays as a zombie
            fake.processes.exit(child)
        yield f"after kill in g1: {len(text('g1/tasks').split())}"
        yield f"ctrl tasks still lists it: {self.tasks('g1/tasks')}"
        yield f"mon tasks after moving to root: {self.tasks('g1/mon_groups/m1/tasks')}"
        yield f"mon_groups/rm1: {self.tasks('mon_groups/rm1/tasks')}"
        yield f"root {text('cpus_list').strip()}"
        for _ in range(6):
            yield f"   root {text('cpus_list').strip()}"
        for group in ("g1", "g1", "g1/mon_groups/m3"):
            yield f"{group[-2:]} {text(group + '/cpus_list').strip()}"
        for _ in range(4):
            yield None
            fake.advance(1)
        for _ in range(2):
            fake.advance(4)
            yield None
        yield from self.faults()
        yield f"tasks went to root: {str(self.first) in text('tasks').split()}"
        yield from self.removed_files()
        yield f"cpus back: {text('cpus_list').strip()}"
        numbers = [text(f"info/{file}").strip() for file in ("L3/num_closids", "MB/num_closids", "L3_MON/num_rmids")]
        made = len([group for group in fake.groups if re.fullmatch(r"c\d", group.name)])
        yield f"ctrl groups made: {made} num_closids {numbers[0]} {numbers[1]} num_rmids {numbers[2]}"
        made = [group.path for group in fake.groups if re.fullmatch(r"q\d+", group.name)]
        for path in made:
            fake.remove(path)
        yield f"mon groups made: {len(made)}"
        yield f"{flat('b/schemata')} {text('info/L3/bit_usage').strip()}"
        yield flat("schemata")
        yield f"bit_usage {text('info/L3/bit_usage')}".rstrip("\n")
        yield f"size {flat('a/size')}"
        yield f"new group c gets {flat('c/schemata')}"
        yield f"bit_usage {text('info/L3/bit_usage')}".rstrip("\n")

    def tasks(self, path: str) -> list[str]:
        return [self.replay.named(pid) for pid in self.replay.text(path).split()]

    def odd_writes(self) -> Iterator[str]:
        with self.fake.open("g1/schemata", "w") as handle:
            yield "write 9000 bytes -> " + self.replay.result(lambda: handle.write(b"L3:0=f\n" * 1285))
            yield self.replay.text("info/last_cmd_status").rstrip("\n")
        with self.fake.open("g1/schemata", "w") as handle:
            for part in (b"L3:0=", b"ff\n"):
                yield f"partial write {part!r} {self.replay.result(lambda part=part: handle.write(part))}"
        yield self.replay.flat("g1/schemata")

    def faults(self) -> Iterator[str | None]:
        for word, how in (("unavailable", "Unavailable"), ("error", "Error"), ("ok", None)):
            for group in self.fake.groups:
                self.fake.fail(group.path, "llc_occupancy", how)
            said = self.replay.text("g1/mon_data/mon_L3_00/llc_occupancy").strip()
            if how is None:
                assert said == str(BUSY)
                yield None
            else:
                yield f"{word}: {said}"

    def removed_files(self) -> Iterator[str]:
        schemata, occupancy, tasks = self.handles
        result, mask = self.replay.result, b"L3:0=f\n"
        yield f"write schemata on removed group: {result(lambda: schemata.write(mask))}"
        yield f"write tasks on removed group: {result(lambda: tasks.write(str(self.first).encode()))}"
        yield f"read schemata on removed group: {result(lambda: schemata.pread(100, 0))}"
        yield f"read occ on removed group: {result(lambda: occupancy.pread(100, 0))}"
        yield f"read tasks on removed group: {result(lambda: tasks.pread(100, 0))}"

    # What its shell commands print.

    def about_machine(self) -> list[str]:
        while (line := self.replay.lines[self.replay.at]) and not line.startswith(("===", "$ ")):
            if line == "nodev\tresctrl":
                self.replay.expect(self.fake.proc("filesystems").rstrip("\n"))
            else:
                self.replay.skip(MACHINE)
            if self.replay.at == len(self.replay.lines):
                break
        return []

    def list_bare(self) -> list[str]:
        assert self.fake.names("") == []
        self.replay.expect("total 0")
        for _ in range(2):
            self.replay.skip(DATES)
        return []

    def find(self) -> list[str]:
        top = re.findall(r"cd (\S+)", self.replay.current)[0].removeprefix(ROOT).strip("/")
        size = " 0" if "%s" in self.replay.current else ""
        found = sorted(self.below(top))
        return [f"{self.fake_mode(path)}{size} {path.removeprefix(top).lstrip('/')}" for path in found]

    def below(self, folder: str) -> Iterator[str]:
        yield folder
        for name in self.fake.names(folder):
            path = f"{folder}/{name}".lstrip("/")
            if self.replay.is_file(path):
                yield path
            else:
                yield from self.below(path)

    def fake_mode(self, path: str) -> str:
        return stat.filemode(self.fake.stat(path).mode)

    def info_files(self) -> list[str]:
        files = sorted(path for path in self.below("info") if self.replay.is_file(path))
        return [f"--- ./{path.removeprefix('info/')}: {self.replay.flat(path)}" for path in files]

    def group_files(self) -> list[str]:
        group = re.findall(r"cd (\S+)", self.replay.current)[0].removeprefix(ROOT)
        files = re.findall(r"for f in ([^;]*);", self.replay.current)[0].split()
        for file in files:
            self.replay.expect(f"--- {file}: {self.replay.flat(f'{group}/{file}')}")
        if not group:
            for _ in range(2):
                self.replay.skip(PROCESSES)
        return []

    def owner(self) -> list[str]:
        line = self.replay.lines[self.replay.at]
        assert line.startswith(self.fake_mode("g1/tasks"))
        assert (line.split()[2:4] == ["daemon", "daemon"]) == (self.fake.stat("g1/tasks").uid == 1)
        self.replay.compared += 1
        self.replay.at += 1
        return []

    def write_by_shell(self) -> list[str]:
        data, path = re.findall(rf'"(L3[^"]*)" ?> ?{ROOT}/([\w/]+)', self.replay.current)[0]
        data = data.replace("\\n", "\n").rstrip("\n") + "\n"
        said = []
        if self.replay.result(lambda: self.fake.write(path, data)) != "OK":
            if self.replay.current.startswith("bash"):
                return ["bash: line 1: echo: write error: Invalid argument", "[exit 1]"]
            said = ["/bin/sh: 1: echo: echo: I/O error"]
        return said + self.replay.simple(self.replay.current.split("; ")[1])

    def as_nobody(self) -> list[str]:
        said = []
        nobody = self.fake.processes.fork(self.me, uid=65534)
        with self.fake.acting(nobody):
            for pid in (self.stranger, 1):
                refused = self.replay.result(lambda pid=pid: self.fake.write("p/tasks", f"{pid}\n")) != "OK"
                said += ["sh: 1: echo: echo: I/O error"] if refused else []
                said.append(f"rc={refused:d}")
            said += self.fake.read("info/last_cmd_status").splitlines()
            if self.replay.result(lambda: self.fake.write("p/schemata", "L3:0=1\n")) == "EACCES":
                said += [f"sh: 1: cannot create {ROOT}/p/schemata: Permission denied", "[exit 2]"]
        self.fake.processes.exit(nobody)
        return said

    def flock(self) -> list[str]:
        with self.fake.locked():
            pass
        with self.fake.locked(exclusive=False):
            pass
        return ["flock-ok", "sflock-ok"]
