"""What was prepared for a sweep, a line each: environments, data sets, this machine with what it lacks; the report."""

import platform
from pathlib import Path
from typing import Any

from castmates.english import counted, size
from castmates.files import mapping_of
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json
from castmates.study import cpus
from castmates.terminal.words import DONE, MIND, clock, tick
from castmates.workloads.environments import NATIVE

COUNTING = ("counted", "user only")


def environment_line(name: str, ready: Path) -> str:
    """An environment or a data set that was built, from the file that its builder wrote last."""
    facts = read_json(ready)
    seconds = facts.get("seconds")
    return tick(DONE, name, _content(name, ready, facts), clock(seconds) if isinstance(seconds, int | float) else "")


def _content(name: str, ready: Path, facts: dict[str, Any]) -> str:
    if name == NATIVE:
        programs = sum(file.is_file() for file in (ready.parent / "bin").glob("*"))
        command = [str(word) for word in facts.get("compiler") or ["cc"]]
        compiler = "zig" if "ziglang" in command else Path(command[0]).name  # zig is run by Python's -m
        return f"{counted(programs, 'program')} compiled with {compiler}"
    amount = facts.get("bytes")
    packages = f"{counted(int(facts['installed']), 'package')}, " if "installed" in facts else ""
    what = size(amount) if isinstance(amount, int | float) else "made"
    return f"{packages}{what} in {ready.parent.parent.parent}"


def report_words(folder: StudyFolder) -> str:
    """What was made of the launches."""
    drawn, tables = list(folder.figures.glob("*.svg")), list(folder.tables.glob("*.csv"))
    figures = [file for file in drawn if not file.match("*.page.svg")]
    return ", ".join([counted(len(figures), "figure")] * bool(figures) + [counted(len(tables), "table")])


def machine_line(file: Path) -> str:
    """This machine, and what it cannot give; "" where nothing is known of it."""
    try:
        facts = mapping_of(file)
    except (OSError, ValueError):
        return ""
    return _modelled(facts) if facts.get("platform") == "modelled" else _real(facts)


def _modelled(facts: dict[str, Any]) -> str:
    if classes := facts.get("classes"):
        return tick(DONE, "this machine", f"a model of {counted(len(classes), 'class')}: nothing here is a measurement")
    topology = facts.get("topology", {})
    ways = next((cache.get("ways") for cache in topology.get("llcs", [])), None)
    parts = [counted(topology.get("cores", 0), "core"), *([counted(ways, "cache way")] if ways else [])]
    return tick(DONE, "this machine", f"a model with {' and '.join(parts)}: nothing here is a measurement")


def _real(facts: dict[str, Any]) -> str:
    topology = facts.get("topology") or {}
    allowed = topology.get("allowed")
    number = counted(len(cpus.parse(allowed, "allowed")), "CPU") if allowed else "CPUs that are not known"
    virtual = (facts.get("virtualisation") or {}).get("vm") not in (None, "", "none") or facts.get("hypervisor_flag")
    lacking = lacks(facts)
    text = f"{number}{' of a VM' if virtual else ''}" + (f": {', '.join(lacking)}" if lacking else "")
    node = facts.get("hostname")
    name = node if isinstance(node, str) and node != platform.node() else "this machine"  # a node of a cluster
    return tick(MIND if lacking else DONE, name, text, "castmates doctor" if lacking else "")


def lacks(facts: dict[str, Any]) -> list[str]:
    """What it cannot give, which each launch would otherwise repeat."""
    perf, resctrl = facts.get("perf") or {}, facts.get("resctrl") or {}
    partitions = resctrl.get("mounted") and (resctrl.get("writable") or resctrl.get("delegated"))
    missing = [] if perf.get("hardware") in COUNTING else ["no hardware counters"]
    return missing if partitions else [*missing, "no cache partitions"]
