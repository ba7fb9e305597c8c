"""The doctor's rows as what can be done on a machine: measure losses, precisely, explain them, partition the cache."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from castmates.machine.doctor.cpu import Check, State
from castmates.machine.doctor.features import NOT_ANNOUNCED
from castmates.machine.topology import Topology

YES: State = "yes"
PARTLY: State = "partly"
NO: State = "no"


@dataclass(frozen=True, slots=True)
class Part:
    """A row that a capability depends on."""

    check: str
    lack: str  # what it means where it is not as a study wants it
    hidden: str = ""  # what it means where it is not known; "" where it is then taken for granted
    needed: bool = False  # without it there is nothing of the capability
    elsewhere: str = ""  # the machine that has it


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that can be done, on the rows of which it depends."""

    name: str
    gains: str  # what another machine would give
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether this machine has a capability, and what stands in the way."""

    name: str
    state: State
    why: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What `castmates doctor` shows first."""

    machine: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    changes: tuple[tuple[str, str], ...]  # what is gained, and what the user does for it
    elsewhere: tuple[tuple[str, str], ...]  # what is gained, and the machine that has it
    counts: Mapping[str, int]  # rows by state


CAPABILITIES = (
    Capability(
        "Measure losses",
        "measuring at all",
        (
            Part("cores", "fewer than two usable cores", needed=True, elsewhere="two cores or more"),
            Part("shared LLC", "no two usable cores share a last-level cache", elsewhere="cores that share a cache"),
            Part("Python for TensorFlow", "no Python for the TensorFlow jobs"),
        ),
    ),
    Capability(
        "… precisely",
        "quieter windows",
        (
            Part("cores", "no spare core for the runner", elsewhere="three cores or more"),
            Part("spare CPU", "other programs run on the lead's CPU beside an antagonist"),
            Part("equal cores", "cores of several kinds"),
            Part("SMT off", "cores with siblings in use", "siblings may be hidden"),
            Part("NUMA", "pages may move between memory nodes"),
            Part("balanced CPUs", "isolated CPUs, on which threads pile up"),
            Part(
                "huge pages", "no huge pages, so address translation is part of what caches cost", "huge pages hidden"
            ),
            Part("freezing", "programs are stopped by signals, one by one"),
            Part("no steal", "the hypervisor takes CPU time ({finding})", elsewhere="a dedicated host"),
            Part("governor", "the clock speed follows load", "clock speed hidden"),
            Part("turbo off", "turbo is on"),
            Part("swap unused", "swap in use"),
            Part("put back", "a killed run left settings changed"),
        ),
    ),
    Capability(
        "Explain them",
        "counters, Top-Down",
        (
            Part("perf", "no perf", needed=True),
            Part(
                "hardware counters",
                "no hardware counters: {because}",
                needed=True,
                elsewhere="bare metal, or a guest with a virtual PMU",
            ),
            Part("software counters", "no software counters"),
            Part("counting members", "programs cannot be counted one by one", "counting not tried"),
            Part("counts verified", "some counts are not verified", "counts not verified"),
        ),
    ),
    Capability(
        "Partition the cache",
        "partitions",
        (
            Part("resctrl", "no resctrl: {features}", needed=True, elsewhere="bare metal with Intel RDT or AMD QoS"),
            Part("resctrl mounted", "resctrl {finding}", needed=True),
            Part("resctrl permission", "no permission to write masks", needed=True),
            Part("CAT", "no cache allocation", needed=True, elsewhere="a processor with cache allocation"),
            Part("masks verified", "masks do not hold against a neighbour", "masks not tried"),
        ),
    ),
)
FEATURES = ("CAT", "CDP", "MBA", "CMT", "MBM")


def summarise(checks: Sequence[Check], facts: Mapping[str, Any], topology: Topology) -> Summary:
    """What the rows come to; pure."""
    rows = {check.name: check for check in checks}
    verdicts = tuple(_verdict(capability, rows, facts) for capability in CAPABILITIES)
    return Summary(
        machine=tuple(_machine(facts, topology)),
        verdicts=verdicts,
        changes=tuple(_changes(checks, facts)),
        elsewhere=tuple(_elsewhere(rows)),
        counts=Counter(check.state for check in checks),
    )


def _verdict(capability: Capability, rows: Mapping[str, Check], facts: Mapping[str, Any]) -> Verdict:
    lacking = [part for part in capability.parts if _lacks(capability, part, rows[part.check])]
    for part in lacking:
        if part.needed and rows[part.check].state == NO:
            return Verdict(capability.name, NO, _words(part, rows, facts))
    if not lacking:
        return Verdict(capability.name, YES, "ready")
    return Verdict(capability.name, PARTLY, ", ".join(_words(part, rows, facts) for part in lacking))


def _lacks(capability: Capability, part: Part, check: Check) -> bool:
    """Whether a row stands in the way; for measuring at all, only what is not there does."""
    if check.state == "unknown":
        return bool(part.hidden)
    return check.state == NO if capability is CAPABILITIES[0] else check.state != YES


def _words(part: Part, rows: Mapping[str, Check], facts: Mapping[str, Any]) -> str:
    guest = bool(facts.get("hypervisor_flag"))
    missing = [name for name in FEATURES if rows[name].state == NO and rows[name].finding == NOT_ANNOUNCED]
    finding = rows[part.check].finding
    words = part.hidden if rows[part.check].state == "unknown" else part.lack
    return words.format(
        finding=finding.replace("%", " %").replace("  %", " %"),
        because="the hypervisor passes no PMU on" if guest else finding,
        features=f"this processor announces no {', '.join(missing)}" if len(missing) == len(FEATURES) else finding,
    )


def _changes(checks: Sequence[Check], facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """One line for each thing that can be done, with the rows that it serves."""
    served: dict[str, list[str]] = {}
    for check in checks:
        if check.state != YES and check.change:
            served.setdefault(check.change, []).append(_gained(check, facts))
    for change, names in served.items():
        yield ", ".join(names), change


def _gained(check: Check, facts: Mapping[str, Any]) -> str:
    if check.name == "packages":
        return f"{sum(map(len, (facts.get('packages') or {}).values()))} more workloads"
    return check.name


def _elsewhere(rows: Mapping[str, Check]) -> Iterator[tuple[str, str]]:
    for capability in CAPABILITIES:
        lacking = [part for part in capability.parts if _lacks(capability, part, rows[part.check])]
        machines = [part.elsewhere for part in lacking if part.elsewhere and _takes_another(rows[part.check])]
        if machines:
            yield capability.gains, ", ".join(dict.fromkeys(machines))


def _takes_another(check: Check) -> bool:
    """Whether the user can do nothing about a row, which is not the mere consequence of another one."""
    return not check.change and not check.remedy.startswith("See ")


def _machine(facts: Mapping[str, Any], topology: Topology) -> Iterator[str]:
    """What the machine is, in three or four short parts."""
    model = (facts.get("cpu_model") or "unknown processor").replace("(R)", "").replace("(TM)", "")
    parts = [" ".join(model.split()), f"{len(topology.allowed)} CPUs"]
    if topology.llcs:
        llc = topology.llcs[0]
        size = f" {llc.bytes / 2**20:.4g} MiB" if llc.bytes else ""
        ways = f" in {llc.ways} ways" if llc.ways else ""
        many = f"{len(topology.llcs)} × " if len(topology.llcs) > 1 else ""
        parts.append(f"{many}L{llc.level}{size}{ways}")
    yield ", ".join(parts)
    yield from filter(None, [_host(facts)])
    if facts.get("kernel"):
        yield f"Linux {facts['kernel']}"


def _host(facts: Mapping[str, Any]) -> str:
    """The hypervisor and the container that we are in, as far as they are known; "" for neither."""
    kinds = {kind: name for kind, name in (facts.get("virtualisation") or {}).items() if name not in (None, "none")}
    guest = f"{kinds.get('vm', 'virtual')} guest" if "vm" in kinds or facts.get("hypervisor_flag") else ""
    container = kinds.get("container", "container" if facts.get("container_hints") else "")
    return ", ".join(filter(None, [guest, container]))
