"""Machines of the fake as files below a folder: their resctrl, their sysfs and their flags."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from castmates.rdt.fake import (
    ARM_MPAM,
    GENOA,
    GRANITE_RAPIDS_SNC3,
    HYBRID_CLIENT,
    ICE_LAKE,
    ROME,
    SAPPHIRE_RAPIDS,
    SKYLAKE_SP,
    TURIN,
    V6_1,
    V6_12,
    V7_2,
    FakeResctrl,
    Kernel,
    Shape,
)
from tests.unit import sysfs
from tests.unit.rdt import trees

XEON_FLAGS = "rdt_a cat_l3 cdp_l3 mba cqm cqm_llc cqm_occup_llc cqm_mbm_total cqm_mbm_local"


@dataclass(frozen=True)
class Owned:
    """A machine that somebody has."""

    shape: Shape
    kernel: Kernel = V6_12
    threads: int = 2  # of each core
    flags: str = XEON_FLAGS

    @property
    def cores(self) -> list[tuple[int, ...]]:
        """The CPUs of each core."""
        if self.shape is HYBRID_CLIENT:
            return [*((2 * n, 2 * n + 1) for n in range(8)), *((cpu,) for cpu in range(16, 20))]
        cpus = [cpu for each in self.shape.domains.values() for cpu in each]
        return [tuple(cpus[at : at + self.threads]) for at in range(0, len(cpus), self.threads)]

    def sysfs(self) -> sysfs.Machine:
        """What its sysfs shows: a cache's associativity is not the number of its ways in a mask, as on Arm."""
        shape, domains = self.shape, list(self.shape.domains.values())
        half = (len(domains) + 1) // 2
        sockets = {n: [cpu for each in part for cpu in each] for n, part in enumerate((domains[:half], domains[half:]))}
        sockets = {number: cpus for number, cpus in sockets.items() if cpus}
        nodes = {node: shape.cpus_of_node(at, node) for at, inner in shape.nodes.items() for node in inner} or sockets
        l2 = shape.second.caches if shape.second else dict(enumerate(self.cores))
        caches = [
            sysfs.Cache(2, 2048, 16, list(l2.values()), list(l2)),
            sysfs.Cache(3, shape.cache_bytes // 1024, 12, domains, list(shape.domains)),
        ]
        return sysfs.Machine(self.cores, caches, sockets, nodes)

    def record(self, root: Path, options: str = "", fake: FakeResctrl | None = None) -> FakeResctrl:
        """Write all of it, with resctrl mounted, and return the fake behind the files."""
        fake = fake or FakeResctrl(self.shape, self.kernel, options=options)
        sysfs.build(root, self.sysfs())
        trees.record(root, dict(files_of(fake)), ",".join(filter(None, ["rw", options])))
        sysfs.write(root / "proc/filesystems", "nodev\tresctrl")
        sysfs.write(root / "proc/sys/kernel/osrelease", f"{self.kernel.name}.0")
        what = f"flags : fpu {self.flags}" if self.flags else "CPU implementer : 0x41\nCPU part : 0xd4f"
        sysfs.write(root / "proc/cpuinfo", f"processor : 0\nmodel name : x\n{what}")
        return fake


def files_of(fake: FakeResctrl, folder: str = "") -> Iterator[tuple[str, str]]:
    """Yield every file of a resctrl with its text, but for those that refuse to be read."""
    for name in fake.names(folder):
        path = f"{folder}/{name}".lstrip("/")
        try:
            yield path, fake.read(path)
        except IsADirectoryError:
            yield from files_of(fake, path)
        except OSError:
            continue


MACHINES = {
    "skylake-sp": Owned(SKYLAKE_SP, V6_1),
    "ice-lake": Owned(ICE_LAKE, flags=XEON_FLAGS.replace(" cdp_l3", "")),
    "sapphire-rapids": Owned(SAPPHIRE_RAPIDS, flags=f"{XEON_FLAGS} cat_l2 cdp_l2"),
    "granite-rapids-snc3": Owned(GRANITE_RAPIDS_SNC3, flags=f"{XEON_FLAGS} cat_l2 cdp_l2"),
    "rome": Owned(ROME),
    "genoa": Owned(GENOA),
    "turin": Owned(TURIN, V7_2),
    "hybrid-client": Owned(HYBRID_CLIENT, flags="rdt_a cat_l2 cdp_l2"),
    "arm-mpam": Owned(ARM_MPAM, V7_2, threads=1, flags=""),
}
