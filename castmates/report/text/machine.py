"""The machine's facts -> terms and texts for the page; any fact may be missing."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from castmates.analysis.partitions.held import (
    AS_ASKED,
    BEYOND,
    NOT_READ,
    OTHERWISE,
    UNCERTAIN,
    HeldPartitions,
    equal,
    held_by,
    sharers,
    states,
)
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import CacheFacts, IdleFacts, MachineFacts, PerfFacts, QuirkFacts, ResctrlFacts
from castmates.report.results import Results
from castmates.report.text.words import counted, listed
from castmates.study.cpus import parse
from castmates.study.node_classes import cache_of
from castmates.study.spec import REST, Plan


def described(facts: MachineFacts) -> list[tuple[str, str]]:
    """What is known of the machine, as terms with their texts."""
    topology, memory, steal = facts.topology, facts.memory_bytes, facts.steal_share
    turbo, governors = facts.turbo.on if facts.turbo else None, facts.governors or {}
    rows: list[tuple[str, str | int | None]] = [
        ("Rehearsed", _rehearsed(facts.rehearsed) if facts.rehearsed else None),
        ("Host", facts.hostname),
        ("Processor", facts.cpu_model),
        ("CPUs that may be used", topology.allowed),
        ("Cores", topology.cores),
        ("Packages", topology.packages),
        ("Last-level caches", "; ".join(map(_cache, topology.llcs))),
        ("Memory", size(memory) if memory is not None else None),
        ("Virtualisation", virtualisation(facts)),
        ("Kernel", facts.kernel),
        ("Distribution", facts.distribution),
        ("Frequency governors", "; ".join(f"{name} on {cpus}" for name, cpus in governors.items())),
        ("Turbo", {True: "on", False: "off", None: None}[turbo]),
        ("Idle states", _idle(facts.idle_states)),
        ("Uncore clock", _uncore(facts.uncore_clock or {})),
        ("Transparent huge pages", facts.transparent_hugepages),
        ("CPU time stolen since boot", f"{100 * steal:.1f} %" if steal is not None else None),
        ("Read at", facts.read_at),
    ]
    return [(term, str(text)) for term, text in rows if text not in (None, "")]


def _rehearsed(machine: Mapping[str, Any]) -> str:
    """AMD EPYC 9654, real CPUID: its ways and classes were given out in memory, and did nothing."""
    what = ", ".join(filter(None, [machine.get("processor"), machine.get("origin")]))
    return f"{what}: its ways and classes were given out in memory, and did nothing"


def quirks(facts: MachineFacts) -> list[QuirkFacts]:
    """What is known to be wrong or hidden here."""
    return [quirk for quirk in facts.quirks if quirk.title]


def _idle(facts: IdleFacts | None) -> str | None:
    """intel_idle: POLL, C1, C6 (off on 0-3)."""
    if facts is None or not facts.states:
        return None
    states = [f"{state.name} (off on {state.off_on})" if state.off_on else state.name for state in facts.states]
    return f"{facts.driver or 'driver not shown'}: {', '.join(states)}"


def _uncore(domains: Mapping[str, Mapping[str, int]]) -> str | None:
    """800 to 2400 MHz, of every domain or of each."""
    ranges = {name: f"{each.get('min', '?')} to {each.get('max', '?')} MHz" for name, each in domains.items()}
    if len(set(ranges.values())) == 1:
        return next(iter(ranges.values()))
    return "; ".join(f"{name}: {text}" for name, text in ranges.items()) or None


def in_a_line(facts: MachineFacts) -> str:
    """AMD EPYC 9B45, 2 CPUs, virtual machine; Linux 6.12."""
    if facts.classes:
        return f"{counted(len(facts.classes), 'modelled class')} of nodes: {listed(list(facts.classes))}"
    allowed = len(parse(facts.topology.allowed, "allowed")) if facts.topology.allowed else 0
    parts = [
        facts.cpu_model,
        counted(allowed, "CPU") if allowed else None,
        "virtual" if virtualisation(facts) else None,
        f"Linux {facts.kernel.split('-')[0]}" if facts.kernel else None,
    ]
    return ", ".join(filter(None, parts))


def lacks(facts: MachineFacts, partitioned: bool = False) -> list[str]:
    """What this machine could not give, and what the report therefore does not show."""
    if not facts.model_fields_set:
        return ["The machine's facts were not recorded, so this report cannot list what the machine lacks."]
    perf = facts.perf or PerfFacts()
    sentences = [] if partitioned else _no_partitions(facts.resctrl)
    if perf.hardware not in ("counted", "user only"):
        why = perf.hardware or perf.why or ("perf is not there" if facts.recorded("perf") else "not recorded")
        sentences.append(
            f"No hardware counters ({why}): losses are measured but their causes in the processor are not explained."
        )
    if facts.governors is None:
        sentences.append(
            "No view of the frequency governor: a change of frequency cannot be distinguished from other causes."
        )
    if virtualisation(facts):
        sentences.append(
            "The machine is virtual or a container: neighbours outside it can disturb what is measured here."
        )
    return sentences


def _no_partitions(resctrl: ResctrlFacts) -> list[str]:
    """Why nothing was tried on the cache, as far as it is the machine's doing."""
    if not resctrl.mounted:
        why = "the kernel does not have it" if resctrl.kernel is False else "it is not mounted"
        return [
            f"No cache partitions: resctrl could not be used ({why}), so no mask was set and this report "
            "cannot show which partition gives the loss back."
        ]
    if resctrl.writable is False and not resctrl.delegated:
        return ["No cache partitions: resctrl is mounted but may not be written, so no mask was set."]
    return []


def origins(records: Sequence[LaunchRecord], facts: MachineFacts, compared: bool = False) -> list[str]:
    """Where the numbers come from, if not all from the one machine that is described.

    `compared`: the page compares the machines with each other, so that they need no word here.
    """
    measured = [record for record in records if record.measured]
    hosts = Counter(record.host for record in measured if record.host)
    kernels = Counter(record.versions["kernel"] for record in measured if "kernel" in record.versions)
    return [
        *([] if compared else _origin(hosts, facts.hostname, "host", "machine")),
        *_origin(kernels, facts.kernel, "kernel", "kernel"),
        *_packages(measured),
    ]


def _packages(records: Sequence[LaunchRecord]) -> list[str]:
    """Which programs were not the same in all launches: their effects are pooled as if they were."""
    versions: dict[str, Counter[str]] = {}
    for record in records:
        for package, version in record.packages:
            versions.setdefault(package, Counter())[version] += 1
    return [
        f"The launches ran {len(counts)} versions of {package} "
        f"({', '.join(f'{name}: {count}' for name, count in sorted(counts.items()))}); their effects are pooled."
        for package, counts in sorted(versions.items())
        if len(counts) > 1
    ]


def _origin(counts: Counter[str], described: str | None, kind: str, thing: str) -> list[str]:
    if len(counts) > 1:
        each = ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
        sentence = f"The launches come from {len(counts)} {kind}s ({each}); their effects are pooled"
        if not described:
            return [f"{sentence}."]
        return [f"{sentence}, and the {thing} below is {'only one' if described in counts else 'none'} of them."]
    if not counts or not described or described in counts:
        return []
    return [f"The launches come from the {kind} {listed(list(counts))}, which is not the {thing} below ({described})."]


def size(count: int) -> str:
    """Bytes in binary units: 33554432 is 32 MiB."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


def _cache(cache: CacheFacts) -> str:
    parts = [f"L{cache.level if cache.level is not None else '?'}"]
    parts += [size(cache.bytes)] if cache.bytes else []
    parts += [f"{cache.ways} ways"] if cache.ways else []
    parts += [f"divided among {cache.clusters} memory nodes"] if cache.clusters > 1 else []
    return f"{', '.join(parts)} (CPUs {cache.cpus})"


def virtualisation(facts: MachineFacts) -> str:
    """Return by what the machine is virtual, or a container; "" where it is neither."""
    names = [f"{kind}: {name}" for kind, name in facts.virtualisation.items() if name and name != "none"]
    if not names and facts.hypervisor_flag:
        names = ["a hypervisor, by the processor's flags"]
    return "; ".join(names)


# What the processor made of the partitions' masks and throttles, in sentences for the health panel.

NAMED = 5  # partitions in a sentence, and settings


def sentences(results: Results) -> str:
    """What is proved of the processor: as asked, otherwise, or only what the kernel holds; "" without partitions."""
    records = [record for record in results.recorded if record.get("status") == "measured"]
    found, plan = held_by(records), results.plan
    known = states(plan, found)
    by_state: dict[str, dict[str, None]] = {}
    for (_, partition), state in known.items():
        by_state.setdefault(state, {}).setdefault(partition)
    parts = [*_read(by_state), *_otherwise(by_state, records)]
    parts += _shared(plan, found)
    parts += _beyond(by_state.get(BEYOND, {}), found)
    parts += [
        f"{listed(same)} are one partition: the processor held the same under each." for same in equal(plan, found)
    ]
    parts += _unread(by_state, records)
    if uncertain := by_state.get(UNCERTAIN):
        machines = {mix.name: mix.machine for mix in plan.mixes}
        caches = [cache_of(plan, machines[mix]) for (mix, _), state in known.items() if state == UNCERTAIN]
        shared = listed(list(dict.fromkeys(f"{cache.shareable:#x}" for cache in caches if cache)))
        parts.append(
            f"Masks of {_some(uncertain)} have some but not all of the ways {shared} that I/O fills too. Some "
            "processors give these ways together only, so lead and antagonists may share ways there: no such partition "
            "is chosen as isolating."
        )
    return " ".join(parts)


def _read(by_state: Mapping[str, Mapping[str, None]]) -> Iterator[str]:
    read = {**by_state.get(AS_ASKED, {}), **by_state.get(OTHERWISE, {})}
    if read:
        count = len(by_state.get(AS_ASKED, {}))
        asked = "all of them" if count == len(read) else f"{count} of them"
        yield f"The processor's registers were read under {counted(len(read), 'partition')} and held {asked} as asked."


def _otherwise(by_state: Mapping[str, Mapping[str, None]], records: list[Mapping[str, Any]]) -> Iterator[str]:
    if names := by_state.get(OTHERWISE):
        settings = dict.fromkeys(_settings(records))
        yield (
            f"Under {_some(names)} they held something else ({_some(settings, '; ')}). These partitions keep their "
            "names, and are judged by what the processor held."
        )


def _shared(plan: Plan, held: HeldPartitions) -> Iterator[str]:
    by_groups: dict[tuple[str, ...], dict[str, None]] = {}
    for (_, partition), groups in sharers(plan, held).items():
        by_groups.setdefault(groups, {}).setdefault(partition)
    for groups, names in by_groups.items():
        if groups:
            yield (
                f"Ways of {_some(names)} are shared with {listed(groups)}: other programs have them too, so no such "
                "partition isolates."
            )


def _beyond(names: Collection[str], held: HeldPartitions) -> Iterator[str]:
    if names:
        filled = {
            f"{member} {words} under {partition}": None
            for (_, partition), members in held.beyond.items()
            for member, words in members.items()
            if partition in names
        }
        yield (
            "The cache's occupancy shows that members filled more ways than their masks give: "
            f"{_some(filled, '; ')}. Such a partition isolates nobody; `castmates doctor --verify-rdt` tries the masks "
            "of this machine."
        )


def _settings(records: list[Mapping[str, Any]]) -> Iterator[str]:
    for record in records:
        for rows in record.get("processor", {}).get("partitions", {}).values():
            for row in rows:
                who = "the rest of the machine" if row["member"] == REST else row["member"]
                yield f"{who}: {row['line']} {row['held']} where {row['asked']} was asked"


def _unread(by_state: Mapping[str, Mapping[str, None]], records: list[Mapping[str, Any]]) -> Iterator[str]:
    """Why some partitions were not read, where a launch records it; of a modelled machine there is nothing to read."""
    why = dict.fromkeys(record["processor"]["registers"]["lacking"] for record in records if "processor" in record)
    if why and (NOT_READ in by_state or UNCERTAIN in by_state):
        reasons = listed(list(filter(None, why)))
        because = f": {reasons}" if reasons else ""
        yield f"It is proved what the kernel holds, but not what the processor holds{because}."


def _some(names: Mapping[str, None], between: str = ", ") -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return between.join(list(names)[:NAMED]) + more
