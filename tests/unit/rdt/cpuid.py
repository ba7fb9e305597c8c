"""What the CPUID registers of real processors say of RDT, and the shape that Linux makes of them.

`tests/data/cpuid/parts.json` has a line for each part, named as its dump in InstLatx64's collection: EAX, EBX, ECX and
EDX of each leaf and subleaf, in hexadecimal digits: those of RDT, of caches and topology, and the part's name.
`python -m tests.unit.rdt.cpuid DUMPS` writes it from such dumps, each below a line `== NAME`; a dump without the
subleaves of monitoring and of the last-level cache is left out. These dumps lack some subleaves of other controls:
those of three parts are added from hwloc's tests (tests/hwloc/x86), and what a part still lacks is taken from a
relative of it.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from castmates.rdt.fake import Shape, Throttle, Ways

TABLE = Path(__file__).parents[2] / "data" / "cpuid" / "parts.json"
LINE = re.compile(
    r"CPUID ([0-9A-F]{8}): ([0-9A-F]{8})-([0-9A-F]{8})-([0-9A-F]{8})-([0-9A-F]{8})(?:.*\[SL ([0-9A-F]+)\])?"
)
MON, CAT, QOS = 0xF, 0x10, 0x80000020
SIGNATURE, TOPOLOGY, CACHES, AMD_CACHES = 1, 0xB, 4, 0x8000001D
NAME = (0x80000002, 0x80000003, 0x80000004)
KEPT = {SIGNATURE, TOPOLOGY, CACHES, AMD_CACHES, MON, CAT, QOS, *NAME}
NEEDED = {(MON, 0), (MON, 1), (CAT, 0), (CAT, 1)}
MORE = {
    "CascadeLake": {"10.3": "59 0 4 7"},  # Xeon Gold 6230
    "SapphireRapids": {"10.2": "f 0 4 7", "10.3": "59 0 4 e"},  # Xeon Max 9460
    "Milan": {"80000020.1": "b 0 0 f"},  # EPYC 7763
}
RELATIVES = {
    "Skylake": "CascadeLake",
    "ICX": "SapphireRapids",
    "EmeraldRapids": "SapphireRapids",
    "GraniteRapids": "SapphireRapids",
    "Rome": "Milan",
}
EVENTS = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")

Registers = tuple[int, int, int, int]
Leaves = Mapping[tuple[int, int], Registers]
Domains = Mapping[int, tuple[int, ...]]


def _read(leaves: Mapping[str, str]) -> Leaves:
    found = {}
    for place, words in leaves.items():
        leaf, subleaf = (int(number, 16) for number in place.split("."))
        eax, ebx, ecx, edx = (int(word, 16) for word in words.split())
        found[leaf, subleaf] = eax, ebx, ecx, edx
    return found


PARTS: Mapping[str, Leaves] = {name: _read(leaves) for name, leaves in json.loads(TABLE.read_text()).items()}


def leaves_of(word: str) -> Leaves:
    """The leaves of the part that has this word in its name, with what it lacks from a relative."""
    name = next(name for name in PARTS if word in name)
    relative = next((other for family, other in RELATIVES.items() if family in name), None)
    return {**(leaves_of(relative) if relative else {}), **PARTS[name]}


def shape_of(
    leaves: Leaves,
    domains: Domains,
    cache_bytes: int,
    nodes: Domains | None = None,
    second: tuple[Domains, int] | None = None,
) -> Shape:
    """What Linux offers on such a processor; sizes and CPUs of its caches are not in these leaves.

    The rules are those of rdt_get_cache_alloc_cfg, __get_mem_config_intel, __rdt_get_mem_config_amd,
    rdt_get_mon_l3_config and get_rdt_resources. `second` are the second-level caches, and the size of each.
    """
    kinds, nodes = leaves[CAT, 0][1], nodes or {}
    mon, clusters = leaves[MON, 1], max(map(len, nodes.values()), default=1)
    is_amd = (QOS, 0) in leaves
    amd = leaves[QOS, 0][1] if is_amd else 0
    last = _ways(leaves, 1, ("L3", domains, cache_bytes))
    return Shape(
        domains=domains,
        cache_bytes=cache_bytes,
        ways=last.ways,
        shareable=last.shareable,
        least_bits=last.least_bits,
        sparse=last.sparse,
        closids=last.closids,
        cdp=last.cdp,
        throttle=_limit(leaves[QOS, 1]) if amd & 2 else _delay(leaves[CAT, 3]) if kinds & 8 else None,
        events=tuple(event for bit, event in enumerate(EVENTS) if leaves[MON, 0][3] & 2 and mon[3] >> bit & 1),
        rmids=(mon[2] + 1) // clusters,
        scale=mon[1] // clusters,
        nodes=nodes,
        mbm_counters=(leaves[QOS, 5][1] & 0xFFFF) + 1 if amd & 32 else 0,
        io_alloc=bool(amd & 64),
        second=_ways(leaves, 2, ("L2", *second)) if second and kinds & 4 else None,
        slow=_limit(leaves[QOS, 2]) if amd & 4 else None,
        configurable=amd & 40 == 8,  # what events count; where counters belong to groups, these say it
    )


def _ways(leaves: Leaves, subleaf: int, where: tuple[str, Domains, int]) -> Ways:
    """Masks of a level; AMD's may be empty and have holes, without a bit that says so."""
    length, io, flags, classes = leaves[CAT, subleaf]
    ways, is_amd = (length & 0x1F) + 1, (QOS, 0) in leaves
    return Ways(
        *where,
        ways=ways,
        shareable=io & ((1 << ways) - 1),
        least_bits=0 if is_amd else 1,
        sparse=is_amd or bool(flags & 8),
        closids=(classes & 0xFFFF) + 1,
        cdp=bool(flags & 4),
    )


def _delay(registers: Registers) -> Throttle | None:
    """Intel's throttle: what the longest delay leaves is the least, and the step; Linux takes linear delays only."""
    longest, _, flags, classes = registers
    least = 100 - ((longest & 0xFFF) + 1)
    mode = "per-thread" if flags & 1 else "max"
    return Throttle(closids=(classes & 0xFFFF) + 1, least=least, step=least, mode=mode) if flags & 4 else None


def _limit(registers: Registers) -> Throttle:
    """AMD's, in 1/8 GB/s: so many bits, of which the highest is no throttle."""
    bits, _, _, classes = registers
    return Throttle(closids=classes + 1, least=0, step=1, most=1 << bits, linear=False, mode="", digits=4)


def table_of(dumps: str) -> dict[str, dict[str, str]]:
    """The leaves of each dump that has all that are needed."""
    table = {}
    for text in re.split(r"^== ", dumps, flags=re.MULTILINE)[1:]:
        leaves: dict[tuple[int, int], str] = {}
        for leaf, *words, subleaf in LINE.findall(text):
            if (number := int(leaf, 16)) in KEPT:  # each CPU says the same: the first one's are kept
                leaves.setdefault((number, int(subleaf or "0", 16)), " ".join(f"{int(word, 16):x}" for word in words))
        if leaves.keys() >= NEEDED:
            name = text.split()[0]
            more = next((more for family, more in MORE.items() if family in name), {})
            table[name] = {f"{leaf:x}.{subleaf:x}": leaves[leaf, subleaf] for leaf, subleaf in sorted(leaves)} | more
    return table


if __name__ == "__main__":
    rows = table_of(Path(sys.argv[1]).read_text()).items()
    lines = [f"{json.dumps(name)}: {json.dumps(leaves)}" for name, leaves in rows]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
