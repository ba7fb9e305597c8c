"""Everything about this machine that a reader of the results may ask for, as plain JSON-able data."""

import os
import platform
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import castmates
from castmates.linux import cgroups, cpuset_partition, host, nvml
from castmates.linux.kernel_files import CPU_DIR, below, mounts, read_int, read_text
from castmates.linux.owner import is_in_container
from castmates.linux.perf_event import PERF_DEVICES
from castmates.machine import facts_power, facts_rdt, journal, probes, quirks
from castmates.machine.latency_sources import latency_source
from castmates.machine.memory import limited_memory
from castmates.machine.topology import Topology, read_topology
from castmates.study.cpus import format_cpu_list


def machine_facts(root: Path = Path("/"), topology: Topology | None = None) -> dict[str, Any]:
    """Gather the facts; of a recorded tree only what can be read is known, and what is tried is None."""
    sources: dict[str, Callable[[Path], Any]] = {
        "read_at": lambda _: datetime.now().astimezone().isoformat(timespec="seconds"),
        "hostname": lambda root: host.sysctl("kernel/hostname", root),
        "cpu_model": cpu_model,
        "processor": lambda root: host.processor(root) | {"flags": quirks.flags_here(root)},
        "microcode": lambda root: host.cpuinfo(root).get("microcode"),
        "kernel": host.release,
        "cmdline": host.command_line,
        "distribution": distribution,
        "hypervisor_flag": hypervisor_flag,
        "container_hints": container_hints,
        "topology": lambda root: topology_summary(topology or read_topology(root)),
        "memory_bytes": lambda root: host.memory_bytes("MemTotal", root),
        "memory_limit": limited_memory,
        "swap": swap,
        "mitigations": mitigations,
        "transparent_hugepages": transparent_hugepages,
        "numa_balancing": lambda root: read_int(root / host.SYSCTL / "kernel/numa_balancing"),
        "ksm": lambda root: read_int(root / "sys/kernel/mm/ksm/run"),
        "governors": governors,
        "turbo": turbo,
        "idle_states": facts_power.idle_states,
        "uncore_clock": facts_power.uncore_clock,
        "isolated_cpus": lambda root: read_text(root / CPU_DIR / "isolated"),
        "nmi_watchdog": lambda root: read_int(root / host.SYSCTL / "kernel/nmi_watchdog"),
        "perf_event_paranoid": lambda root: read_int(root / host.SYSCTL / "kernel/perf_event_paranoid"),
        "root": lambda root: os.geteuid() == 0 if root == Path("/") else None,
        "aslr": lambda root: read_int(root / host.SYSCTL / "kernel/randomize_va_space"),
        "rdt_flags": facts_rdt.rdt_flags,
        "resctrl": facts_rdt.resctrl,
        "cgroup": cgroup,
        "no_cpuset_partition": lambda root: cpuset_partition.lacking() if root == Path("/") else None,
        "tracefs": tracefs,
        "latency_source": latency_source,
        "load_average": host.load_average,
        "steal_share": steal_share,
        "python": lambda _: platform.python_version(),
        "left_changed": lambda root: journal.left_changed() if root == Path("/") else None,
        "castmates": lambda _: castmates.__version__,
    }
    facts = {name: source(root) for name, source in sources.items()}
    facts |= _tried(facts["cgroup"] if root == Path("/") else None, root == Path("/"))
    return facts | {"quirks": quirks.as_facts(facts)}


def _tried(cgroup: dict[str, Any] | None, here: bool) -> dict[str, Any]:
    """Run the probes side by side, so that the slowest alone sets the time."""
    group = cgroup["v2_group"] if cgroup else None
    tries: dict[str, Callable[[], Any]] = {
        "virtualisation": probes.detect_virtualisation,
        "freezing": lambda: probes.try_freezing(Path(group)) if group else None,
        "perf": probes.try_perf,
        "traces": probes.try_tracing,
        "pqos": probes.find_pqos,
        "compiler": probes.find_compiler,
        "tensorflow_python": probes.find_tensorflow_python,
        "gpus": nvml.seen,
        "git": probes.our_git_state,
    }
    if not here:
        return dict.fromkeys(tries)
    with ThreadPoolExecutor(len(tries)) as pool:
        running = {name: pool.submit(attempt) for name, attempt in tries.items()}
        return {name: future.result() for name, future in running.items()}


def cpu_model(root: Path) -> str | None:
    """Name the processor: x86's model name, or Arm's implementer and part numbers."""
    pairs = host.cpuinfo(root)
    if "CPU implementer" in pairs:
        return f"implementer {pairs['CPU implementer']} part {pairs.get('CPU part')}"
    return pairs.get("model name")


def has_counters(root: Path) -> bool:
    """Whether perf knows counters of the processor; hybrid ones have a unit for each kind of core."""
    return any((root / PERF_DEVICES).glob("cpu*/type"))


def distribution(root: Path) -> str | None:
    """Return the distribution's own name."""
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', read_text(root / "etc/os-release") or "", re.MULTILINE)
    return match[1] if match else None


def hypervisor_flag(root: Path) -> bool | None:
    """Check whether the processor's flags name a hypervisor; None where there are no x86 flags."""
    flags = host.cpu_flags(root)
    return None if flags is None else "hypervisor" in flags


def container_hints(root: Path) -> list[str]:
    """List the marks of a container; an empty list means that none was found."""
    hints = [name for name in ("/.dockerenv", "/run/.containerenv") if below(root, name).exists()]
    if root == Path("/"):
        manager = os.environ.get("container")  # noqa: SIM112 (systemd's convention, in small letters)
        if manager:
            hints.append(f"container={manager}")
        if is_in_container():
            hints.append("own PID namespace")
    return hints


def topology_summary(topology: Topology) -> dict[str, Any]:
    """Put the topology into a few JSON-able lines."""
    online = [cpu for cpu in topology.cpus if cpu.online]
    kinds: dict[str, list[int]] = {}
    for cpu in online:
        if cpu.kind is not None:
            kinds.setdefault(cpu.kind, []).append(cpu.id)
    return {
        "cpus": format_cpu_list(cpu.id for cpu in topology.cpus),
        "online": format_cpu_list(cpu.id for cpu in online),
        "allowed": format_cpu_list(topology.allowed),
        "memory": format_cpu_list(topology.memory),
        "cores": len({cpu.core for cpu in online if cpu.core is not None}) or None,
        "packages": len({cpu.package for cpu in online if cpu.package is not None}) or None,
        "siblings": sorted({format_cpu_list(cpu.siblings) for cpu in online if len(cpu.siblings) > 1}),
        "kinds": {kind: format_cpu_list(cpus) for kind, cpus in kinds.items()},
        "llcs": [
            {
                "id": llc.id,
                "level": llc.level,
                "bytes": llc.bytes,
                "ways": llc.ways,
                "cpus": format_cpu_list(llc.cpus),
                **({"clusters": llc.clusters} if llc.clusters > 1 else {}),
            }
            for llc in topology.llcs
        ],
        "nodes": [{"id": node.id, "bytes": node.bytes, "cpus": format_cpu_list(node.cpus)} for node in topology.nodes],
    }


def swap(root: Path) -> dict[str, int] | None:
    """Return how much swap there is and how much of it is in use."""
    total, free = host.memory_bytes("SwapTotal", root), host.memory_bytes("SwapFree", root)
    return None if total is None or free is None else {"total_bytes": total, "used_bytes": total - free}


def mitigations(root: Path) -> dict[str, str | None] | None:
    """Return the kernel's answer to each processor vulnerability that it knows."""
    folder = root / CPU_DIR / "vulnerabilities"
    return {file.name: read_text(file) for file in sorted(folder.iterdir())} if folder.is_dir() else None


def transparent_hugepages(root: Path) -> str | None:
    """Return the choice that is in force: the word in brackets."""
    match = re.search(r"\[(\w+)\]", read_text(root / "sys/kernel/mm/transparent_hugepage/enabled") or "")
    return match[1] if match else None


def governors(root: Path) -> dict[str, str] | None:
    """Return the CPUs under each frequency governor; None where the kernel does not control the frequency."""
    cpus: dict[str, list[int]] = {}
    for file in (root / CPU_DIR).glob("cpu[0-9]*/cpufreq/scaling_governor"):
        governor = read_text(file)
        if governor:
            cpus.setdefault(governor, []).append(int(file.parts[-3][3:]))
    return {governor: format_cpu_list(cpus[governor]) for governor in sorted(cpus)} or None


def turbo(root: Path) -> dict[str, Any] | None:
    """Return whether turbo is on, and the switch that sets it."""
    for switch, on in (("intel_pstate/no_turbo", 0), ("cpufreq/boost", 1)):
        value = read_int(root / CPU_DIR / switch)
        if value is not None:
            return {"on": value == on, "switch": f"/sys/devices/system/cpu/{switch}"}
    return None


def cgroup(root: Path) -> dict[str, Any]:
    """Return the control-group layout (v1, v2, hybrid) and the directory of our own v2 group."""
    layout, group = cgroups.layout(root)
    return {"layout": layout, "v2_group": group and str(group)}


def tracefs(root: Path) -> dict[str, Any]:
    """Return whether the kernel has tracefs, where it is mounted, and whether we may read its events."""
    known = host.file_systems(root)
    point = next((mount.point for mount in mounts(root) if mount.fstype == "tracefs"), None)
    readable = os.access(below(root, point) / "events", os.R_OK | os.X_OK) if point else None
    return {
        "kernel": None if known is None else "tracefs" in known,
        "mounted": point,
        "readable": readable,
    }


def steal_share(root: Path) -> float | None:
    """Return the share of all CPU time since boot that the hypervisor gave to others."""
    ticks = host.total_ticks(root)[:8]
    total = sum(ticks)
    return ticks[7] / total if len(ticks) == 8 and total > 0 else None
