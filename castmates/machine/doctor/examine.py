"""What this machine offers a study, what each lack costs, and how to change it; pure functions of facts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from operator import and_
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from castmates.english import listed
from castmates.linux.cgroups import OWN
from castmates.machine import quirks
from castmates.machine.doctor import cpu, tools
from castmates.machine.doctor.capabilities import Summary
from castmates.machine.doctor.cpu import GRANT, Check, State
from castmates.machine.doctor.features import MOUNT, NEEDED_CLASSES, Info, bandwidth_unit, features, why_none
from castmates.machine.resctrl_state import settings
from castmates.machine.topology import Topology
from castmates.study.cache import rate_words
from castmates.study.last_level import MEMORY_SHARE
from castmates.study.memory_peak import COMMAND, Peak
from castmates.study.rdt_trial import COMMAND as RDT_COMMAND
from castmates.study.rdt_trial import NOT_TRIED, Part, Tried

LARGER = 4  # times the cache: the size of what streams through memory (4llc)
SWITCH = "/sys/kernel/mm/transparent_hugepage/enabled"


def huge_pages(facts: Mapping[str, Any]) -> Check:
    """Can a program have huge pages where it asks for them?"""
    name, word = "huge pages", facts.get("transparent_hugepages")
    cost = (
        "Pointer chasing and the dials of cache capacity run on usual pages: address translation is part of their cost."
    )
    if word is None:
        return Check(name, "unknown", "the kernel does not show transparent_hugepage", cost, "Look at the host.")
    if word == "never":
        change = f"echo madvise | sudo tee {SWITCH}"
        remedy = f"Allow them where a program asks: {change}, or 'machine.prepare: {{thp: madvise}}' in the study."
        return Check(name, "no", "transparent_hugepage is never", cost, remedy, change)
    default = "also where it does not ask" if word == "always" else "where it asks"
    return Check(name, "yes", f"transparent_hugepage is {word}: a program has them {default}")


def room(facts: Mapping[str, Any], topology: Topology) -> Check:
    """Is there memory for what has to be larger than the cache?"""
    name, total, limit = "memory", facts.get("memory_bytes"), facts.get("memory_limit")
    cache = max((llc.bytes or 0 for llc in topology.llcs), default=0)
    if total is None:
        return Check(name, "unknown", "the kernel does not show it", "No mix is refused for want of memory.", "")
    usable = total if limit is None else limit
    finding = f"{usable / 1e9:.3g} GB"
    if limit is not None:
        finding += f" of {total / 1e9:.3g} GB, which a control group allows"
    if LARGER * cache <= MEMORY_SHARE * usable:
        return Check(name, "yes", finding)
    cost = (
        f"What is to go through memory is cut to less than {LARGER} times the {cache / 2**20:.4g} MiB of a last-level "
        "cache; a mix that takes more than there is is refused."
    )
    remedy = "Give the container or job more memory." if limit is not None else "Use a machine with more memory."
    return Check(name, "partly", finding, cost, remedy)


def peak(facts: Mapping[str, Any]) -> Check:
    """Is it known how much memory bandwidth a package gives?"""
    name, found = "memory peak", Peak.of(facts.get("memory_peak"))
    if found is None:
        cost = "How busy an antagonist keeps the memory is not known, and no rate can be a share of its peak."
        return Check(name, "unknown", "not measured on this machine", cost, f"Run {COMMAND} (a minute).", COMMAND)
    finding = f"{found.highest() / 1e9:.3g} GB/s read by up to {found.cores} cores, measured at {found.at}"
    if not found.saturated:
        cost = "Bandwidth still grew with the last core that was tried: shares of this peak say little of the memory."
        return Check(name, "partly", finding, cost, "Measure where all cores of a package may be used.")
    return Check(name, "yes", f"{finding}; {found.saturating} saturate it")


# What is special about some machines' caches; each row is there only where its thing is.

MIB = 2**20
OURS = ("L3", "L3CODE", "L3DATA", "MB", "L3_MON", "PERF_PKG_MON")  # what is used, or controls nothing
WORDS = {
    "L2": "masks of second-level caches (L2)",
    "L2DATA": "masks of second-level caches for data (L2DATA)",
    "L2CODE": "masks of second-level caches for code (L2CODE)",
    "SMBA": "throttles of slow memory (SMBA)",
}


def special_caches(facts: Mapping[str, Any], topology: Topology) -> list[Check]:
    """Return the rows for this machine."""
    info: Mapping[str, Mapping[str, str | None]] = facts["resctrl"].get("info") or {}
    return [*_clusters(facts, info, topology), *_code_and_data(info), *_other_controls(info)]


def _clusters(facts: Mapping[str, Any], info: Mapping[str, Any], topology: Topology) -> list[Check]:
    """Do memory nodes divide the last-level cache among themselves?"""
    divided = [llc for llc in topology.llcs if llc.clusters > 1]
    if not divided:
        return []
    name, llc = "sub-NUMA clusters", divided[0]
    finding = f"{llc.clusters} memory nodes divide each last-level cache"
    if llc.bytes:
        finding += f": a program fills {llc.bytes / llc.clusters / MIB:.4g} of its {llc.bytes / MIB:.4g} MiB"
    if "L3_MON" not in info or facts["resctrl"].get("clusters"):
        return [Check(name, "yes", finding)]
    cost = "Occupancy and traffic are those of the first cluster alone: this kernel's resctrl does not know clusters."
    remedy = "Use Linux 6.11 or newer, or switch sub-NUMA clustering off in the firmware."
    return [Check(name, "partly", f"{finding}; this kernel's resctrl does not know them", cost, remedy)]


def _code_and_data(info: Mapping[str, Any]) -> list[Check]:
    if "L3CODE" not in info:
        return []
    return [Check("code masks", "yes", "mounted with cdp: a mask of a study holds for code too, unless it has 'code'")]


def _other_controls(info: Mapping[str, Mapping[str, str | None]]) -> list[Check]:
    """What else could be shared out, which a study leaves as it is?"""
    others = [resource for resource, files in info.items() if resource not in OURS and files.get("num_closids")]
    if not others:
        return []
    what = ", ".join(f"{WORDS.get(each, each)}, {info[each]['num_closids']} classes" for each in others)
    return [Check("other controls", "yes", f"{what}; a study leaves them as they are")]


# All rows, and how they are shown.

STYLES = {"yes": "green", "no": "red", "partly": "yellow", "unknown": "dim"}


def examine(facts: Mapping[str, Any], topology: Topology) -> list[Check]:
    """Judge the facts row by row; nothing is read or tried here."""
    return [
        cpu.cores(topology),
        cpu.spare(facts, topology),
        cpu.equal_cores(topology),
        cpu.smt(facts, topology),
        cpu.llc(facts, topology),
        cpu.numa(facts, topology),
        *special_caches(facts, topology),
        cpu.balanced(facts, topology),
        room(facts, topology),
        huge_pages(facts),
        peak(facts),
        kernel(facts),
        mounted(facts),
        *filter(None, [default_class(facts)]),
        permission(facts),
        *features(facts),
        *verified(facts),
        pqos(facts),
        *_known_quirks(facts),
        tools.perf(facts),
        tools.hardware_counters(facts),
        tools.software_counters(facts),
        tools.counting(facts),
        tools.counts_verified(facts),
        tools.paranoid(facts),
        tools.uprobes(facts),
        tools.freezing(facts),
        tools.cpuset_partition(facts),
        tools.put_back(facts),
        cpu.governor(facts),
        cpu.turbo(facts),
        cpu.swap(facts),
        cpu.steal(facts),
        tools.tracing(facts),
        memory_latencies(facts),
        tools.compiler(facts),
        tools.tensorflow_python(facts),
        tools.gpus(facts),
        tools.packages(facts),
        tools.plugins(facts),
    ]


def as_json(checks: Sequence[Check]) -> str:
    """Render the rows as a JSON list of objects with the keys name, state, finding, cost, remedy and change."""
    return json.dumps([asdict(check) for check in checks], indent=2, ensure_ascii=False)


def as_table(checks: Sequence[Check]) -> "Group":
    """Render the rows, then what each lack costs, for a rich console, which leaves colours out on a pipe."""
    from rich import box
    from rich.console import Group, RenderableType
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("finding", overflow="fold")
    notes: list[RenderableType] = []
    for check in checks:
        # Text, not markup: a kernel's own brackets must come out as they are.
        table.add_row(Text(check.name), Text(check.state, style=STYLES[check.state]), Text(check.finding))
        if check.state != "yes" and not check.remedy.startswith("See "):
            notes.append(Text(f"{check.name}: {check.cost}", style="bold"))
            notes.append(Padding(Text(check.remedy), (0, 0, 0, 4)))
    return Group(table, *notes)


def _known_quirks(facts: Mapping[str, Any]) -> list[Check]:
    """Return a row for each quirk that no other row shows, or one that there is none."""
    shown = [quirk for quirk in quirks.applicable(facts) if not quirk.row]
    if not shown:
        return [Check("known quirks", "yes", "none for this processor and kernel")]
    return [Check(f"known quirks: {one.name}", "partly", one.heading(facts), one.happens, one.do) for one in shown]


# The source of memory latencies.

NAME = "memory latencies"
COST = "Where loads were served from, and how long they took, is not in traces."


def memory_latencies(facts: Mapping[str, Any]) -> Check:
    """Does the processor sample loads with their latency?"""
    found: Mapping[str, str] | None = facts.get("latency_source")
    if found:
        return Check(NAME, "yes", f"{found['source']}, by perf's {found['events']}; not tried on real hardware yet")
    if facts.get("hypervisor_flag"):
        return Check(
            NAME, "no", "no PEBS, IBS or SPE in this guest", COST, "Use bare metal; few hypervisors pass it on."
        )
    return Check(NAME, "no", "no PEBS, IBS or SPE", COST, "Use a processor that has one, with its kernel driver.")


# The file system resctrl itself: kernel, mount, permission, trial.

DEGRADES = "The study goes on without partitions and without the occupancy of the cache."


def kernel(facts: Mapping[str, Any]) -> Check:
    """Does the kernel have resctrl for this processor?"""
    known: bool | None = facts["resctrl"]["kernel"]
    if known:
        return Check("resctrl", "yes", "the kernel has it")
    if known is None:
        return Check("resctrl", "unknown", "/proc/filesystems cannot be read", DEGRADES, "Mount /proc.")
    why = why_none(facts)
    return Check("resctrl", "no", why.finding, DEGRADES, why.remedy, why.change)


def mounted(facts: Mapping[str, Any]) -> Check:
    """Is resctrl mounted here, and not used by others?"""
    resctrl = facts["resctrl"]
    if resctrl["mounted"] is None:
        if not resctrl["kernel"]:
            return Check("resctrl mounted", "no", "not mounted", DEGRADES, "See resctrl.")
        remedy = f"Mount it: {MOUNT}, or let root run, once: {GRANT}"
        if facts.get("container_hints"):
            remedy += " (on the host; then start the container with -v /sys/fs/resctrl:/sys/fs/resctrl)"
        return Check("resctrl mounted", "no", "not mounted here", DEGRADES, remedy, GRANT)
    finding = f"at {resctrl['mounted']} ({resctrl['options']})"
    others = [group for group in resctrl["groups"] or [] if not group.startswith(OWN)]
    if others:
        finding += f"; groups of others: {', '.join(others[:4])}{' …' if len(others) > 4 else ''}"
        cost = "Others hold classes and ways, and may change masks during a study."
        example = f"sudo rmdir {resctrl['mounted']}/{others[0]}"
        remedy = f"Stop their owner (pqos, a container runtime); then, if unused: {example}"
        return Check("resctrl mounted", "partly", finding, cost, remedy, f"stop their owner, then {example}")
    if makers := facts.get("group_makers"):
        finding += f"; {listed(makers)} {'runs, and has' if len(makers) == 1 else 'run, and have'} no groups yet"
        cost = "A container that starts during a study may get a group: it takes a class, and may take ways."
        remedy = "Keep containers with RDT classes off this node while a study measures, or drain it."
        return Check("resctrl mounted", "partly", finding, cost, remedy)
    return Check("resctrl mounted", "yes", finding)


def default_class(facts: Mapping[str, Any]) -> Check | None:
    """What may programs take that nobody has put into a group? None where that is not shown."""
    values, info = settings(facts["resctrl"].get("default_class") or ""), facts["resctrl"]["info"] or {}
    every = int((info.get("L3") or info.get("L3DATA") or {}).get("cbm_mask") or "0", 16)
    ways = reduce(and_, (int(value, 16) for (line, _), value in values.items() if line.startswith("L3")), every)
    unit, most = bandwidth_unit(facts)
    throttle = min((int(value) for (line, _), value in values.items() if line == "MB"), default=most)
    found = [f"{ways.bit_count()} of {every.bit_count()} ways"] if every else []
    found += [rate_words(throttle, unit)] if throttle < most else []
    if not (values and found):
        return None
    if ways == every and throttle >= most:
        return Check("default class", "yes", ", ".join(found))
    cost = "Somebody has narrowed it, so programs of a study have no more: partitions stay within it."
    remedy = "If nothing else needs the rest, widen it, or write 'cache.beyond_site: true' in the study."
    return Check("default class", "partly", ", ".join(found), cost, remedy)


def permission(facts: Mapping[str, Any]) -> Check:
    """May we make groups and write masks?"""
    writable: bool | None = facts["resctrl"]["writable"]
    if writable is None:
        return Check("resctrl permission", "unknown", "not mounted, so not tried", DEGRADES, "See resctrl mounted.")
    if writable:
        return Check("resctrl permission", "yes", "groups and masks can be written")
    groups = facts["resctrl"].get("delegated") or []
    if len(groups) >= NEEDED_CLASSES - 1:
        finding = f"root has given this user {len(groups)} groups"
        if facts["resctrl"].get("default_group"):
            return Check("resctrl permission", "yes", f"{finding}, and the masks of the default group")
        cost = "Partitions do not limit the rest of the machine: it keeps all ways, and may fill those of a program."
        change = f"{GRANT} --default-group"
        found = f"{finding}, but not the masks of the default group"
        remedy = f"Let root give this user the masks of the default group too: {change}"
        return Check("resctrl permission", "partly", found, cost, remedy, change)
    finding = f"root has given this user {len(groups)} group" if groups else "read only for this user"
    remedy = f"Let root give this user groups, once: {GRANT}; in a container start it with --privileged, so that /sys "
    state: State = "partly" if groups else "no"
    return Check("resctrl permission", state, finding, DEGRADES, f"{remedy}is writable.", GRANT)


def verified(facts: Mapping[str, Any]) -> list[Check]:
    """Were masks seen to keep a neighbour out here, and throttles to slow programs down?"""
    remedy = f"Run {RDT_COMMAND} (about ten minutes), when nothing else runs."
    info: Info = facts["resctrl"]["info"] or {}
    tried = Tried.of(facts.get("rdt_trial"))
    cost = "A sweep with partitions is stamped unverified."
    if doubtful := [quirk for quirk in quirks.applicable(facts) if quirk.verify == "masks"]:
        errata = ", ".join(erratum for quirk in doubtful for erratum in quirk.errata)
        cost += f" Masks may fail on this processor ({errata})."
        remedy += " Here it is not optional."
    checks = [_verified("masks verified", tried, ("masks", "isolation"), cost, remedy)]
    if tried is None and not {"L3", "L3CODE"} & set(info):
        checks = [Check("masks verified", "no", "there is no cache allocation that could be tried", cost, "See CAT.")]
    if "MB" in info:
        unknown = "Steps of the throttle that do the same are measured as several partitions."
        checks.append(_verified("throttles verified", tried, ("throttles",), unknown, remedy))
    return checks


def _verified(name: str, tried: Tried | None, parts: Sequence[Part], cost: str, remedy: str) -> Check:
    if tried is None or not any(part in tried.parts for part in parts):
        return Check(name, "unknown", "not tried on this machine with this kernel", cost, remedy, RDT_COMMAND)
    found = ", ".join(f"{part}: {tried.parts[part].verdict}" for part in parts if part in tried.parts)
    finding = f"tried at {tried.at}: {found}"
    if failed := [part for part in parts if not tried.verifies(part)]:
        if all(part in tried.parts and tried.parts[part].verdict == NOT_TRIED for part in failed):
            return Check(name, "unknown", finding, cost, " ".join(tried.parts[part].said for part in failed))
        said = " ".join(tried.sentence(part) for part in failed if part in tried.parts)
        return Check(name, "no", finding, cost, said or remedy)
    return Check(name, "yes", finding)


def pqos(facts: Mapping[str, Any]) -> Check:
    """Is pqos there? It is not needed, and merely starting it takes all classes."""
    where: str | None = facts.get("pqos")
    if where is None:
        return Check("pqos", "yes", "not installed, and not needed: Castmates drives resctrl itself")
    return Check("pqos", "yes", f"{where}; do not start it during a study, since it makes groups of all classes")


# The doctor's summary on a terminal.

MARKS = {"yes": ("✓", "green"), "partly": ("!", "yellow"), "unknown": ("?", "dim"), "no": ("✗", "red")}
STATES = ("yes", "partly", "no", "unknown")
COMMANDS = ("sudo", "castmates", "echo")


def screen(summary: Summary) -> Group:
    """What can be done here, what the user can change, what takes another machine."""
    parts: list[RenderableType] = [Text("  ·  ".join(summary.machine), style="bold"), Text(), _verdicts(summary)]
    for title, lines in (("You can change", summary.changes), ("Only another machine can", summary.elsewhere)):
        if lines:
            parts += [Text(), Text(title, style="bold"), _lines(lines)]
    counts = ", ".join(f"{summary.counts[state]} {state}" for state in STATES if summary.counts.get(state))
    more = Text.assemble(counts, "   each row: ", ("castmates doctor --all   --format json", "cyan"))
    return Group(*parts, Text(), more)


def _verdicts(summary: Summary) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for style in ("", "bold", ""):
        table.add_column(style=style, no_wrap=style == "bold", overflow="fold")
    for verdict in summary.verdicts:
        mark, colour = MARKS[verdict.state]
        table.add_row(Text(f" {mark}", style=colour), Text(verdict.name), Text(verdict.why))
    return table


def _lines(lines: Sequence[tuple[str, str]]) -> Padding:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=28)
    table.add_column(overflow="fold")
    for gained, how in lines:
        table.add_row(Text(gained), Text(how, style="cyan" if how.startswith(COMMANDS) else ""))
    return Padding(table, (0, 0, 0, 4))
