"""What the scripts do that recorded the shorter transcripts: other machine shapes, and pqos beside foreign groups."""

from collections.abc import Iterator

from castmates.rdt.fake import V6_1, FakeResctrl, Kernel, Shape
from tests.unit.rdt.reference_script import MACHINE
from tests.unit.rdt.replay import Replay

PQOS = "said by pqos or by the laboratory, not by resctrl"


class Other:
    """The script for other machines: what is there, a score of writes, and groups until there are no more."""

    def __init__(self, name: str, shape: Shape, kernel: Kernel = V6_1) -> None:
        self.fake = FakeResctrl(shape, kernel, options=None)
        self.replay = Replay(name, self.fake)
        self.replay.notes = self.notes()
        self.replay.shell = [(r"dmesg ", self.about_machine), (r"cd \S+; head ", self.heads)]

    def run(self) -> Replay:
        self.replay.run()
        return self.replay

    def notes(self) -> Iterator[str]:
        yield f"{self.replay.flat('g1/size')} {self.replay.text('info/L3/bit_usage')}".rstrip("\n")
        yield self.replay.text("info/L3/bit_usage").rstrip("\n")
        yield f"made {len([group for group in self.fake.groups if group.name.startswith('k')])}"

    def about_machine(self) -> list[str]:
        while not (line := self.replay.lines[self.replay.at]).startswith("$ "):
            if line.startswith("nodev"):
                self.replay.expect(self.fake.proc("filesystems").rstrip("\n"))
            elif line.startswith("ls: cannot access"):
                for said in self.replay.ls([self.fake.mount_point])[:1]:
                    self.replay.expect(said)
                assert self.fake.proc("filesystems") == ""
            else:
                self.replay.skip(MACHINE)
        return []

    def heads(self) -> list[str]:
        said: list[str] = []
        for pattern in ("schemata", "size", "mode", "cpus_list", "info/*/*"):
            for path in self.replay.glob(pattern):
                said += [*([""] if said else []), f"==> {path} <==", *self.replay.lines_of(path)]
        return said + self.replay.ls(["mon_data", "mon_groups"])


class Mix:
    """pqos with its os interface, alone and beside a foreign group.

    The transcript does not show what its script did between two calls of pqos: that is given here, as its results
    suggest. Of pqos only its effect on the tree is imitated: it makes COS1 to COSn, up to its number of classes.
    """

    def __init__(self) -> None:
        self.fake = FakeResctrl(kernel=V6_1, options=None)
        self.replay = Replay("mix-6.1", self.fake)

    def run(self) -> Replay:
        for said in self.script():
            self.skip_pqos(until=said)
            self.replay.expect(said)
        self.skip_pqos(until=None)
        return self.replay

    def skip_pqos(self, until: str | None) -> None:
        """Pass over pqos's own words up to where this comes; that it comes at all is what is tested."""
        lines = self.replay.lines
        while self.replay.at < len(lines) and lines[self.replay.at] != until:
            line = lines[self.replay.at]
            if line.startswith(OF_RESCTRL) and until is not None:
                return
            self.replay.skip(PQOS)

    def pqos(self) -> str:
        if not self.fake.mounted:
            self.fake.mount()
        for number in range(1, 8):
            if f"COS{number}" not in self.fake.names("") and (
                self.replay.result(lambda number=number: self.fake.make(f"COS{number}")) != "OK"
            ):
                return "[exit 1]"
        return "[exit 0]"

    def dirs(self) -> str:
        found = [group.name for group in self.fake.groups if group.control is None and group.name]
        return "dirs: " + "".join(f"{name} " for name in sorted(found))

    def cat(self, path: str) -> list[str]:
        return self.fake.read(path).splitlines()

    def script(self) -> Iterator[str]:
        fake, mounts = self.fake, lambda: str(len(self.fake.proc("mounts").splitlines()))
        yield mounts()
        for _ in range(2):
            yield f"{self.pqos()} {self.dirs()}"
            yield mounts()
        for _ in range(2):
            yield f"{self.pqos()} {self.dirs()}"
        for number in range(1, 8):
            fake.remove(f"COS{number}")
        fake.make("mine")
        fake.write("mine/schemata", "L3:0=3\n")
        for _ in range(2):
            yield f"{self.pqos()} {self.dirs()}"
            yield from self.cat("mine/schemata")
        yield from self.cat("schemata")
        errors = [self.refusal_of_extra()]
        pid = fake.processes.fork()
        fake.write("mine/tasks", f"{pid}\n")
        fake.write("mine/cpus_list", "1\n")
        yield str(len(self.cat("mine/tasks")))
        yield from self.cat("mine/cpus_list")
        fake.make("mine/mon_groups/mm")
        yield from fake.names("mine/mon_groups")
        fake.remove("mine/mon_groups/mm")
        yield f"{self.pqos()} {self.dirs()}"
        for number in range(1, 7):
            fake.remove(f"COS{number}")
        assert self.replay.result(lambda: fake.remove("COS7")) == "ENOENT"
        errors.append("rmdir: failed to remove '/sys/fs/resctrl/COS7': No such file or directory")
        fake.write("schemata", "L3:0=ff0\n")
        fake.write("mine/schemata", "L3:0=f\n")
        fake.write("mine/mode", "exclusive\n")
        yield from self.cat("mine/mode")
        yield f"{self.pqos()} {self.dirs()}"
        yield from self.cat("info/last_cmd_status")
        errors.append(self.refusal_of_extra())
        yield f"{self.pqos()} {self.dirs()}"
        yield from self.cat("mine/schemata")
        yield from self.cat("mine/mode")
        yield from self.cat("schemata")
        folders = sorted(group.path for group in fake.groups if group.control is None and group.name)
        yield from self.replay.ls([f"/sys/fs/resctrl/{path}".rstrip("/") + "/mon_groups" for path in (*folders, "")])
        yield from errors

    def refusal_of_extra(self) -> str:
        assert self.replay.result(lambda: self.fake.make("extra")) == "ENOSPC"
        return "mkdir: cannot create directory ‘/sys/fs/resctrl/extra’: No space left on device"


# Lines of the transcript that only resctrl's answers can fill; none of them may be passed over.
OF_RESCTRL = ("[exit ", "    MB:", "    L3:", "exclusive", "Out of", "mkdir:", "rmdir:", "mm", "/sys/fs/resctrl/")
