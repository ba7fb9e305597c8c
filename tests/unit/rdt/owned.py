"""The machines that users have: shapes of the fake, and their resctrl, their sysfs and their flags as files.

What registers say of RDT is from dumps of real parts (cpuid.py). Sizes and ids of caches are not, as the parts differ:
they are facts of the public source beside them. What has none is marked as assumed. There are fewer cores than in the
processors, so that tests are quick: nothing that resctrl shows depends on them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from castmates.rdt.fake import V6_1, V6_12, V7_2, FakeResctrl, Kernel, Shape, Throttle, Ways
from tests.unit import sysfs
from tests.unit.rdt import trees
from tests.unit.rdt.cpuid import MON, Domains, Leaves, leaves_of, shape_of

KIB, MIB = 1 << 10, 1 << 20
FLAGS = {  # Linux's flag, by what a shape has
    "cat_l3": lambda shape: shape.ways,
    "cdp_l3": lambda shape: shape.ways and shape.cdp,
    "cat_l2": lambda shape: shape.second,
    "cdp_l2": lambda shape: shape.second and shape.second.cdp,
    "mba": lambda shape: shape.throttle,
    "cqm": lambda shape: shape.events,
    "cqm_llc": lambda shape: shape.events,
    "cqm_occup_llc": lambda shape: "llc_occupancy" in shape.events,
    "cqm_mbm_total": lambda shape: "mbm_total_bytes" in shape.events,
    "cqm_mbm_local": lambda shape: "mbm_local_bytes" in shape.events,
}


def around(ids: Iterable[int], cores: int, threads: int = 2) -> Domains:
    """Caches with so many cores each, whose CPUs are numbered as firmware does: all first threads come first."""
    numbers = list(ids)
    total = len(numbers) * cores
    return {
        number: tuple(core + thread * total for core in range(at, at + cores) for thread in range(threads))
        for at, number in zip(range(0, total, cores), numbers, strict=True)
    }


def _of_cores(domains: Domains, threads: int = 2) -> Domains:
    """Second-level caches, one for each core."""
    cpus = [cpu for each in domains.values() for cpu in each]
    return {at: tuple(cpus[threads * at : threads * at + threads]) for at in range(len(cpus) // threads)}


def xeon(leaves: Leaves, cache_bytes: int, nodes: Domains | None = None) -> Shape:
    """A machine with two Xeons, whose cores have 2 MiB each where these can be shared out."""
    return shape_of(leaves, _TWO_XEONS, cache_bytes, nodes, (_of_cores(_TWO_XEONS), 2 * MIB))


_TWO_XEONS = around((0, 1), 6)

# Xeon Gold 6138 with 27.5 MiB, as intel-cmt-cat's issues 135, 246 and 290 show it. Linux switches its L3 CAT off unless
# the kernel's command line has rdt=l3cat (arch/x86/kernel/cpu/resctrl/core.c, __check_quirks_intel). Its I/O ways are
# tied (issue 135: "setting one of these bits will always result in both bits being set"), and 70 and 80 % of bandwidth
# become 90 (issues 69 and 115). Monitoring ids and their unit are those of a part with 24 cores.
SKYLAKE_SP = xeon(leaves_of("Skylake"), 11 * 2560 * KIB)
SKYLAKE_SP = replace(SKYLAKE_SP, tied=0x600, throttle=replace(SKYLAKE_SP.throttle, becomes={70: 90, 80: 90}))
# Xeon Platinum 8352Y: 48 MiB. Registers of MB are those of its successor (assumed).
ICE_LAKE = xeon(leaves_of("ICX"), 48 * MIB)
# Xeon Platinum 8480+: 105 MiB. That eight classes of L2 bound the others is confirmed in intel/goresctrl, pull request
# 154; info/L2 and info/MB of its test/data/resctrl.l2l3mb, an Emerald Rapids, say the same as the registers.
SAPPHIRE_RAPIDS = xeon(leaves_of("SapphireRapids"), 105 * MIB)
# Xeon 6980P, whose default is three clusters in each cache of 504 MiB. Tony Luck's cover letter of "Add support for
# Sub-NUMA cluster (SNC) systems" shows nodes 3 to 5 below mon_L3_01, with readings in steps of 73728 bytes, whose sum
# mon_L3_01 is; ids and their unit are divided by the clusters (rdt_get_mon_l3_config), `size` is not
# (rdtgroup_cbm_to_size). The registers are those of Granite Rapids-D, with as many ids as belong to this unit on all
# parts since Ice Lake; those of L2 and MB are Sapphire Rapids' (assumed).
_CLUSTERED = {(MON, 1): (8, 3 * 73728, 3 * 288 - 1, 7)}
GRANITE_RAPIDS_SNC3 = xeon({**leaves_of("GraniteRapids"), **_CLUSTERED}, 504 * MIB, {0: (0, 1, 2), 1: (3, 4, 5)})
# EPYC 7742, 9654 and 9755: sixteen complexes of 16 MiB in each socket, twelve of 32 MiB, whose ids have a gap, and
# sixteen of 32 MiB. That masks may be empty is rdt_init_res_defs_amd's. Bandwidth of Rome is that of its successor.
ROME = shape_of(leaves_of("Rome"), around(range(32), 2), 16 * MIB)
GENOA = shape_of(leaves_of("Genoa"), around((*range(12), *range(16, 28)), 2), 32 * MIB)
TURIN = shape_of(leaves_of("Turin_"), around(range(32), 2), 32 * MIB)
# Core i7-12700: its flags are rdt_a, cat_l2 and cdp_l2 (many lists of /proc/cpuinfo), so that resctrl has an L2 alone,
# of which Linux asks the core that it starts on: 10 ways of 1.25 MiB, though those of the efficient cores have 16.
_PAIRS = {**{n: (2 * n, 2 * n + 1) for n in range(8)}, 8: (16, 17, 18, 19)}
HYBRID_CLIENT = Shape(
    domains={0: tuple(range(20))},
    cache_bytes=25 * MIB,
    ways=0,
    shareable=0,
    closids=0,
    cdp=False,
    throttle=None,
    events=(),
    rmids=0,
    second=Ways("L2", _PAIRS, 1280 * KIB, 10, 0, 1, False, 8, True),
)
# An Arm server with MPAM, after drivers/resctrl/mpam_resctrl.c: masks with holes, of one way at least; all ways count
# as shared, since devices use class 0; every control has the system's number of classes; throttles are kept as a binary
# fraction, here of 5 bits; llc_occupancy is the only event; monitoring ids belong to a class. Sizes are assumed.
_TWO_ARMS = around((1, 2), 6, threads=1)
ARM_MPAM = Shape(
    domains=_TWO_ARMS,
    cache_bytes=112 * MIB,
    ways=16,
    shareable=0xFFFF,
    sparse=True,
    closids=64,
    cdp=False,
    throttle=Throttle(closids=64, least=3, step=4, mode="", fraction=5),
    events=("llc_occupancy",),
    rmids=64 * 4,
    scale=64,
    second=Ways("L2", _of_cores(_TWO_ARMS, 1), MIB, 8, 0xFF, 1, True, 64, False),
    rmids_of_class=4,
)


@dataclass(frozen=True)
class Owned:
    """A machine that somebody has."""

    shape: Shape
    kernel: Kernel = V6_12
    threads: int = 2  # of each core
    dump: str = ""  # of a part of this family: a word of its name in cpuid.PARTS
    packages: int = 2
    associativity: int = 12  # of a last-level cache, as sysfs shows it
    second_bytes: int = 2 * MIB
    processor: str = "model name : x"  # lines of /proc/cpuinfo

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
        size = -(-len(domains) // self.packages)
        parts = [domains[at : at + size] for at in range(0, len(domains), size)]
        sockets = {number: [cpu for each in part for cpu in each] for number, part in enumerate(parts)}
        nodes = {node: shape.cpus_of_node(at, node) for at, inner in shape.nodes.items() for node in inner} or sockets
        l2 = shape.second.caches if shape.second else dict(enumerate(self.cores))
        caches = [
            sysfs.Cache(2, self.second_bytes // KIB, 16, list(l2.values()), list(l2)),
            sysfs.Cache(3, shape.cache_bytes // KIB, self.associativity, domains, list(shape.domains)),
        ]
        return sysfs.Machine(self.cores, caches, sockets, nodes)

    def record(self, root: Path, options: str = "", fake: FakeResctrl | None = None) -> FakeResctrl:
        """Write all of it, with resctrl mounted, and return the fake behind the files."""
        fake = fake or FakeResctrl(self.shape, self.kernel, options=options)
        sysfs.build(root, self.sysfs())
        trees.record(root, dict(files_of(fake)), ",".join(filter(None, ["rw", options])))
        sysfs.write(root / "proc/filesystems", "nodev\tresctrl")
        sysfs.write(root / "proc/sys/kernel/osrelease", f"{self.kernel.name}.0")
        flags = " ".join(["fpu", "rdt_a", *(flag for flag, has in FLAGS.items() if has(self.shape))])
        what = "CPU implementer : 0x41\nCPU part : 0xd4f" if self.shape.is_arm else f"flags : {flags}"
        sysfs.write(root / "proc/cpuinfo", f"processor : 0\n{self.processor}\n{what}")
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
    "skylake-sp": Owned(SKYLAKE_SP, V6_1, dump="Skylake"),
    "ice-lake": Owned(ICE_LAKE, dump="ICX"),
    "sapphire-rapids": Owned(SAPPHIRE_RAPIDS, dump="SapphireRapids"),
    "granite-rapids-snc3": Owned(GRANITE_RAPIDS_SNC3, dump="GraniteRapids"),
    "rome": Owned(ROME, dump="Rome"),
    "genoa": Owned(GENOA, dump="Genoa"),
    "turin": Owned(TURIN, V7_2, dump="Turin_"),
    "hybrid-client": Owned(HYBRID_CLIENT),
    "arm-mpam": Owned(ARM_MPAM, V7_2, threads=1),
}
