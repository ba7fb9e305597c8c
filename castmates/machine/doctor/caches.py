"""The doctor's rows on what is special about some machines' caches; each is there only where its thing is."""

from collections.abc import Mapping
from typing import Any

from castmates.machine.doctor.check import Check
from castmates.machine.topology import Topology

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
