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
from castmates.linux import cgroups, host, kernel_files, nvml
from castmates.linux.kernel_files import CPU_DIR, HIGHEST, INITIAL, LOWEST, below, mounts, read_int, read_text
from castmates.linux.owner import delegated_to, is_in_container
from castmates.linux.perf_event import PERF_DEVICES
from castmates.linux.probe_points import refusal_of_calls
from castmates.machine import journal, probes, quirks
from castmates.machine.probes import limited_memory
from castmates.machine.quirks import latency_source
from castmates.machine.resctrl_state import CLUSTER, NO_GROUPS
from castmates.machine.topology import Topology, read_topology
from castmates.study.cpus import format_cpu_list

GROUP_MAKERS = ("crio", "koordlet", "kubelet")  # may make groups of resctrl whenever they start a container


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
        "idle_states": idle_states,
        "uncore_clock": uncore_clock,
        "isolated_cpus": lambda root: read_text(root / CPU_DIR / "isolated"),
        "nmi_watchdog": lambda root: read_int(root / host.SYSCTL / "kernel/nmi_watchdog"),
        "perf_event_paranoid": lambda root: read_int(root / host.SYSCTL / "kernel/perf_event_paranoid"),
        "lockdown": host.lockdown,
        "group_makers": lambda root: host.running(GROUP_MAKERS, root),
        "root": lambda root: os.geteuid() == 0 if root == Path("/") else None,
        "aslr": lambda root: read_int(root / host.SYSCTL / "kernel/randomize_va_space"),
        "rdt_flags": rdt_flags,
        "resctrl": resctrl,
        "cgroup": cgroup,
        "no_cpuset_partition": lambda root: cgroups.lacking() if root == Path("/") else None,
        "tracefs": tracefs,
        "latency_source": latency_source,
        "load_average": host.load_average,
        "steal_share": steal_share,
        "damon_threads": host.damon_threads,
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
        "no_calls": refusal_of_calls,
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


# What the machine's processors do to save power: idle states and the range of the uncore's clock.


def idle_states(root: Path) -> dict[str, Any] | None:
    """Return the driver and governor of idle states, and the states: how long each takes to wake, and where it is off.

    None where the kernel chooses no idle states, as in most virtual machines.
    """
    folder = root / CPU_DIR / "cpuidle"
    driver = read_text(folder / "current_driver")
    governor = read_text(folder / "current_governor") or read_text(folder / "current_governor_ro")
    states: dict[tuple[int, str], int | None] = {}
    off: dict[tuple[int, str], list[int]] = {}
    for state in (root / CPU_DIR).glob("cpu[0-9]*/cpuidle/state[0-9]*"):
        key = int(state.name[len("state") :]), read_text(state / "name") or state.name
        states.setdefault(key, read_int(state / "latency"))
        if read_int(state / "disable"):
            off.setdefault(key, []).append(int(state.parts[-3][len("cpu") :]))
    if driver in (None, "none") and not states:
        return None
    listed = [
        {"name": name, "wakes_in_us": states[number, name], "off_on": format_cpu_list(off.get((number, name), []))}
        for number, name in sorted(states)
    ]
    return {"driver": driver, "governor": governor, "states": listed}


def uncore_clock(root: Path) -> dict[str, dict[str, int]] | None:
    """Return the range in MHz of each of the uncore's clock domains; None where the kernel shows none."""
    ranges = {
        folder.name: {
            name.removesuffix("_freq_khz"): khz // 1000
            for name in (LOWEST, HIGHEST, *INITIAL.values())
            if (khz := read_int(folder / name)) is not None
        }
        for folder in kernel_files.domains(root)
    }
    return ranges or None


# What the kernel shows of Intel RDT, AMD QoS and Arm MPAM, without changing anything.

RDT_FLAGS = (
    "rdt_a",
    "cat_l3",
    "cdp_l3",
    "mba",
    "cqm",
    "cqm_llc",
    "cqm_occup_llc",
    "cqm_mbm_total",
    "cqm_mbm_local",
    "cat_l2",
    "cdp_l2",
)


def rdt_flags(root: Path) -> list[str] | None:
    """Return the processor's RDT flags; None where /proc/cpuinfo has no x86 flags."""
    flags = host.cpu_flags(root)
    return None if flags is None else [flag for flag in RDT_FLAGS if flag in flags]


def resctrl(root: Path) -> dict[str, Any]:
    """Return whether the kernel has resctrl, where it is mounted, whose groups are there, and its info/."""
    known = host.file_systems(root)
    facts: dict[str, Any] = {
        "kernel": None if known is None else "resctrl" in known,
        "mounted": None,
        "options": None,
        "writable": None,
        "delegated": None,
        "default_group": None,
        "default_class": None,
        "groups": None,
        "info": None,
        "clusters": None,
    }
    mount = next((mount for mount in mounts(root) if mount.fstype == "resctrl"), None)
    if mount is not None:
        here = below(root, mount.point)
        facts |= {
            "mounted": mount.point,
            "options": mount.options,
            "writable": os.access(here, os.W_OK | os.X_OK) and os.access(here / "schemata", os.W_OK),
            "delegated": _delegated(here),
            "default_group": os.access(here / "schemata", os.W_OK),
            "default_class": read_text(here / "schemata"),
            "groups": _folders(here, NO_GROUPS),
            "info": _info(here / "info"),
            "clusters": _clusters(here / "mon_data"),
        }
    return facts


def _delegated(here: Path) -> list[str]:
    """Name the groups that root gave to this user: whose tasks and masks it may write."""
    me = os.geteuid()
    return [
        name
        for name in _folders(here, NO_GROUPS) or []
        if delegated_to(name) == me and all(os.access(here / name / file, os.W_OK) for file in ("tasks", "schemata"))
    ]


def _folders(folder: Path, without: set[str]) -> list[str] | None:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name not in without)
    except OSError:
        return None


def _clusters(folder: Path) -> int | None:
    """Count the sub-NUMA clusters that are monitored in a last-level cache; None where nothing is monitored."""
    caches = _folders(folder, set()) or []
    parts = [_folders(folder / cache, set()) or [] for cache in caches[:1]]
    return sum(part.startswith(CLUSTER) for part in parts[0]) if parts else None


def _info(folder: Path) -> dict[str, dict[str, str | None]] | None:
    resources = _folders(folder, set())
    if resources is None:
        return None
    return {
        resource: {file.name: read_text(file) for file in sorted((folder / resource).iterdir()) if file.is_file()}
        for resource in resources
    }
