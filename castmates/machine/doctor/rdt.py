"""The doctor's rows on cache and bandwidth control; pure functions of facts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from castmates.machine.doctor.check import Check, State

Info = Mapping[str, Mapping[str, str | None]]

NEEDED_CLASSES = 3  # the root group, the lead's and the antagonists'
OWN_PREFIX = "castmates"
MOUNT = "sudo mount -t resctrl resctrl /sys/fs/resctrl"
GRANT = "sudo castmates grant"
DEGRADES = "The study goes on without partitions and without the occupancy of the cache."


@dataclass(frozen=True, slots=True)
class Feature:
    """One thing that resctrl may offer, and the x86 flags that announce it."""

    name: str
    flags: tuple[str, ...]
    cost: str


FEATURES = (
    Feature("CAT", ("cat_l3",), "The cache cannot be partitioned, so what a partition gives back is not measured."),
    Feature("CDP", ("cdp_l3",), "Code and data cannot have separate masks; default studies do not need them."),
    Feature("MBA", ("mba",), "Memory bandwidth cannot be throttled; partitions hold way masks only."),
    Feature(
        "CMT",
        ("cqm_occup_llc",),
        "How much of the cache each program holds is not seen; settling relies on rates alone.",
    ),
    Feature("MBM", ("cqm_mbm_total", "cqm_mbm_local"), "The memory traffic of each program is not seen."),
)


def kernel(facts: Mapping[str, Any]) -> Check:
    """Does the kernel have resctrl for this processor?"""
    known: bool | None = facts["resctrl"]["kernel"]
    if known:
        return Check("resctrl", "yes", "the kernel has it")
    if known is None:
        return Check("resctrl", "unknown", "/proc/filesystems cannot be read", DEGRADES, "Mount /proc.")
    finding = "the kernel has none for this processor"
    return Check("resctrl", "no", finding, DEGRADES, _hardware_remedy(facts), _hardware_change(facts))


def _hardware_change(facts: Mapping[str, Any]) -> str:
    switched_off = any(word.startswith("rdt=") for word in (facts.get("cmdline") or "").split())
    return "remove rdt= from the kernel's command line" if switched_off and not facts.get("hypervisor_flag") else ""


def _hardware_remedy(facts: Mapping[str, Any]) -> str:
    if facts.get("hypervisor_flag"):
        return "Use bare metal: a guest cannot switch on what its hypervisor hides."
    if _hardware_change(facts):
        return "Remove rdt= from the kernel's command line, which switches features off, and restart."
    return (
        "Use a server processor that has it (Intel Xeon Scalable, AMD EPYC from 7002 on) and a kernel "
        "with it: grep -E 'X86_CPU_RESCTRL|ARM64_MPAM' /boot/config-$(uname -r)"
    )


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
    others = [group for group in resctrl["groups"] or [] if not group.startswith(OWN_PREFIX)]
    if others:
        finding += f"; groups of others: {', '.join(others[:4])}{' …' if len(others) > 4 else ''}"
        cost = "Others hold classes and ways, and may change masks during a study."
        example = f"sudo rmdir {resctrl['mounted']}/{others[0]}"
        remedy = f"Stop their owner (pqos, a container runtime); then, if unused: {example}"
        return Check("resctrl mounted", "partly", finding, cost, remedy, f"stop their owner, then {example}")
    return Check("resctrl mounted", "yes", finding)


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


def verified(facts: Mapping[str, Any]) -> Check:
    """Were masks seen to do something here?"""
    name, change = "masks verified", "castmates doctor --verify-cat"
    remedy = f"Run {change} (a minute), when nothing else runs."
    info: Info = facts["resctrl"]["info"] or {}
    record: Mapping[str, Any] | None = facts.get("way_masks")
    cost = "A sweep with partitions is stamped unverified."
    if record is None and not {"L3", "L3CODE"} & set(info):
        return Check(name, "no", "there is no cache allocation that could be tried", cost, "See CAT.")
    if record is None:
        return Check(name, "unknown", "not tried on this machine with this kernel", cost, remedy, change)
    if record["verdict"] == "works":
        return Check(name, "yes", f"tried at {record['at']}")
    return Check(name, "no", f"tried at {record['at']}: {record['verdict']}", cost, record["said"])


def features(facts: Mapping[str, Any]) -> list[Check]:
    """Return one row for each feature, from info/ where mounted, else from the processor's flags."""
    info: Info | None = facts["resctrl"]["info"]
    if info is None:
        return [_announced(feature, facts) for feature in FEATURES]
    offers = {"CAT": _cat(info), "CDP": _cdp(info, facts), "MBA": _mba(info), "CMT": None, "MBM": None}
    events = ((info.get("L3_MON") or {}).get("mon_features") or "").split()
    rmids = f"{(info.get('L3_MON') or {}).get('num_rmids')} monitoring ids"
    if "llc_occupancy" in events:
        offers["CMT"] = Check("CMT", "yes", f"llc_occupancy, {rmids}")
    traffic = [event for event in events if event in ("mbm_total_bytes", "mbm_local_bytes")]
    if traffic:
        offers["MBM"] = Check("MBM", "yes", ", ".join(traffic) + f", {rmids}")
    return [
        offers[feature.name] or Check(feature.name, "no", "not in info/", feature.cost, _hardware_remedy(facts))
        for feature in FEATURES
    ]


def _announced(feature: Feature, facts: Mapping[str, Any]) -> Check:
    flags: list[str] | None = facts.get("rdt_flags")
    known = facts["resctrl"]["kernel"]
    remedy, change = (f"Mount it: {MOUNT}", GRANT) if known else ("See resctrl.", "")
    if flags is None:
        finding = "the kernel has no resctrl" if known is False else "only shown when resctrl is mounted"
        return Check(feature.name, "no" if known is False else "unknown", finding, feature.cost, remedy, change)
    announced = [flag for flag in feature.flags if flag in flags]
    if not announced:
        remedy = _hardware_remedy(facts) if known else "See resctrl."
        return Check(feature.name, "no", "not announced by the processor", feature.cost, remedy)
    finding = f"announced ({', '.join(announced)}), but "
    finding += "resctrl is not mounted" if known else "the kernel has no resctrl"
    return Check(feature.name, "partly" if known else "no", finding, feature.cost, remedy, change)


def _cat(info: Info) -> Check | None:
    resource = info.get("L3") or info.get("L3CODE")
    if resource is None:
        return None
    # What counts is the least of all resources' classes: a group takes one of each.
    classes = min((int(files["num_closids"] or 0) for files in info.values() if files.get("num_closids")), default=0)
    ways = bin(int(resource.get("cbm_mask") or "0", 16)).count("1")
    shareable = int(resource.get("shareable_bits") or "0", 16)
    finding = f"{ways} ways, {classes} classes, at least {resource.get('min_cbm_bits')} way(s) a mask"
    if shareable:
        finding += f", ways {shareable:x} shared with I/O"
    if classes < NEEDED_CLASSES:
        cost = f"A study needs {NEEDED_CLASSES} classes, so a program and its neighbours cannot both have a group."
        return Check("CAT", "partly", finding, cost, "Mount without -o cdp, which halves the number of classes.")
    return Check("CAT", "yes", finding)


def _cdp(info: Info, facts: Mapping[str, Any]) -> Check | None:
    if "L3CODE" in info:
        return Check("CDP", "yes", "mounted with cdp; it halves the number of classes")
    if "cdp_l3" not in (facts.get("rdt_flags") or []):
        return None
    remedy = f"Only while it is not in use: sudo umount {facts['resctrl']['mounted']} && {MOUNT} -o cdp"
    return Check("CDP", "partly", "the processor has it, mounted without cdp", FEATURES[1].cost, remedy)


def _mba(info: Info) -> Check | None:
    resource = info.get("MB")
    if resource is None:
        return None
    finding = f"from {resource.get('min_bandwidth')} in steps of {resource.get('bandwidth_gran')}"
    return Check("MBA", "yes", finding)


def pqos(facts: Mapping[str, Any]) -> Check:
    """Is pqos there? It is not needed, and merely starting it takes all classes."""
    where: str | None = facts.get("pqos")
    if where is None:
        return Check("pqos", "yes", "not installed, and not needed: Castmates drives resctrl itself")
    return Check("pqos", "yes", f"{where}; do not start it during a study, since it makes groups of all classes")
