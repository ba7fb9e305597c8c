"""The machines that ship with Castmates as long as nobody has sent one: made of CPUID dumps of real parts.

`python -m tests.unit.rdt.from_dumps` writes them into castmates/machines. Ways, classes, ids and throttles are those of
the registers, by the kernel's rules (cpuid.py); so are name, caches, cores and threads. What no register says is
assumed: how many packages there are (as many as the dump shows), 256 GiB of memory and one NUMA node for each, the
numbers of CPUs, and Linux 6.12.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from castmates.machine.capture.capture import record
from castmates.machine.capture.contents import FROM_CPUID, ORIGIN
from castmates.shipped import MACHINES
from tests.unit import sysfs
from tests.unit.rdt.cpuid import AMD_CACHES, CACHES, NAME, PARTS, QOS, SIGNATURE, TOPOLOGY, Leaves, leaves_of, shape_of
from tests.unit.rdt.owned import Owned, around

MEMORY_KB = 256 << 20  # of a package
SHIPPED = {  # a word of the dump's name, and packages
    "ice-lake": ("ICX", 1),
    "sapphire-rapids": ("SapphireRapids", 1),
    "emerald-rapids": ("EmeraldRapids_01", 2),
    "granite-rapids": ("GraniteRapids", 1),
    "rome": ("Rome", 2),
    "milan": ("Milan", 2),
    "genoa": ("Genoa", 2),
    "bergamo": ("Bergamo", 1),
    "turin-dense": ("TurinD", 2),
}


@dataclass(frozen=True)
class Level:
    """The caches of one level, as a leaf describes them."""

    bytes: int
    ways: int
    sharing: int  # CPUs at most

    @classmethod
    def of(cls, leaves: Leaves, level: int) -> "Level":
        eax, ebx, sets, _ = leaves[AMD_CACHES if (QOS, 0) in leaves else CACHES, level]
        ways = (ebx >> 22) + 1
        size = ways * ((ebx >> 12 & 0x3FF) + 1) * ((ebx & 0xFFF) + 1) * (sets + 1)
        return cls(size, ways, (eax >> 14 & 0xFFF) + 1)


def machine(name: str) -> Owned:
    """One of them."""
    word, packages = SHIPPED[name]
    leaves, dump = leaves_of(word), next(dump for dump in PARTS if word in dump)
    threads, (shift, cpus, *_) = leaves[TOPOLOGY, 0][1], leaves[TOPOLOGY, 1]  # of a core; of a package
    second, last = Level.of(leaves, 2), Level.of(leaves, 3)
    around_cache = min(last.sharing, cpus)
    bits = (last.sharing - 1).bit_length()  # a cache's id is what is left of the numbers of its CPUs
    ids = [(package << shift >> bits) + n for package in range(packages) for n in range(cpus // around_cache)]
    domains = around(ids, around_cache // threads, threads)
    every = [cpu for each in domains.values() for cpu in each]
    cores = {at: tuple(every[threads * at : threads * (at + 1)]) for at in range(len(every) // threads)}
    shape = shape_of(leaves, domains, last.bytes, second=(cores, second.bytes))
    return Owned(
        shape,
        threads=threads,
        dump=dump,
        packages=packages,
        associativity=last.ways,
        second_bytes=second.bytes,
        processor=_processor(leaves, dump),
    )


def _processor(leaves: Leaves, dump: str) -> str:
    """The lines of /proc/cpuinfo that say which one it is."""
    signature = leaves[SIGNATURE, 0][0]
    family = (signature >> 8 & 0xF) + (signature >> 20 & 0xFF)
    model = (signature >> 4 & 0xF) | (signature >> 12 & 0xF0)
    words = b"".join(word.to_bytes(4, "little") for leaf in NAME for word in leaves[leaf, 0])
    named = words.split(b"\0")[0].decode().strip()
    head = {"vendor_id": dump[:12], "cpu family": family, "model": model, "model name": named}
    return "\n".join(f"{key} : {value}" for key, value in {**head, "stepping": signature & 0xF}.items())


@contextmanager
def laid_out(name: str) -> Iterator[Path]:
    """The files of one of them."""
    with tempfile.TemporaryDirectory() as folder:
        root, owned = Path(folder), machine(name)
        owned.record(root)
        sysfs.write(root / "proc/meminfo", f"MemTotal:       {owned.packages * MEMORY_KB} kB")
        for node in range(owned.packages):
            text = f"Node {node} MemTotal:       {MEMORY_KB} kB"
            sysfs.write(root / f"sys/devices/system/node/node{node}/meminfo", text)
        sysfs.write(root / "sys/bus/event_source/devices/cpu/type", 4)
        yield root


def write(name: str, file: Path) -> None:
    """Its capture."""
    with laid_out(name) as root:
        record(file, root, {ORIGIN: f"{FROM_CPUID}\n"})


if __name__ == "__main__":
    for each in SHIPPED:
        write(each, MACHINES / f"{each}.json.gz")
