"""Which class of service each CPU is to be in, and what each class is to have; pure.

pqos associates CPUs, not processes: a member has what its CPUs have. Members of one launch may be on the same CPUs, one
of them frozen; then those that a share names decide. Class 0 is for everything that is not a member.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.host import cpu_flags
from castmates.machine.pqos_tool import State
from castmates.machine.topology import Topology
from castmates.protocols import Held
from castmates.rdt.resctrl.wanted_schemata import (
    CODE,
    DATA,
    L3,
    MB,
    Schemata,
    everything,
    name_of,
    wanted_schemata,
    within,
)
from castmates.study.cache import Bandwidth, Cache
from castmates.study.cpus import format_cpu_list
from castmates.study.spec import REST, Share

DEFAULT = 0


@dataclass(frozen=True)
class Arrangement:
    """Classes and CPUs as they are to be."""

    classes: dict[int, Schemata]
    cores: dict[int, int]  # CPU -> class


def arrange(
    shares: Sequence[Share], members: Mapping[str, Held], former: State, cache: Cache, beyond_site: bool = False
) -> Arrangement:
    """Give a class to everyone with another share; all other CPUs are in the default class."""
    base = schemata_of(former, DEFAULT, cache)
    everybody = everything(cache, base)
    unless_named = {REST: base} | dict.fromkeys(members, everybody if beyond_site else within(everybody, base))
    wanted = wanted_schemata(shares, unless_named, domains_of(members, former), cache)
    named = {share.member for share in shares}
    classes: dict[int, Schemata] = {DEFAULT: wanted[REST]}
    cores = dict.fromkeys(former.cores, DEFAULT)
    owners: dict[int, str] = {}
    for name in sorted(members, key=lambda name: name in named):  # those that a share names come last, and win
        number = _class_for(wanted[name], classes, cache)
        for cpu in members[name].cpus:
            other = owners.get(cpu)
            if name in named and other in named and wanted[name] != wanted[other or ""]:
                raise CastmatesError(
                    f"{other} and {name} are both on CPU {cpu} and have different shares: pqos gives shares to CPUs, "
                    "so put them on different ones, or write 'cache.driver: resctrl'."
                )
            owners[cpu] = name
            cores[cpu] = number
    return Arrangement(classes, cores)


def domains_of(members: Mapping[str, Held], former: State) -> dict[str, set[int]]:
    """Return the last-level caches on which each member has CPUs, in pqos' numbers; REST has all that members use."""
    result: dict[str, set[int]] = {}
    for name, held in members.items():
        if unknown := set(held.cpus) - set(former.cores):
            raise CastmatesError(
                f"pqos does not know CPU {format_cpu_list(unknown)} of {name}: bring it online, or plan the study anew."
            )
        result[name] = {former.cores[cpu][0] for cpu in held.cpus}
    return result | {REST: set().union(*result.values())}


def schemata_of(state: State, number: int, cache: Cache) -> Schemata:
    """Return what a class has, in the kernel's words."""
    masks = {domain: mask for (domain, its), mask in state.masks.items() if its == number}
    result: Schemata = {}
    if masks and cache.cdp:
        result[DATA] = {domain: data for domain, (data, _) in masks.items()}
        result[CODE] = {domain: code for domain, (_, code) in masks.items()}
    elif masks:
        result[L3] = {domain: data for domain, (data, _) in masks.items()}
    throttles = {domain: value for (domain, its), value in state.throttles.items() if its == number}
    return result | ({MB: throttles} if throttles else {})


def as_state(arrangement: Arrangement, former: State) -> State:
    """Return the whole machine as it is to be: classes that are not used stay as they were found."""
    masks, throttles = dict(former.masks), dict(former.throttles)
    for number, schemata in arrangement.classes.items():
        for domain, data in schemata.get(DATA, schemata.get(L3, {})).items():
            masks[domain, number] = data, schemata.get(CODE, {}).get(domain, data)
        throttles |= {(domain, number): value for domain, value in schemata.get(MB, {}).items()}
    cores = {cpu: (domain, arrangement.cores.get(cpu, DEFAULT)) for cpu, (domain, _) in former.cores.items()}
    return State(masks, throttles, former.unit, cores)


def _class_for(wanted: Schemata, classes: dict[int, Schemata], cache: Cache) -> int:
    """Find the class that has what is wished, or take the next one."""
    for number, schemata in classes.items():
        if schemata == wanted:
            return number
    number = len(classes)
    if number > cache.groups:
        raise CastmatesError(
            f"the shares of one scene need more than the {cache.groups + 1} classes that this processor has; give "
            f"several members the same share ({name_of(REST)} has a separate class)."
        )
    classes[number] = wanted
    return number


# What can be shared out and watched, as `pqos -D` prints it.

FEWEST_CLASSES = 8  # that processors with throttles have
EVENTS = {"LLC": "llc_occupancy", "LMEM": "mbm_local_bytes", "TMEM": "mbm_total_bytes"}
_FEATURE = re.compile(r"\((LLC|LMEM|TMEM)\)")


def parse_capabilities(text: str, state: State) -> Cache:
    """Read what `pqos -D` prints; a value that this version does not print is what it means by its silence."""
    cat = text.partition("L3 CAT")[2].partition("L2 CAT")[0].partition("(MBA)")[0]
    widest = max((data for data, _ in state.masks.values()), default=0).bit_length()
    ways = _number(cat, r"Max CBM bits: (\d+)") or widest
    counts = [len({number for _, number in there}) for there in (state.masks, state.throttles) if there]
    return Cache(
        domains=tuple(sorted({domain for domain, _ in (*state.masks, *state.throttles)})),
        ways=ways,
        way_bytes=_number(cat, r"Way size: (\d+) bytes") or None,
        least_ways=_number(cat, r"Min CBM bits: (\d+)") or 1,
        sparse="Non-Contiguous CBM: supported" in cat,
        shareable=int((re.search(r"contention bit-mask: 0x([0-9a-f]+)", cat) or ["", "0"])[1], 16),
        groups=max(0, min(counts, default=1) - 1),
        cdp="CDP: enabled" in cat,
        bandwidth=_bandwidth(text, state),
        events=tuple(EVENTS[name] for name in dict.fromkeys(_FEATURE.findall(text))),
        monitored_groups=len(state.cores),  # each CPU is watched by itself
    )


def _bandwidth(text: str, state: State) -> Bandwidth | None:
    if not state.throttles:
        return None
    mba = text.partition("(MBA)")[2]
    step, least = _number(mba, r"Granularity: (\d+)") or 10, _number(mba, r"Min B/W: (\d+)") or 10
    if state.unit == "%":
        return Bandwidth(unit="%", least=least, step=step, most=100)
    most = max(state.throttles.values())
    return Bandwidth(unit="MiB/s" if state.unit == "MiB/s" else "1/8 GB/s", least=1, step=1, most=most)


def _number(text: str, pattern: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def expected(topology: Topology, root: Path = Path("/")) -> Cache | None:
    """Return what can probably be shared out, without starting pqos, for the plan of a study; a launch looks itself."""
    flags = cpu_flags(root) or []
    llcs = [llc for llc in topology.llcs if llc.ways and llc.bytes]
    if "cat_l3" not in flags or not llcs:
        return None
    ways, size = llcs[0].ways or 0, llcs[0].bytes or 0
    events = {"cqm_occup_llc": "llc_occupancy", "cqm_mbm_total": "mbm_total_bytes", "cqm_mbm_local": "mbm_local_bytes"}
    return Cache(
        domains=tuple(llc.id for llc in llcs),
        ways=ways,
        way_bytes=size // ways // llcs[0].clusters,
        least_ways=1,
        sparse=False,
        shareable=0,
        groups=FEWEST_CLASSES - 1,
        cdp=False,
        bandwidth=Bandwidth(unit="%", least=10, step=10, most=100) if "mba" in flags else None,
        events=tuple(event for flag, event in events.items() if flag in flags),
        monitored_groups=len(topology.cpus),
        clusters=llcs[0].clusters,
    )
