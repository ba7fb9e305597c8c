"""What of a kernel file's text goes into a capture.

Each keeper returns the part that it knows, or None where nothing is left. What it returns it would return again: this
is how a capture that somebody else has written, or changed, is recognised.
"""

import re
from collections.abc import Callable

from castmates.linux.kernel_files import mounts_in
from castmates.machine.resctrl_state import FSTYPE, OPTIONS, POINT

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
