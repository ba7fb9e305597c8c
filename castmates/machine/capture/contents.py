"""Which files of a machine a capture holds; what stands nowhere here is in no capture.

In a pattern # is a number and * a name that the kernel gives; no pattern has the name of a user's thing.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from castmates.linux.kernel_files import CPU_DIR as CPU
from castmates.linux.kernel_files import below, mounts, mounts_in
from castmates.linux.nvml import MEMORY_NODES
from castmates.linux.perf_event import PERF_DEVICES
from castmates.machine.resctrl_state import FSTYPE, NO_GROUPS, OPTIONS, POINT

# What of a kernel file's text goes into a capture.
#
# Each keeper returns the part that it knows, or None where nothing is left. What it returns it would return again: this
# is how a capture that somebody else has written, or changed, is recognised.

Keeper = Callable[[str], str | None]

NUMBER = r"-?\d{1,20}"
CPUS = r"[\d,-]{0,9999}|\(null\)"  # as some kernels write an empty list
MASKS = r"[0-9a-fA-F,]{1,9999}"
SIZE = r"\d{1,15}[KMG]?"
WORDS = r"[a-zA-Z0-9_ \[\]-]{0,500}"  # of a setting, such as "always [madvise] never"
TERMS = r"[\w ,;:=.()\[\]%+/*?#@!<>&|~\t-]{0,4000}"  # what the kernel makes by itself: no user can put anything there
COUNT = r"\d{1,20}|Unavailable|Unassigned|Error"

# Of /proc/cpuinfo: neither serial numbers nor what is true only for a moment.
OF_PROCESSORS = {
    *("processor", "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "cache size"),
    *("siblings", "cpu cores", "flags", "vmx flags", "bugs", "address sizes", "power management", "clflush size"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
}
# Of the kernel's command line: what decides how a machine measures. Values with a slash are somebody's paths.
OF_COMMAND_LINE = {
    *("rdt", "mpam", "arm64.nompam", "isolcpus", "nohz", "nohz_full", "rcu_nocbs", "irqaffinity", "mitigations"),
    *("nosmt", "maxcpus", "nr_cpus", "intel_pstate", "amd_pstate", "intel_idle.max_cstate", "processor.max_cstate"),
    *("idle", "cpuidle.off", "cpufreq.off", "tsc", "clocksource", "nmi_watchdog", "nowatchdog", "nosoftlockup"),
    *("transparent_hugepage", "hugepages", "hugepagesz", "default_hugepagesz", "numa", "numa_balancing", "preempt"),
    *("cgroup_no_v1", "cgroup_disable", "systemd.unified_cgroup_hierarchy", "spectre_v2", "retbleed", "pti", "nopti"),
    *("l1tf", "mds", "tsx", "tsx_async_abort", "mmio_stale_data", "spec_store_bypass_disable", "split_lock_detect"),
    *("nested_pvm", "kvm_intel.nested", "kvm_amd.nested"),
    *("threadirqs", "workqueue.unbound_cpus", "skew_tick", "iommu", "intel_iommu", "amd_iommu", "apparmor", "selinux"),
}
_VALUE = re.compile(r"[A-Za-z0-9_,.:!+*-]{0,500}")

# Of the kernel's version: who builds a kernel may put any word there.
OF_VERSIONS = {
    *("generic", "lowlatency", "realtime", "rt", "server", "cloud", "virtual", "hwe", "oem", "default", "lts", "debug"),
    *("amd64", "arm64", "aarch64", "x86", "x86_64", "64k", "aws", "azure", "gcp", "gke", "oracle", "kvm", "uek", "pve"),
    *("microsoft", "standard", "WSL2", "arch", "zen", "hardened", "intel", "nvidia", "xanmod", "elrepo", "ml", "lt"),
}
_NUMBERED = re.compile(r"\d+|(?:el|fc|deb|bpo|rc|al|amzn|lp|mga|cm|azl|oe)\d+(?:u\d+)?")

DISTRIBUTIONS = {
    *("debian", "ubuntu", "rhel", "centos", "rocky", "almalinux", "fedora", "ol", "amzn", "sles", "sled", "arch"),
    *(
        "opensuse-leap",
        "opensuse-tumbleweed",
        "alpine",
        "gentoo",
        "nixos",
        "linuxmint",
        "pop",
        "openEuler",
        "azurelinux",
    ),
}


def nothing(_: str) -> str | None:
    """Keep that the file is there, and nothing of its text."""
    return ""


def whole(pattern: str) -> Keeper:
    """Keep a text that is all of this form, with or without the end of its line."""
    form = re.compile(rf"(?:{pattern})\n?", re.ASCII)
    return lambda text: text if form.fullmatch(text) else None


def lines(pattern: str) -> Keeper:
    """Keep those lines that are of this form."""
    form = re.compile(rf"(?:{pattern})\n?", re.ASCII)
    return lambda text: "".join(line for line in text.splitlines(keepends=True) if form.fullmatch(line)) or None


def processors(text: str) -> str | None:
    """Keep one processor of each kind, and of it what is the same on all machines of its model."""
    kinds: dict[tuple[str, ...], str] = {}
    for block in text.split("\n\n"):
        pairs = [(line, line.partition(":")[0].strip()) for line in block.splitlines()]
        kept = [(line, key) for line, key in pairs if key in OF_PROCESSORS and re.fullmatch(r"[\t -~]{1,9999}", line)]
        kind = tuple(line for line, key in kept if key != "processor")
        if kind:
            kinds.setdefault(kind, "".join(f"{line}\n" for line, _ in kept))
    return "\n".join(kinds.values()) or None


def command_line(text: str) -> str | None:
    """Keep the words that decide how a machine measures."""
    kept = []
    for word in text.split():
        name, _, value = word.partition("=")
        if name.replace("-", "_") in OF_COMMAND_LINE and _VALUE.fullmatch(value):
            kept.append(word)
    return " ".join(kept) + "\n"


def release(text: str) -> str | None:
    """Keep the numbers of a kernel's version and the words that distributions use; another word becomes an x."""
    parts = re.split(r"([^A-Za-z0-9]+)", text.strip()[:200])
    return "".join(_of_release(part) for part in parts) + "\n"


def _of_release(part: str) -> str:
    if part == "" or re.fullmatch(r"[.+~_-]", part) or part in OF_VERSIONS or _NUMBERED.fullmatch(part):
        return part
    return "x" if part.isalnum() else "-"


def distribution(text: str) -> str | None:
    """Keep name and version of a public distribution; others may bear the name of a cohort."""
    pairs = dict(re.findall(r'^(ID|VERSION_ID)="?([\w.-]{1,40})"?$', text, re.MULTILINE | re.ASCII))
    name, version = pairs.get("ID"), pairs.get("VERSION_ID", "")
    if name not in DISTRIBUTIONS or not re.fullmatch(r"[\d.]*", version):
        return None
    pretty = f"{name} {version}".strip()
    return f'ID={name}\nVERSION_ID="{version}"\nPRETTY_NAME="{pretty}"\n'


def mount(text: str) -> str | None:
    """Keep that resctrl is mounted, and how; wherever it was, in a capture it is at the usual place."""
    here = next((one for one in mounts_in(text) if one.fstype == FSTYPE and one.subtree == "/"), None)
    if here is None:
        return None
    options = [option for option in here.options.split(",") if option in ("rw", "ro", *OPTIONS)]
    return f"30 23 0:26 / {POINT} rw - {FSTYPE} {FSTYPE} {','.join(options) or 'rw'}\n"


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
    "sys/kernel/security/lockdown": whole(WORDS),
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
# Where a machine is from that ships with Castmates, and was made of something else than a machine.
ORIGIN = "castmates/origin"
FROM_CPUID = "real CPUID"
# What is found out by asking: castmates/trials/capture.
OF_TRIALS: dict[str, Keeper] = {
    "castmates/version": whole(r"[\w.+]{1,60}"),
    "castmates/perf/version": whole(r"perf version [\w.+~-]{1,80}"),
    "castmates/perf/list": lines(r"(?:event|metric) [!-~]{1,300}(?:\t[ -~]{0,6000}){0,3}"),
    "castmates/msr/cpu#/*": whole(r"0x[0-9a-f]{16}"),
    ORIGIN: whole(re.escape(FROM_CPUID)),
    "castmates/bandwidth": lines(r"[a-z_]{1,60} [\w .-]{0,200}"),
}
NAME = r"\w[\w.-]{0,99}"


def captured_files(root: Path) -> Iterator[tuple[str, Path, Keeper]]:
    """Yield each file of a machine that is captured: its name in the capture, where it is, and what of it is kept."""
    for pattern, keep in OF_MACHINE.items():
        for path in root.glob(pattern.replace("#", "[0-9]*")):
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


def _expression(pattern: str) -> str:
    return re.escape(pattern).replace(r"\#", r"\d{1,5}").replace(r"\*", NAME)


_ALL = OF_MACHINE | {f"{RESCTRL}/{pattern}": keep for pattern, keep in OF_RESCTRL.items()} | OF_TRIALS
_KEEPERS = list(_ALL.values())
_KNOWN = re.compile("|".join(f"(?P<n{n}>{_expression(pattern)})" for n, pattern in enumerate(_ALL)), re.ASCII)
