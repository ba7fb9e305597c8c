"""The doctor's rows on the file system resctrl itself: kernel, mount, permission, trial; pure functions of facts."""

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Any

from castmates.linux.group_folder import OWN
from castmates.machine import quirks
from castmates.machine.doctor.check import GRANT, Check, State
from castmates.machine.doctor.features import MOUNT, NEEDED_CLASSES, Info, bandwidth_unit, why_none
from castmates.machine.resctrl_state import settings

DEGRADES = "The study goes on without partitions and without the occupancy of the cache."


def kernel(facts: Mapping[str, Any]) -> Check:
    """Does the kernel have resctrl for this processor?"""
    known: bool | None = facts["resctrl"]["kernel"]
    if known:
        return Check("resctrl", "yes", "the kernel has it")
    if known is None:
        return Check("resctrl", "unknown", "/proc/filesystems cannot be read", DEGRADES, "Mount /proc.")
    why = why_none(facts)
    return Check("resctrl", "no", why.finding, DEGRADES, why.remedy, why.change)


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
    others = [group for group in resctrl["groups"] or [] if not group.startswith(OWN)]
    if others:
        finding += f"; groups of others: {', '.join(others[:4])}{' …' if len(others) > 4 else ''}"
        cost = "Others hold classes and ways, and may change masks during a study."
        example = f"sudo rmdir {resctrl['mounted']}/{others[0]}"
        remedy = f"Stop their owner (pqos, a container runtime); then, if unused: {example}"
        return Check("resctrl mounted", "partly", finding, cost, remedy, f"stop their owner, then {example}")
    return Check("resctrl mounted", "yes", finding)


def default_class(facts: Mapping[str, Any]) -> Check | None:
    """What may programs take that nobody has put into a group? None where that is not shown."""
    values, info = settings(facts["resctrl"].get("default_class") or ""), facts["resctrl"]["info"] or {}
    every = int((info.get("L3") or info.get("L3DATA") or {}).get("cbm_mask") or "0", 16)
    ways = reduce(and_, (int(value, 16) for (line, _), value in values.items() if line.startswith("L3")), every)
    unit, most = bandwidth_unit(facts)
    throttle = min((int(value) for (line, _), value in values.items() if line == "MB"), default=most)
    found = [f"{ways.bit_count()} of {every.bit_count()} ways"] if every else []
    found += [f"{throttle} {unit}"] if throttle < most else []
    if not (values and found):
        return None
    if ways == every and throttle >= most:
        return Check("default class", "yes", ", ".join(found))
    cost = "Somebody has narrowed it, so programs of a study have no more: partitions stay within it."
    remedy = "If nothing else needs the rest, widen it, or write 'cache.beyond_site: true' in the study."
    return Check("default class", "partly", ", ".join(found), cost, remedy)


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
    remedy = f"Run {change} (a few minutes), when nothing else runs."
    info: Info = facts["resctrl"]["info"] or {}
    record: Mapping[str, Any] | None = facts.get("way_masks")
    cost = "A sweep with partitions is stamped unverified."
    if doubtful := [quirk for quirk in quirks.applicable(facts) if quirk.verify == "masks"]:
        errata = ", ".join(erratum for quirk in doubtful for erratum in quirk.errata)
        cost += f" Masks may fail on this processor ({errata})."
        remedy += " Here it is not optional."
    if record is None and not {"L3", "L3CODE"} & set(info):
        return Check(name, "no", "there is no cache allocation that could be tried", cost, "See CAT.")
    if record is None:
        return Check(name, "unknown", "not tried on this machine with this kernel", cost, remedy, change)
    if record["verdict"] == "works":
        return Check(name, "yes", f"tried at {record['at']}")
    return Check(name, "no", f"tried at {record['at']}: {record['verdict']}", cost, record["said"])


def pqos(facts: Mapping[str, Any]) -> Check:
    """Is pqos there? It is not needed, and merely starting it takes all classes."""
    where: str | None = facts.get("pqos")
    if where is None:
        return Check("pqos", "yes", "not installed, and not needed: Castmates drives resctrl itself")
    return Check("pqos", "yes", f"{where}; do not start it during a study, since it makes groups of all classes")
