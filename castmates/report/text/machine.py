"""The machine's facts -> terms and texts for the page; any fact may be missing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from castmates.report.text.words import listed

Facts = Mapping[str, Any]


def described(facts: Facts) -> list[tuple[str, str]]:
    """What is known of the machine, as terms with their texts."""
    topology = _mapping(facts, "topology")
    turbo, governors = _mapping(facts, "turbo"), _mapping(facts, "governors")
    memory, steal = facts.get("memory_bytes"), facts.get("steal_share")
    rows: list[tuple[str, Any]] = [
        ("Host", facts.get("hostname")),
        ("Processor", facts.get("cpu_model")),
        ("CPUs that may be used", topology.get("allowed")),
        ("Cores", topology.get("cores")),
        ("Packages", topology.get("packages")),
        ("Last-level caches", _caches(topology)),
        ("Memory", size(memory) if isinstance(memory, int) else None),
        ("Virtualisation", _virtualisation(facts)),
        ("Kernel", facts.get("kernel")),
        ("Distribution", facts.get("distribution")),
        ("Frequency governors", "; ".join(f"{name} on {cpus}" for name, cpus in governors.items())),
        ("Turbo", {"True": "on", "False": "off"}.get(str(turbo.get("on")))),
        ("Transparent huge pages", facts.get("transparent_hugepages")),
        ("CPU time stolen since boot", f"{100 * steal:.1f} %" if isinstance(steal, float) else None),
        ("Read at", facts.get("read_at")),
    ]
    return [(term, str(text)) for term, text in rows if text not in (None, "", [])]


def lacks(facts: Facts, partitioned: bool = False) -> list[str]:
    """What this machine could not give, and what the report therefore does not say."""
    if not facts:
        return ["The machine's facts were not recorded, so this report cannot say what the machine lacks."]
    perf = _mapping(facts, "perf")
    said = [] if partitioned else _no_partitions(_mapping(facts, "resctrl"))
    if perf.get("hardware") not in ("counted", "user only"):
        why = perf.get("hardware") or perf.get("why") or ("perf is not there" if "perf" in facts else "not recorded")
        said.append(
            f"No hardware counters ({why}): losses are measured but their causes in the processor are not explained."
        )
    if facts.get("governors") is None:
        said.append("No view of the frequency governor: a change of frequency cannot be told from other causes.")
    if _virtualisation(facts):
        said.append("The machine is virtual or a container: neighbours outside it can disturb what is measured here.")
    return said


def _no_partitions(resctrl: Facts) -> list[str]:
    """Why nothing was tried on the cache, as far as it is the machine's doing."""
    if not resctrl.get("mounted"):
        why = "the kernel does not have it" if resctrl.get("kernel") is False else "it is not mounted"
        return [
            f"No cache partitions: resctrl could not be used ({why}), so no mask was set and this report "
            "cannot say which partition gives the loss back."
        ]
    if resctrl.get("writable") is False and not resctrl.get("delegated"):
        return ["No cache partitions: resctrl is mounted but may not be written, so no mask was set."]
    return []


def origins(records: Sequence[Facts], facts: Facts) -> list[str]:
    """Where the numbers come from, if not all from the one machine that is described."""
    measured = [record for record in records if record.get("status") == "measured"]
    hosts = Counter(str(record["host"]) for record in measured if record.get("host"))
    versions = [_mapping(record, "versions") for record in measured]
    kernels = Counter(str(version["kernel"]) for version in versions if version.get("kernel"))
    return [
        *_origin(hosts, facts.get("hostname"), "host", "machine"),
        *_origin(kernels, facts.get("kernel"), "kernel", "kernel"),
        *_packages(measured),
    ]


def _packages(records: Sequence[Facts]) -> list[str]:
    """Which programs were not the same in all blocks: their effects are pooled as if they were."""
    versions: dict[str, Counter[str]] = {}
    for record in records:
        packages = [_mapping(member, "package") for member in _mapping(record, "members").values()]
        for package, found in {(name, str(one)) for each in packages for name, one in each.items() if one}:
            versions.setdefault(package, Counter())[found] += 1
    return [
        f"The blocks ran {len(counts)} versions of {package} "
        f"({', '.join(f'{name}: {count}' for name, count in sorted(counts.items()))}); their effects are pooled."
        for package, counts in sorted(versions.items())
        if len(counts) > 1
    ]


def _origin(counts: Counter[str], described: Any, kind: str, thing: str) -> list[str]:  # noqa: ANN401 (any fact)
    if len(counts) > 1:
        each = ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
        said = f"The blocks come from {len(counts)} {kind}s ({each}); their effects are pooled"
        if not described:
            return [f"{said}."]
        return [f"{said}, and the {thing} below is {'only one' if described in counts else 'none'} of them."]
    if not counts or not described or described in counts:
        return []
    return [f"The blocks come from the {kind} {listed(list(counts))}, which is not the {thing} below ({described})."]


def size(count: int) -> str:
    """Bytes in binary units: 33554432 is 32 MiB."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


def _mapping(facts: Facts, key: str) -> Facts:
    value = facts.get(key)
    return value if isinstance(value, Mapping) else {}


def _caches(topology: Facts) -> str:
    found = topology.get("llcs")
    caches = [cache for cache in found if isinstance(cache, Mapping)] if isinstance(found, list) else []
    return "; ".join(_cache(cache) for cache in caches)


def _cache(cache: Facts) -> str:
    parts = [f"L{cache.get('level', '?')}"]
    parts += [size(cache["bytes"])] if cache.get("bytes") else []
    parts += [f"{cache['ways']} ways"] if cache.get("ways") else []
    return f"{', '.join(parts)} (CPUs {cache.get('cpus', '?')})"


def _virtualisation(facts: Facts) -> str:
    found = _mapping(facts, "virtualisation")
    names = [f"{kind}: {name}" for kind, name in found.items() if name and name != "none"]
    if not names and facts.get("hypervisor_flag"):
        names = ["a hypervisor, by the processor's flags"]
    return "; ".join(names)
