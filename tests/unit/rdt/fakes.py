"""The processes of a fake machine as the driver sees them, and a driver on it."""

from collections.abc import Collection, Mapping
from pathlib import Path

from castmates.protocols import Held
from castmates.rdt.fake import LAB, V6_1, FakeResctrl
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.foreign import Place, parse_place
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.monitor import ResctrlMonitor
from castmates.rdt.resctrl.mounting import Mounted


class FakeTasks:
    """Families on a fake machine."""

    def __init__(self, fake: FakeResctrl, shows_places: bool = True) -> None:
        self.fake, self.shows_places = fake, shows_places
        self.families: dict[int, list[int]] = {}  # leader -> processes

    def launch(self, children: int = 0, threads: int = 0) -> int:
        """Start a process with children, and threads in each; return the leader."""
        leader = self.fake.processes.fork()
        self.families[leader] = [leader, *(self.fake.processes.fork(leader) for _ in range(children))]
        for pid in self.families[leader]:
            for _ in range(threads):
                self.fake.processes.clone(pid)
        return leader

    def fork(self, leader: int) -> int:
        """Let the leader have one more child."""
        child = self.fake.processes.fork(leader)
        self.families[leader].append(child)
        return child

    def threads(self, held: Collection[Held]) -> Mapping[int, list[int]]:
        found = {}
        for leader in (each.pid for each in held):
            alive = [pid for pid in self.families[leader] if pid in {one.pid for one in self.fake.processes}]
            found[leader] = [tid for pid in alive for tid in self.fake.processes.threads(pid)]
        return found

    def place(self, tid: int) -> Place | None:
        try:
            return parse_place(self.fake.proc(f"{tid}/cpu_resctrl_groups"))
        except FileNotFoundError:
            return None


class Bench:
    """A fake machine with members on it, one on each of these sets of CPUs."""

    def __init__(
        self, shape=LAB, kernel=V6_1, options="", cpus=((0,), (1,)), shows_places=True, journal=None, source=None
    ):
        self.fake = FakeResctrl(shape, kernel, options=options, source=source)
        self.tasks = FakeTasks(self.fake, shows_places)
        self.said: list[str] = []
        self.released = 0
        self.entries = ResctrlJournal(journal, Path("/sys/fs/resctrl"), "a test")
        self.options = [option for option in options.split(",") if option]
        self.domains = {cpu: domain for domain, own in shape.domains.items() for cpu in own}
        names = ["lead@0", "other@1", "third@2", "fourth@3"]
        self.held = {
            name: Held(self.tasks.launch(children=1, threads=2), own) for name, own in zip(names, cpus, strict=False)
        }

    def release(self):
        self.released += 1
        return []

    def mounted(self, tree=None):
        return Mounted(
            tree or self.fake, self.tasks, self.entries, self.domains, self.options, self.said.append, self.release
        )

    def allocator(self, tree=None, beyond_site=False):
        return ResctrlAllocator(self.mounted(tree), beyond_site)

    def prepared(self, tree=None, beyond_site=False):
        allocator = self.allocator(tree, beyond_site)
        allocator.prepare(self.held)
        return allocator

    def monitor(self, rate=200.0, tree=None):
        return ResctrlMonitor(self.mounted(tree), rate)

    def groups(self):
        """Name the groups besides the default one, monitoring groups too."""
        return [group.path for group in self.fake.groups[1:]]
