"""What is known to be wrong or hidden on some processors and kernels (quirks.yaml), and what of it applies here.

Pure functions of a machine's facts: what is not known of a machine does not apply to it.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from castmates.linux import host
from castmates.linux.perf_event import PERF_DEVICES
from castmates.machine import probes
from castmates.machine.topology import parse_cpu_list
from castmates.study.frozen import Frozen

# Whether a monitoring group's traffic has a counter of the hardware: by chance, or assigned (`mbm_assign_mode`).

TRAFFIC = ("mbm_total_bytes", "mbm_local_bytes")
DEFAULT, ASSIGNED = "default", "mbm_event"
BY_CHANCE = ("", DEFAULT)  # the modes in which the hardware chooses whom it counts; "" on kernels without the choice
FREE = "_"  # in mbm_L3_assignments: no counter
COUNTED = "e"


@dataclass(frozen=True, slots=True)
class Assignment:
    """What info/L3_MON shows of counters for traffic."""

    mode: str = ""  # default, mbm_event, or "" where the kernel has no such choice
    offered: tuple[str, ...] = ()
    counters: Mapping[int, int] = field(default_factory=dict)  # of each cache
    free: Mapping[int, int] = field(default_factory=dict)

    @property
    def assigned(self) -> bool:
        """Whether groups are counted only by the counters that were assigned to them."""
        return self.mode == ASSIGNED


def assignment(files: Mapping[str, str | None]) -> Assignment:
    """Read the files of info/L3_MON, of which each may be missing."""
    modes = (files.get("mbm_assign_mode") or "").split()
    chosen = next((mode[1:-1] for mode in modes if mode.startswith("[") and mode.endswith("]")), "")
    return Assignment(
        chosen,
        tuple(mode.strip("[]") for mode in modes),
        _by_cache(files.get("num_mbm_cntrs")),
        _by_cache(files.get("available_mbm_cntrs")),
    )


def assignments(text: str) -> dict[str, dict[int, str]]:
    """Read a group's mbm_L3_assignments, `mbm_total_bytes:0=e;1=_`: event -> cache -> state."""
    states: dict[str, dict[int, str]] = {}
    for line in text.split():
        event, _, caches = line.partition(":")
        pairs = (pair.partition("=") for pair in caches.split(";"))
        states[event] = {int(cache): state for cache, _, state in pairs if cache.isdecimal()}
    return states


def _by_cache(text: str | None) -> dict[int, int]:
    pairs = ([part.strip() for part in pair.split("=")] for pair in (text or "").split(";"))
    return {int(pair[0]): int(pair[1]) for pair in pairs if len(pair) == 2 and all(part.isdecimal() for part in pair)}


FILE = Path(__file__).with_suffix(".yaml")
Facts = Mapping[str, Any]
Version = tuple[int, int, int]
_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class Processors(Frozen):
    """Some processors, by what /proc/cpuinfo shows of them."""

    vendor: str | None = None
    family: int | None = None
    models: tuple[int, ...] = ()
    steppings: tuple[int, int] | None = None  # first and last
    implementer: str | None = None
    parts: tuple[str, ...] = ()

    def have(self, here: Facts) -> bool:
        """Check whether a processor is one of them."""
        first, last = self.steppings or (0, 0)
        return (
            self.vendor in (None, here.get("vendor"))
            and self.family in (None, here.get("family"))
            and (not self.models or here.get("model") in self.models)
            and (self.steppings is None or here.get("stepping") in range(first, last + 1))
            and self.implementer in (None, here.get("implementer"))
            and (not self.parts or here.get("part") in self.parts)
        )


class Kernels(Frozen):
    """Some versions of Linux."""

    since: str = ""
    fixed: tuple[str, ...] = ()  # mainline's first, then of older series the release that has the fix

    def have(self, release: str | None) -> bool:
        """Check whether a kernel is one of them, as far as its number shows it."""
        here = version(release)
        if here is None or here < (version(self.since) or (0, 0, 0)):
            return False
        fixed = [number for number in map(version, self.fixed) if number]
        return not fixed or (here < fixed[0] and not any(here[:2] == one[:2] and here >= one for one in fixed[1:]))


class Quirk(Frozen):
    """One row of the table."""

    name: str = Field(pattern=r"[a-z0-9]+(-[a-z0-9]+)*")
    title: str
    processors: tuple[Processors, ...] = ()  # none: all
    kernels: Kernels = Kernels()
    flags: tuple[str, ...] = ()
    needs: tuple[str, ...] = Field(default=(), alias="with")  # names of CONDITIONS
    switches_off: tuple[str, ...] = ()  # the kernel's words for features
    errata: tuple[str, ...] = ()
    verify: Literal["masks", ""] = ""
    row: str = ""  # the doctor's row that shows it
    happens: str
    do: str
    sources: tuple[str, ...] = Field(min_length=1)

    def applies(self, facts: Facts) -> bool:
        """Check whether it is to be expected on a machine."""
        return (
            (not self.processors or any(some.have(facts.get("processor") or {}) for some in self.processors))
            and (self.kernels == Kernels() or self.kernels.have(facts.get("kernel")))
            and set(self.flags) <= set((facts.get("processor") or {}).get("flags") or ())
            and all(CONDITIONS[need](facts) for need in self.needs)
        )

    def heading(self, facts: Facts) -> str:
        """Return the title, with the errata, and the releases that are known to have a fix."""
        words = [f"errata {', '.join(self.errata)}"] if self.errata else []
        if self.kernels.fixed:
            words.append(f"fixed in Linux {', '.join(self.kernels.fixed)}; {facts.get('kernel')} may have it too")
        return f"{self.title} ({'; '.join(words)})" if words else self.title


def version(release: str | None) -> Version | None:
    """Read the number of a kernel: 6.1.0-18-amd64 is 6.1.0, as far as can be seen."""
    number = _RELEASE.match(release or "")
    return (int(number[1]), int(number[2]), int(number[3] or 0)) if number else None


@cache
def table() -> tuple[Quirk, ...]:
    """Read all rows."""
    import yaml  # here, because each launch imports this module

    return tuple(Quirk.model_validate(row) for row in yaml.safe_load(FILE.read_text(encoding="utf-8")))


@cache
def flags() -> frozenset[str]:
    """Name the processor's flags that some row asks for."""
    return frozenset(flag for quirk in table() for flag in quirk.flags)


def flags_here(root: Path) -> list[str] | None:
    """Return which of these flags the processor has; None where there are no x86 flags."""
    here = host.cpu_flags(root)
    return None if here is None else sorted(flags() & set(here))


def applicable(facts: Facts) -> list[Quirk]:
    """List what applies to a machine."""
    return [quirk for quirk in table() if quirk.applies(facts)]


def switched_off(facts: Facts) -> dict[str, Quirk]:
    """Return the features, by the kernel's words, that Linux hides on this machine by itself, each with its quirk."""
    switches = probes.switches(facts.get("cmdline"))
    hiding = {word: quirk for quirk in applicable(facts) for word in quirk.switches_off}
    return {word: quirk for word, quirk in hiding.items() if switches.state(word) is not True}


def as_facts(facts: Facts) -> list[dict[str, Any]]:
    """Put what applies into machine.json, in words that need no table."""
    return [
        {
            "name": quirk.name,
            "title": quirk.heading(facts),
            "happens": quirk.happens,
            "do": quirk.do,
            "sources": list(quirk.sources),
        }
        for quirk in applicable(facts)
    ]


# Conditions, by the names that the table uses.


def _events(facts: Facts) -> Sequence[str]:
    """Return the events that are counted here, or would be: before a mount the processor's flags announce them."""
    info = (facts.get("resctrl") or {}).get("info")
    if info is not None:
        return str((info.get("L3_MON") or {}).get("mon_features") or "").split()
    announced = set(facts.get("rdt_flags") or ())
    names = {"cqm_occup_llc": "llc_occupancy", "cqm_mbm_total": TRAFFIC[0], "cqm_mbm_local": TRAFFIC[1]}
    return [event for flag, event in names.items() if flag in announced]


def _has_traffic(facts: Facts) -> bool:
    return any(event in _events(facts) for event in TRAFFIC)


def _counts_by_chance(facts: Facts) -> bool:
    info = (facts.get("resctrl") or {}).get("info") or {}
    return assignment(info.get("L3_MON") or {}).mode in BY_CHANCE


def _has_clusters(facts: Facts) -> bool:
    topology = facts.get("topology") or {}
    nodes = [set(parse_cpu_list(node["cpus"])) for node in topology.get("nodes") or ()]
    caches = [set(parse_cpu_list(llc["cpus"])) for llc in topology.get("llcs") or ()]
    return any(sum(bool(cache & node) for node in nodes) > 1 for cache in caches)


def _has_far_memory(facts: Facts) -> bool:
    nodes = (facts.get("topology") or {}).get("nodes") or ()
    return any(node["bytes"] and not node["cpus"] for node in nodes)


def _has_offline(facts: Facts) -> bool:
    topology = facts.get("topology") or {}
    return bool(topology) and topology.get("cpus") != topology.get("online")


CONDITIONS: Mapping[str, Callable[[Facts], bool]] = {
    "monitoring": lambda facts: bool(_events(facts)),
    "traffic": _has_traffic,
    "counters by chance": _counts_by_chance,
    "mba_MBps": lambda facts: "mba_MBps" in str((facts.get("resctrl") or {}).get("options") or "").split(","),
    "sub-NUMA clusters": _has_clusters,
    "CPUs offline": _has_offline,
    "memory without CPUs": _has_far_memory,
    "locked down": lambda facts: facts.get("lockdown") not in (None, "none"),
    "counters": lambda facts: (facts.get("perf") or {}).get("hardware") in ("counted", "user only"),
    "siblings": lambda facts: bool((facts.get("topology") or {}).get("siblings")),
    "NMI watchdog": lambda facts: bool(facts.get("nmi_watchdog")),
    "several kinds of cores": lambda facts: len((facts.get("topology") or {}).get("kinds") or {}) > 1,
}


# Which source of memory latencies a processor has, by what perf lists in sysfs: PEBS (Intel), IBS (AMD), SPE (Arm).

LATENCY = 30  # cycles; Intel's and Arm's sources take loads that are at least so slow, as `perf mem` does
PEBS, IBS, SPE = "PEBS", "IBS", "SPE"


def latency_source(root: Path) -> dict[str, str] | None:
    """The source, and the events that perf records it by; None where there is none."""
    devices = root / PERF_DEVICES
    for unit in ("cpu", "cpu_core"):  # of a hybrid processor the fast cores
        events = devices / unit / "events"
        if (events / "mem-loads").exists():
            loads = f"{unit}/mem-loads,ldlat={LATENCY}/"
            # Since Sapphire Rapids and Alder Lake loads are only counted with another event before them.
            before = (events / "mem-loads-aux").exists()
            return {"source": PEBS, "events": f"{{{unit}/mem-loads-aux/,{loads}}}:P" if before else f"{loads}P"}
    if (devices / "ibs_op" / "type").exists():
        return {"source": IBS, "events": "ibs_op//"}
    if spe := sorted(devices.glob("arm_spe_*")):
        filters = f"ts_enable=1,load_filter=1,store_filter=0,min_latency={LATENCY}"
        return {"source": SPE, "events": f"{spe[0].name}/{filters}/"}
    return None


# Steps of the throttle of memory bandwidth that a processor makes equal, though the kernel keeps them apart.
#
# They are known from reports, and not verified here. Where the processor's registers can be read, each launch's record
# shows what is true of the machine that measured.


@dataclass(frozen=True)
class EqualSteps:
    """A processor, and what it makes of some steps, in per cent."""

    processor: str
    vendor: str  # as in /proc/cpuinfo
    family: int
    model: int
    steppings: Collection[int]
    becomes: Mapping[int, int]
    source: str


KNOWN = (
    EqualSteps(
        processor="Skylake-SP",
        vendor="GenuineIntel",
        family=6,
        model=85,
        steppings=range(5),  # later ones are Cascade Lake and Cooper Lake, of which nothing is reported
        becomes={70: 90, 80: 90},
        source="https://github.com/intel/intel-cmt-cat/issues/69",
    ),
)


def equal_steps(processor: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    """Return the steps that become another one on this processor, which /proc/cpuinfo describes."""
    numbers = tuple(processor.get(key, "") for key in ("cpu family", "model", "stepping"))
    if not all(number.isdecimal() for number in numbers):
        return ()
    family, model, stepping = map(int, numbers)
    for known in KNOWN:
        same = (known.vendor, known.family, known.model) == (processor.get("vendor_id"), family, model)
        if same and stepping in known.steppings:
            return tuple(known.becomes.items())
    return ()
