"""The doctor's rows on counters, control groups, tracing and tools; pure functions of facts."""

from collections.abc import Mapping
from typing import Any

from castmates.linux.capable_copy import PERF_PACKAGES
from castmates.linux.nvml import NO_DRIVER, NO_PACKAGE
from castmates.linux.probe_points import NO_UPROBES
from castmates.machine.doctor.cpu import GRANT, Check

LISTED = 4
LET_ROOT = f"Let root run, once: {GRANT}"
RESTORE = "sudo castmates doctor --restore"
NO_COUNTERS = "Losses are measured by progress, but counters cannot explain them."


def perf(facts: Mapping[str, Any]) -> Check:
    """Is there a perf that runs under this kernel?"""
    answer: dict[str, Any] | None = facts.get("perf")
    if answer is None:
        return Check("perf", "unknown", "not tried", NO_COUNTERS, "Run castmates doctor on the machine itself.")
    if answer["version"]:
        return Check("perf", "yes", answer["version"])
    found, change = answer["why"] or "not installed", f"install {PERF_PACKAGES}"
    return Check("perf", "no", found, NO_COUNTERS, f"Install it: {PERF_PACKAGES}", change)


def hardware_counters(facts: Mapping[str, Any]) -> Check:
    """Does perf count instructions here? It was really tried."""
    name = "hardware counters"
    answer: str | None = (facts.get("perf") or {}).get("hardware")
    if answer is None:
        return Check(name, "unknown", "not tried without perf", NO_COUNTERS, "Install perf first.")
    if answer == "user only":
        cost = "Instructions in the kernel are not counted; work done in system calls is missing."
        remedy = f"{LET_ROOT}, or: sudo sysctl kernel.perf_event_paranoid=1"
        return Check(name, "partly", "user space only", cost, remedy, GRANT)
    if answer != "counted":
        return Check(name, "no", answer, NO_COUNTERS, *_counter_remedy(facts))
    if facts.get("nmi_watchdog"):
        cost = "The watchdog holds one counter of each CPU, so fewer events fit at a time."
        change = "sudo sysctl kernel.nmi_watchdog=0"
        return Check(name, "partly", "counted; the NMI watchdog is on", cost, change, change)
    return Check(name, "yes", "counted")


def counts_verified(facts: Mapping[str, Any]) -> Check:
    """Were counts seen to be right here?"""
    name, change = "counts verified", "castmates doctor --verify-counters"
    remedy = f"Run {change} (a minute)."
    record: Mapping[str, Any] | None = facts.get("counts")
    if record is None:
        finding = "not tried on this machine with this kernel"
        return Check(name, "unknown", finding, "Counts are taken on trust.", remedy, change)
    events: Mapping[str, str] = record["events"]
    right, wrong = ([event for event in events if events[event] == verdict] for verdict in ("verified", "wrong"))
    summary = f"tried at {record['at']}: {', '.join(right) or 'nothing'} verified"
    if wrong:
        cost = f"Do not trust counts of {', '.join(wrong)} on this machine."
        return Check(name, "no", f"{summary}; wrong: {', '.join(wrong)}", cost, remedy, change)
    if len(right) < len(events):
        cost = "Counts of other events, where there are any, are not verified."
        finding = f"{summary}; {len(events) - len(right)} others could not be checked"
        return Check(name, "partly", finding, cost, "Use a machine that has them; see hardware counters.")
    return Check(name, "yes", summary)


def _counter_remedy(facts: Mapping[str, Any]) -> tuple[str, str]:
    """The remedy, and what the user can do of it."""
    if facts.get("hypervisor_flag"):
        return "Use bare metal, or have the hypervisor pass on a virtual PMU; a guest cannot take one.", ""
    if (facts.get("perf_event_paranoid") or 0) > 2:
        return f"{LET_ROOT}, or: sudo sysctl kernel.perf_event_paranoid=1", GRANT
    container = "--cap-add PERFMON and a seccomp profile that allows perf_event_open"
    return f"Run as root; in a container add {container}.", f"run as root; in a container add {container}"


def software_counters(facts: Mapping[str, Any]) -> Check:
    """Does perf count the kernel's own events here?"""
    answer: str | None = (facts.get("perf") or {}).get("software")
    cost = "Migrations, context switches and faults are read from /proc only."
    if answer is None:
        return Check("software counters", "unknown", "not tried without perf", cost, "Install perf first.")
    if answer in ("counted", "user only"):
        return Check("software counters", "yes", "counted")
    remedy = f"{LET_ROOT}, or: sudo sysctl kernel.perf_event_paranoid=1"
    return Check("software counters", "no", answer, cost, remedy, GRANT)


def counting(facts: Mapping[str, Any]) -> Check:
    """How can members be counted here, with all their threads and children? Each way was really tried."""
    name = "counting members"
    scopes: Mapping[str, str] | None = (facts.get("perf") or {}).get("scopes")
    if scopes is None:
        return Check(name, "unknown", "not tried without perf", NO_COUNTERS, "Install perf first.")
    works = [scope for scope, answer in scopes.items() if answer in ("counted", "user only")]
    if "cgroup" in works and (facts.get("freezing") or {}).get("works"):
        return Check(name, "yes", f"by control group (and by {' and '.join(works[1:])})")
    if "thread" in works:
        why = "programs have no separate control groups" if "cgroup" in works else _short(scopes["cgroup"])
        return Check(name, "yes", f"by thread, inherited by all that they start; not by control group: {why}")
    remedy = f"{LET_ROOT}, or: sudo sysctl kernel.perf_event_paranoid=1"
    return Check(name, "no", _short(scopes["thread"]), NO_COUNTERS, remedy, GRANT)


def _short(answer: str) -> str:
    """Return the first sentence of what perf answers."""
    return answer.partition(". ")[0].rstrip(".")


def paranoid(facts: Mapping[str, Any]) -> Check:
    """May we count system-wide?"""
    name = "perf_event_paranoid"
    level: int | None = facts.get("perf_event_paranoid")
    if level is None:
        return Check(name, "no", "the kernel has no perf events", NO_COUNTERS, "Use a kernel with CONFIG_PERF_EVENTS.")
    if level <= 0 or facts.get("root"):
        return Check(name, "yes", f"{level}{', which does not bind root' if level > 0 else ''}")
    remedy = "Run as root, or: sudo sysctl kernel.perf_event_paranoid=0"
    if level > 2:
        return Check(name, "no", f"{level}: nothing may be counted", NO_COUNTERS, remedy, GRANT)
    cost = "Only our own processes can be counted, not a whole CPU or control group."
    change = "sudo sysctl kernel.perf_event_paranoid=0"
    return Check(name, "partly", f"{level}: own processes only", cost, remedy, change)


def freezing(facts: Mapping[str, Any]) -> Check:
    """Can a member be frozen with all its children? It was really tried."""
    cgroup = facts["cgroup"]
    tried: dict[str, Any] | None = facts.get("freezing")
    if tried and tried["works"]:
        return Check("freezing", "yes", f"cgroup v2 ({cgroup['layout']}), tried in a throw-away group")
    cost = "Programs can only be stopped by signals, process by process; a child that escapes disturbs measurements."
    if tried:
        remedy = f"{LET_ROOT} (from the shell for sweeps), or: systemd-run --user --scope -p Delegate=yes castmates …"
        return Check("freezing", "no", tried["why"] or "tried without success", cost, remedy, GRANT)
    if cgroup["v2_group"] is None:
        remedy = "Start the kernel with systemd.unified_cgroup_hierarchy=1; in a container make cgroup v2 visible."
        finding = f"no cgroup v2 group for us (layout: {cgroup['layout'] or 'none'})"
        return Check("freezing", "no", finding, cost, remedy)
    return Check("freezing", "unknown", "not tried", cost, "Run castmates doctor on the machine itself.")


def cpuset_partition(facts: Mapping[str, Any]) -> Check:
    """Can a launch's CPUs be given to its programs alone? The kernel was not asked to do it."""
    name, why = "isolated partition", facts.get("no_cpuset_partition")
    cost = "A study cannot keep all else off its CPUs ('machine.prepare: {cpuset: isolated}')."
    if why is None:
        return Check(name, "unknown", "not looked for", cost, "Run castmates doctor on the machine itself.")
    if why:
        remedy = "Start the kernel with systemd.unified_cgroup_hierarchy=1, or keep others off the machine."
        return Check(name, "no", why, cost, remedy)
    return Check(name, "yes", "control groups of version 2 have the controller 'cpuset'; root can use it")


def put_back(facts: Mapping[str, Any]) -> Check:
    """Is every knob that a run has turned as it was before?"""
    left: list[str] | None = facts.get("left_changed")
    if left is None:
        return Check(
            "put back",
            "unknown",
            "not looked for",
            "A killed run may have left settings changed.",
            "Run castmates doctor on the machine itself.",
        )
    if not left:
        return Check("put back", "yes", "no run has left anything changed")
    cost = "A killed run has left settings changed; the next launch puts them back."
    finding = f"something was left changed: {'; '.join(left[:LISTED])}{' …' if len(left) > LISTED else ''}"
    return Check("put back", "partly", finding, cost, f"Run: {RESTORE}", RESTORE)


def tracing(facts: Mapping[str, Any]) -> Check:
    """How much can a trace of this user's own programs show?"""
    name, cost = "tracing", "A trace does not show who wakes a thread, who runs instead of it, and interrupts."
    answer: Mapping[str, Any] | None = facts.get("traces")
    if answer is None:
        return Check(
            name, "unknown", "not tried", "It is not known what a trace can show.", "Run it on the machine itself."
        )
    level: str = answer["level"]
    lacking: list[str] = answer["lacking"]
    if level == "everything":
        return Check(name, "yes", "scheduler, system calls, page faults, interrupts")
    if level == "nothing":
        cost = "A trace shows steps, operations and readings, but not what threads do."
        level = "no events of perf"
    if not (facts.get("perf") or {}).get("version"):
        return Check(name, "partly", level, cost, "See perf.")
    remedy = " ".join(f"{reason[0].upper()}{reason[1:]}." for reason in lacking)
    if level == "switches and system calls":
        return Check(name, "partly", level, cost, remedy, f"{GRANT} --tracing")
    if level == "switches only":
        cost += " Nor does it show in what a thread waits."
    return Check(name, "partly", level, cost, remedy, GRANT)


def uprobes(facts: Mapping[str, Any]) -> Check:
    """Can calls of a function be counted, as progress of a program that shows no other? It was really tried."""
    name, why = "uprobes", facts.get("no_calls")
    cost = "Calls of a function cannot be a program's progress (progress: calls)."
    if why is None:
        return Check(name, "unknown", "not tried", cost, "Run castmates doctor on the machine itself.")
    if not why:
        return Check(name, "yes", "calls of functions are counted")
    if why == NO_UPROBES:
        return Check(name, "no", why, cost, "Use a kernel that was built with CONFIG_UPROBE_EVENTS=y.")
    return Check(
        name, "no", why, cost, "Run such a sweep as root, or with CAP_PERFMON and kernel.perf_event_paranoid=0."
    )


def compiler(facts: Mapping[str, Any]) -> Check:
    """Is there a C compiler for the native workloads?"""
    version: str | None = facts.get("compiler")
    if version:
        return Check("C compiler", "yes", version)
    cost = "The first sweep downloads a compiler as a Python package, 400 MB on disk."
    change = "sudo apt-get install gcc"
    return Check("C compiler", "partly", "none works, so one is fetched", cost, f"Or install one: {change}", change)


def tensorflow_python(facts: Mapping[str, Any]) -> Check:
    """Is there an interpreter that TensorFlow is built for?"""
    version: str | None = facts.get("tensorflow_python")
    if version:
        return Check("Python for TensorFlow", "yes", version)
    cost = "Model Garden jobs cannot be installed; other workloads can."
    change = "uv python install 3.11"
    return Check("Python for TensorFlow", "no", "none of 3.10 to 3.13", cost, f"Install one: {change}", change)


def gpus(facts: Mapping[str, Any]) -> Check:
    """Is there a GPU, and can it be read?"""
    name, cost = "GPU", "Jobs on a GPU cannot run here; all others can."
    found: dict[str, Any] | None = facts.get("gpus")
    if found is None:
        return Check(name, "unknown", "not tried", cost, "Run castmates doctor on the machine itself.")
    if not found["lack"]:
        return Check(name, "yes", "; ".join(found["names"]))
    if found["lack"] == NO_DRIVER:
        return Check(
            name, "no", NO_DRIVER, cost, "Use a machine with an NVIDIA GPU and its driver (castmates help gpu)."
        )
    unread = "Jobs on a GPU can run; its utilisation, power and clocks are not recorded."
    change = "pip install nvidia-ml-py" if found["lack"] == NO_PACKAGE else ""
    return Check(
        name, "partly", found["lack"], unread, f"Install it: {change}" if change else "See the driver.", change
    )


def packages(facts: Mapping[str, Any]) -> Check:
    """Is every package there that workloads of the catalogue take their programs from?"""
    name = "packages"
    missing: dict[str, list[str]] | None = facts.get("packages")
    if missing is None:
        remedy = "Run castmates doctor in a project's folder."
        return Check(name, "unknown", "there is no catalogue here", "Some workloads may lack their programs.", remedy)
    if not missing:
        return Check(name, "yes", "all that the catalogue's workloads need")
    wanting = [workload for workloads in missing.values() for workload in workloads]
    shown = f"{', '.join(wanting[:LISTED])}{' …' if len(wanting) > LISTED else ''}"
    change = f"sudo apt-get install {' '.join(missing)}"
    return Check(
        name,
        "partly",
        f"not installed: {', '.join(missing)}",
        f"{len(wanting)} workloads of the catalogue cannot be started: {shown}.",
        f"Install them: {change}",
        change,
    )


def plugins(facts: Mapping[str, Any]) -> Check:
    """What other packages add to Castmates here, and whether it can be used."""
    found: list[dict[str, str]] = facts.get("plugins") or []
    broken = [plugin for plugin in found if plugin["broken"]]
    listed = ", ".join(plugin["what"] for plugin in found)
    if broken:
        cost = "Sweeps stop at it: " + " ".join(plugin["broken"] for plugin in broken)
        return Check("plug-ins", "no", listed, cost, "Fix or uninstall that package (castmates help plugins).")
    return Check("plug-ins", "yes", listed or "none installed")
