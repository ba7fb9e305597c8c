"""The doctor's rows on what resctrl offers (CAT, CDP, MBA, CMT, MBM), and why it lacks what the processor announces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from castmates.machine import probes, quirks
from castmates.machine.doctor.cpu import GRANT, Check
from castmates.machine.quirks import ASSIGNED, TRAFFIC, Assignment, assignment
from castmates.machine.resctrl_state import LARGEST_SHARE, UNTHROTTLED_MIBPS, amd_most
from castmates.study.cache import rate_words

Info = Mapping[str, Mapping[str, str | None]]

NEEDED_CLASSES = 3  # the root group, the lead's and the antagonists'
NEEDED_IDS = 3  # of as many groups
MOUNT = "sudo mount -t resctrl resctrl /sys/fs/resctrl"
BARE_METAL = "Use bare metal: a guest cannot switch on what its hypervisor hides."
NOT_ANNOUNCED = "not announced by the processor"
MESSAGES = "sudo dmesg | grep -i resctrl"


@dataclass(frozen=True, slots=True)
class Feature:
    """One thing that resctrl may offer, the x86 flags that announce it, and the kernel's words that switch it."""

    name: str
    flags: tuple[str, ...]
    words: tuple[str, ...]
    cost: str


FEATURES = (
    Feature(
        "CAT",
        ("cat_l3",),
        ("l3cat",),
        "The cache cannot be partitioned, so what a partition gives back is not measured.",
    ),
    Feature(
        "CDP",
        ("cdp_l3",),
        ("l3cdp", "l3cat"),
        "Code and data cannot have separate masks; default studies do not need them.",
    ),
    Feature("MBA", ("mba",), ("mba",), "Memory bandwidth cannot be throttled; partitions hold way masks only."),
    Feature(
        "CMT",
        ("cqm_occup_llc",),
        ("cmt",),
        "How much of the cache each program holds is not seen; settling relies on rates alone.",
    ),
    Feature(
        "MBM",
        ("cqm_mbm_total", "cqm_mbm_local"),
        ("mbmtotal", "mbmlocal"),
        "The memory traffic of each program is not seen.",
    ),
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a feature is not offered, and what helps."""

    finding: str
    remedy: str
    change: str = ""


def features(facts: Mapping[str, Any]) -> list[Check]:
    """Return one row for each feature, from info/ where mounted, else from the processor's flags."""
    info: Info | None = facts["resctrl"]["info"]
    if info is None:
        return [_announced(feature, facts) for feature in FEATURES]
    offers = {"CAT": _cat(info), "CDP": _cdp(info, facts), "MBA": _mba(info, facts)} | _monitoring(info, facts)
    return [offers.get(feature.name) or _missing(feature, facts) for feature in FEATURES]


def announced(feature: Feature, facts: Mapping[str, Any]) -> list[str]:
    """Return the processor's flags that announce a feature."""
    return [flag for flag in feature.flags if flag in (facts.get("rdt_flags") or [])]


def switched_off(feature: Feature, facts: Mapping[str, Any], among: Sequence[str] = ()) -> Cause | None:
    """Explain what hides a feature that the processor announces; None where nothing is known to.

    Its change brings back what is switched off among further words, too.
    """
    flags, line = ", ".join(announced(feature, facts)), facts.get("cmdline")
    if not flags:
        return None
    hidden = quirks.switched_off(facts)
    if quirk := next((hidden[word] for word in feature.words if word in hidden), None):
        # One change for all that Linux hides: it takes one restart.
        change = probes.change(line, [*feature.words, *among], force=hidden)
        errata = f" ({', '.join(quirk.errata)})" if quirk.errata else ""
        finding = f"announced ({flags}), but Linux switches it off on this processor{errata}"
        return Cause(finding, f"{change[0].upper()}{change[1:]}. {quirk.do}", change)
    switches = probes.switches(line)
    if off := [word for word in feature.words if switches.state(word) is False]:
        change = probes.change(line, [*off, *among])
        finding = f"announced ({flags}), but {probes.KEY}!{off[0]} on {probes.PLACE} switches it off"
        return Cause(finding, f"{change[0].upper()}{change[1:]}.", change)
    return None


def why_none(facts: Mapping[str, Any]) -> Cause:
    """Explain why the kernel has no resctrl at all."""
    finding = "the kernel has none for this processor"
    there = [feature for feature in FEATURES if announced(feature, facts)]
    if facts.get("hypervisor_flag") and not there:
        return Cause(finding, BARE_METAL)
    words = [word for feature in there for word in feature.words]
    causes = [off for feature in there if (off := switched_off(feature, facts, words))]
    if causes and len(causes) == len(there):
        first = causes[0]
        return Cause(f"all that it could offer is switched off: {first.finding}", first.remedy, first.change)
    if there:
        names = ", ".join(feature.name for feature in there)
        config = "grep X86_CPU_RESCTRL /boot/config-$(uname -r)"
        return Cause(
            f"the kernel has none, but the processor announces {names}",
            f"Use a kernel that was built with it: {config} should show CONFIG_X86_CPU_RESCTRL=y.",
        )
    return Cause(finding, _other_hardware(facts))


def _other_hardware(facts: Mapping[str, Any], name: str = "CAT") -> str:
    for quirk in quirks.applicable(facts):
        if quirk.row == name and not quirk.switches_off:  # the processor may have it, whatever its flags are
            return quirk.do
    return (
        "Use a server processor that has it (Intel Xeon Scalable, AMD EPYC from 7002 on) and a kernel "
        "with it: grep -E 'X86_CPU_RESCTRL|ARM64_MPAM' /boot/config-$(uname -r)"
    )


def _missing(feature: Feature, facts: Mapping[str, Any]) -> Check:
    """Return the row of a feature that is not in info/."""
    if off := switched_off(feature, facts):
        return Check(feature.name, "no", off.finding, feature.cost, off.remedy, off.change)
    if facts.get("hypervisor_flag") and not announced(feature, facts):
        return Check(feature.name, "no", "not in info/", feature.cost, BARE_METAL)
    if flags := announced(feature, facts):
        finding = f"announced ({', '.join(flags)}), but not in info/"
        remedy = f"Look for the reason in the kernel's messages: {MESSAGES}"
        return Check(feature.name, "no", finding, feature.cost, remedy, MESSAGES)
    finding = "not in info/" if facts.get("rdt_flags") is None else NOT_ANNOUNCED
    return Check(feature.name, "no", finding, feature.cost, _other_hardware(facts, feature.name))


def _announced(feature: Feature, facts: Mapping[str, Any]) -> Check:
    """Return the row of a feature while resctrl is not mounted."""
    known, flags = facts["resctrl"]["kernel"], announced(feature, facts)
    remedy, change = (f"Mount it: {MOUNT}", GRANT) if known else ("See resctrl.", "")
    if facts.get("rdt_flags") is None:
        finding = "the kernel has no resctrl" if known is False else "only shown when resctrl is mounted"
        return Check(feature.name, "no" if known is False else "unknown", finding, feature.cost, remedy, change)
    if not flags:
        remedy = _missing(feature, facts).remedy if known else "See resctrl."
        return Check(feature.name, "no", NOT_ANNOUNCED, feature.cost, remedy)
    if off := switched_off(feature, facts):
        return Check(feature.name, "no", off.finding, feature.cost, off.remedy, off.change)
    finding = f"announced ({', '.join(flags)}), but "
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
    if any(files.get("io_alloc") == "enabled" for files in info.values()):
        classes -= 1
        finding += f", one class holds I/O (io_alloc: {resource.get('io_alloc_cbm') or 'ways unknown'})"
    if classes < NEEDED_CLASSES:
        cost = f"A study needs {NEEDED_CLASSES} classes, so a program and its antagonists cannot both have a group."
        return Check("CAT", "partly", finding, cost, "Mount without -o cdp, which halves the number of classes.")
    return Check("CAT", "yes", finding)


def _cdp(info: Info, facts: Mapping[str, Any]) -> Check | None:
    if "L3CODE" in info:
        return Check("CDP", "yes", "mounted with cdp; it halves the number of classes")
    feature = FEATURES[1]
    if "L3" not in info or not announced(feature, facts) or switched_off(feature, facts):
        return None
    remedy = f"Only while it is not in use: sudo umount {facts['resctrl']['mounted']} && {MOUNT} -o cdp"
    return Check("CDP", "partly", "the processor has it, mounted without cdp", feature.cost, remedy)


def bandwidth_unit(facts: Mapping[str, Any]) -> tuple[str, int]:
    """Return the unit of throttles here, and the least that is no throttle."""
    resctrl = facts["resctrl"]
    if ((resctrl["info"] or {}).get("MB") or {}).get("delay_linear") == "0":
        return "1/8 GB/s", amd_most((facts.get("processor") or {}).get("family", 0))
    return ("MiB/s", UNTHROTTLED_MIBPS) if "mba_MBps" in (resctrl["options"] or "") else ("%", LARGEST_SHARE)


def _mba(info: Info, facts: Mapping[str, Any]) -> Check | None:
    resource = info.get("MB")
    if resource is None:
        return None
    unit, _ = bandwidth_unit(facts)
    least, step = (rate_words(int(resource.get(name) or 0), unit) for name in ("min_bandwidth", "bandwidth_gran"))
    return Check("MBA", "yes", f"from {least} in steps of {step}")


def _monitoring(info: Info, facts: Mapping[str, Any]) -> dict[str, Check]:
    """Return the rows of what is monitored."""
    files = info.get("L3_MON") or {}
    events, rmids = (files.get("mon_features") or "").split(), files.get("num_rmids")
    ids = f"{rmids} monitoring ids"
    rows: dict[str, Check] = {}
    few = (rmids or "").isdecimal() and int(rmids or 0) < NEEDED_IDS
    if "llc_occupancy" in events:
        finding = f"llc_occupancy, {ids}"
        rows["CMT"] = _with_few_ids("CMT", finding) if few else Check("CMT", "yes", finding)
    if traffic := [event for event in events if event in TRAFFIC]:
        finding = f"{', '.join(traffic)}, {ids}"
        counted = _counted(finding, len(traffic), assignment(files), facts)
        rows["MBM"] = _with_few_ids("MBM", finding) if few else counted
    return rows


def _with_few_ids(name: str, finding: str) -> Check:
    cost = f"A study needs {NEEDED_IDS} ids, one of them for the default group, so not every program is monitored."
    remedy = "Monitor fewer programs; with sub-NUMA clusters, switching them off gives more ids."
    return Check(name, "partly", finding, cost, remedy)


def _counted(finding: str, events: int, here: Assignment, facts: Mapping[str, Any]) -> Check:
    """Return the row of traffic: counters may belong to groups, or be lost while a program is frozen."""
    if here.assigned:
        free, most = (min(numbers.values(), default=0) for numbers in (here.free, here.counters))
        finding += f", {most} counters in each cache, {free} of them free"
        needed = events * (NEEDED_CLASSES - 1)
        if free < needed:
            cost = f"A program and its antagonist need {needed} counters; traffic without one reads Unassigned."
            remedy = "Remove monitoring groups that nobody needs: each takes a counter for each event."
            return Check("MBM", "partly", finding, cost, remedy)
        return Check("MBM", "yes", finding)
    if ASSIGNED in here.offered:
        finding += f", counters in the mode {here.mode or 'default'}"
        cost = "The hardware may stop counting a program while it is frozen, so traffic has gaps."
        change = f"echo {ASSIGNED} | sudo tee {facts['resctrl']['mounted']}/info/L3_MON/mbm_assign_mode"
        remedy = f"Give each group its counters, while nothing is measured: {change}"
        return Check("MBM", "partly", finding, cost, remedy, change)
    return Check("MBM", "yes", finding)
