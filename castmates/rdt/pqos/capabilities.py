"""What can be shared out and watched, as `pqos -D` prints it."""

import re
from pathlib import Path

from castmates.linux.host import cpu_flags
from castmates.machine.pqos_text import State
from castmates.machine.topology import Topology
from castmates.study.cache import Bandwidth, Cache

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
