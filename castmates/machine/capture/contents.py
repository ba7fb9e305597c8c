"""Which files of a machine a capture holds; what stands nowhere here is in no capture.

In a pattern # is a number and * a name that the kernel gives; no pattern has the name of a user's thing.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from castmates.linux.kernel_files import CPU_DIR as CPU
from castmates.linux.kernel_files import below, mounts
from castmates.linux.nvml import MEMORY_NODES
from castmates.linux.perf_event import PERF_DEVICES
from castmates.machine.capture.keepers import (
    COUNT,
    CPUS,
    MASKS,
    NUMBER,
    SIZE,
    TERMS,
    WORDS,
    Keeper,
    command_line,
    distribution,
    lines,
    mount,
    nothing,
    processors,
    release,
    whole,
)
from castmates.machine.resctrl_state import FSTYPE, NO_GROUPS, POINT

NODE = "sys/devices/system/node"
SOURCES = f"{PERF_DEVICES}/*"  # of perf
RESCTRL = str(POINT).lstrip("/")
UNCORE = f"{CPU}/intel_uncore_frequency/*"
GROUP = "group#"  # what a group of resctrl is called in a capture: its name may be a user's

# Where they are on a machine -> what is kept of them.
OF_MACHINE: dict[str, Keeper] = {
    **{f"{CPU}/{name}": whole(CPUS) for name in ("possible", "online", "isolated", "nohz_full")},
    **{f"{CPU}/smt/{name}": whole(WORDS) for name in ("control", "active")},
    f"{CPU}/vulnerabilities/*": whole(TERMS),
    f"{CPU}/cpu#/online": whole(NUMBER),
    f"{CPU}/cpu#/cpu_capacity": whole(NUMBER),
    **{f"{CPU}/cpu#/topology/{name}": whole(CPUS) for name in ("core_cpus_list", "thread_siblings_list")},
    f"{CPU}/cpu#/topology/physical_package_id": whole(NUMBER),
    **{f"{CPU}/cpu#/cache/index#/{name}": whole(NUMBER) for name in ("id", "level", "ways_of_associativity")},
    f"{CPU}/cpu#/cache/index#/type": whole(WORDS),
    f"{CPU}/cpu#/cache/index#/size": whole(SIZE),
    f"{CPU}/cpu#/cache/index#/shared_cpu_list": whole(CPUS),
    **{
        f"{CPU}/cpu#/cpufreq/{name}": whole(WORDS)
        for name in ("scaling_governor", "scaling_driver", "energy_performance_preference")
    },
    **{
        f"{CPU}/cpu#/cpufreq/{name}": whole(NUMBER)
        for name in ("cpuinfo_min_freq", "cpuinfo_max_freq", "base_frequency")
    },
    **{f"{CPU}/cpu#/cpuidle/state#/{name}": whole(TERMS) for name in ("name", "latency", "disable")},
    **{f"{CPU}/cpuidle/{name}": whole(WORDS) for name in ("current_driver", "current_governor", "current_governor_ro")},
    f"{CPU}/intel_pstate/no_turbo": whole(NUMBER),
    f"{CPU}/intel_pstate/status": whole(WORDS),
    f"{CPU}/amd_pstate/status": whole(WORDS),
    f"{CPU}/cpufreq/boost": whole(NUMBER),
    **{f"{UNCORE}/{end}_freq_khz": whole(NUMBER) for end in ("min", "max", "initial_min", "initial_max")},
    f"{NODE}/node#/cpulist": whole(CPUS),
    f"{NODE}/node#/distance": whole(r"[\d ]{0,9999}"),
    f"{NODE}/node#/meminfo": lines(r"Node \d+ MemTotal:\s+\d{1,15} kB"),
    **{f"sys/devices/{device}/cpus": whole(CPUS) for device in ("cpu_core", "cpu_atom", "cpu_lowpower")},
    f"{SOURCES}/type": whole(NUMBER),
    **{f"{SOURCES}/{name}": whole(CPUS) for name in ("cpumask", "cpus")},
    **{f"{SOURCES}/{folder}/*": whole(TERMS) for folder in ("format", "events", "caps")},
    "sys/kernel/mm/transparent_hugepage/enabled": whole(WORDS),
    "sys/kernel/mm/transparent_hugepage/defrag": whole(r"[a-z +\[\]]{0,200}"),
    "sys/kernel/mm/ksm/run": whole(NUMBER),
    MEMORY_NODES: lines(r"Node:\s+-?\d{1,5}"),
    "proc/cpuinfo": processors,
    "proc/cmdline": command_line,
    "proc/filesystems": lines(r"nodev\t(?:resctrl|tracefs|cgroup2?)"),
    "proc/meminfo": lines(r"(?:MemTotal|SwapTotal|SwapFree|HugePages_\w+|Hugepagesize):\s+\d{1,15}(?: kB)?"),
    "proc/self/mountinfo": mount,
    "proc/self/status": lines(r"(?:Cpus|Mems)_allowed_list:\t[\d,-]{0,9999}"),
    "proc/sys/kernel/osrelease": release,
    **{
        f"proc/sys/kernel/{name}": whole(NUMBER)
        for name in ("numa_balancing", "nmi_watchdog", "perf_event_paranoid", "randomize_va_space")
    },
    "etc/os-release": distribution,
}
_MASKS = whole(r"(?:\s*[A-Z0-9_]{1,16}:(?:\d{1,5}=\s*[0-9a-f]{1,16};?){1,999}\n){0,16}")
_OF_GROUP: dict[str, Keeper] = {
    "schemata": _MASKS,
    "size": _MASKS,
    "mode": whole(WORDS),
    "tasks": nothing,
    "cpus": whole(MASKS),
    "cpus_list": whole(CPUS),
    "ctrl_hw_id": whole(NUMBER),
    "mon_hw_id": whole(NUMBER),
    "mbm_L3_assignments": lines(TERMS),
    "mon_data/*/*": whole(COUNT),
    "mon_data/*/*/*": whole(COUNT),
}
# Below where resctrl is mounted.
OF_RESCTRL: dict[str, Keeper] = {
    "info/*/*": lines(TERMS),  # not last_cmd_status, which repeats what users have written
    "info/*/*/*/*": lines(TERMS),
    **{
        f"{group}{name}": keep
        for group in ("", f"{GROUP}/", f"mon_groups/{GROUP}/", f"{GROUP}/mon_groups/{GROUP}/")
        for name, keep in _OF_GROUP.items()
    },
}
# What is found out by asking: castmates/trials/capture.
OF_TRIALS: dict[str, Keeper] = {
    "castmates/version": whole(r"[\w.+]{1,60}"),
    "castmates/perf/version": whole(r"perf version [\w.+~-]{1,80}"),
    "castmates/perf/list": lines(r"(?:event|metric) [!-~]{1,300}(?:\t[ -~]{0,6000}){0,3}"),
    "castmates/msr/cpu#/*": whole(r"0x[0-9a-f]{16}"),
    "castmates/bandwidth": lines(r"[a-z_]{1,60} [\w .-]{0,200}"),
}
NAME = r"\w[\w.-]{0,99}"


def captured_files(root: Path) -> Iterator[tuple[str, Path, Keeper]]:
    """Yield each file of a machine that is captured: its name in the capture, where it is, and what of it is kept."""
    for pattern, keep in OF_MACHINE.items():
        for path in root.glob(_glob(pattern)):
            yield str(path.relative_to(root)), path, keep
    resctrl = next((one for one in mounts(root) if one.fstype == FSTYPE and one.subtree == "/"), None)
    if resctrl is not None:
        yield from _below_resctrl(below(root, resctrl.point))


def keeper_of(name: str) -> Keeper | None:
    """Return what is kept of the file of this name; None where a capture has no such file."""
    match = _KNOWN.fullmatch(name)
    return _KEEPERS[int(str(match.lastgroup)[1:])] if match else None


def _below_resctrl(here: Path) -> Iterator[tuple[str, Path, Keeper]]:
    """Yield the files of the default group and of all others, which are numbered."""
    for pattern in ("info/*/*", "info/*/*/*/*"):
        for path in here.glob(pattern):
            yield f"{RESCTRL}/{path.relative_to(here)}", path, OF_RESCTRL[pattern]
    yield from _of_group(here, RESCTRL)
    for number, group in enumerate(_folders(here)):
        yield from _of_group(group, f"{RESCTRL}/{_numbered(number)}")


def _of_group(group: Path, name: str) -> Iterator[tuple[str, Path, Keeper]]:
    """Yield the files of a group, and of the monitoring groups in it."""
    parts = [(group, name)]
    if group.parent.name != "mon_groups":
        parts += [(part, f"{name}/mon_groups/{_numbered(n)}") for n, part in enumerate(_folders(group / "mon_groups"))]
    for place, called in parts:
        for pattern, keep in _OF_GROUP.items():
            for path in place.glob(pattern):
                yield f"{called}/{path.relative_to(place)}", path, keep


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in NO_GROUPS)
    except OSError:
        return []


def _numbered(number: int) -> str:
    return GROUP.replace("#", str(number + 1))


def _glob(pattern: str) -> str:
    return pattern.replace("#", "[0-9]*")


def _expression(pattern: str) -> str:
    return re.escape(pattern).replace(r"\#", r"\d{1,5}").replace(r"\*", NAME)


_ALL = OF_MACHINE | {f"{RESCTRL}/{pattern}": keep for pattern, keep in OF_RESCTRL.items()} | OF_TRIALS
_KEEPERS = list(_ALL.values())
_KNOWN = re.compile("|".join(f"(?P<n{n}>{_expression(pattern)})" for n, pattern in enumerate(_ALL)), re.ASCII)
