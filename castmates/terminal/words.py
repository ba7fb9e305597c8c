"""The lines that a sweep shows in the terminal; pure."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from castmates.english import counted, duration, size
from castmates.files import mapping_of
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json
from castmates.study import cpus
from castmates.study.class_names import named
from castmates.study.reasons import ReasonKind
from castmates.study.spec import Launch
from castmates.terminal.sweep import LaunchProgress, Note, Windows
from castmates.workloads.environments import NATIVE

DONE, MIND, WRONG = "✓", "!", "✗"
AGAIN = "The job is submitted again."
NO_LAUNCH = "no launch is needed for what was asked for"
NAMED = 2  # programs
KINDS: Mapping[str, str] = {
    ReasonKind.FOREIGN_LOAD: "other programs",
    ReasonKind.NEIGHBOURS: "other programs around the cache",
    ReasonKind.FOREIGN_TRAFFIC: "other programs in memory",
    ReasonKind.STEAL: "hypervisor",
}
OTHERS = (ReasonKind.FOREIGN_LOAD, ReasonKind.NEIGHBOURS, ReasonKind.FOREIGN_TRAFFIC)


def tick(mark: str, name: str, text: str, last: str = "") -> str:
    """A line of what is finished."""
    return f" {mark} {name:<14} {text:<52} {last:>7}".rstrip()


def clock(seconds: float) -> str:
    """A duration as a clock shows it, 6:12; below a minute in seconds."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def about(seconds: float) -> str:
    """A duration that is not known exactly."""
    return duration(5 * round(seconds / 5) if 20 <= seconds < 90 else seconds)


def launches(number: int) -> str:
    """A number of launches."""
    return counted(number, "launch")


def names_of(launch: Launch) -> str:
    """The program and its antagonists."""
    _, *others = launch.cohort.members
    names = list(dict.fromkeys(member.workload for member in others))
    name = _lead(launch)
    return f"{name} beside {', '.join(names)}" if names else f"{name} alone"


def _lead(launch: Launch) -> str:
    """The lead, with its class of nodes where the study has classes."""
    return named(launch.cohort.lead.workload, launch.cohort.machine)


def place_of(launch: Launch, of: int) -> str:
    """Which launch of its programs this is."""
    return f"launch {launch.number} of {of}" if launch.number <= of else f"launch {launch.number}"


def round_of(note: Note | None) -> str:
    """What a launch is doing."""
    if note is None or note.state == "launching":
        return "starting"
    if note.state == "waiting":
        return note.reason
    if note.state == "ended":
        return "ending"
    now = note.round + 1
    if note.clean >= note.rounds > 0:
        return "ending"
    return f"round {now} of {note.rounds}" if now <= note.rounds else f"round {now}, in place of a disturbed one"


def windows_words(kept: int, rejected: int, because: Mapping[str, int], who: Mapping[str, int]) -> str:
    """Windows kept and rejected, and who disturbed them."""
    others = f", {rejected} rejected" if rejected else ""
    reasons = f" ({reasons_words(because, who)})" if rejected and because else ""
    return f"{counted(kept, 'window')} kept{others}{reasons}"


def reasons_words(because: Mapping[str, int], who: Mapping[str, int]) -> str:
    """Reasons by their number, the commonest first, with the programs that took time."""
    found: Counter[str] = Counter()
    for kind, count in because.items():
        found[KINDS.get(kind, kind)] += count
    names = ", ".join(name for name, _ in Counter(who).most_common(NAMED))
    programs = {KINDS[kind] for kind in OTHERS}
    parts = []
    for words, count in found.most_common():
        named = f": {names}" if names and words in programs else ""
        names = "" if named else names
        parts.append(f"{words} {count}{named}")
    return "; ".join(parts)


def progress_line(progress: LaunchProgress, of: int, done: int, total: int, left: float) -> str:
    """A launch that has ended, in a log."""
    launch, note = progress.launch, progress.note
    number = f"{launch.number}/{of}" if launch.number <= of else str(launch.number)
    parts = [f"{done:>{len(str(total))}}/{total}", f"{_lead(launch)} {number}"]
    parts += [result_words(progress)] if note or progress.failed else []
    parts += [clock(progress.seconds)]
    parts += [f"about {about(left)} left"] if done < total else []
    return "  ".join(parts)


def result_words(progress: LaunchProgress) -> str:
    """What came of a launch."""
    if progress.failed:
        return "failed"
    note = progress.note
    if note is None:
        return "measured"
    if note.status == "failed":
        return f"failed: {note.reason}"
    every = ", no round undisturbed" if note.rejected and not note.clean else ""
    return windows_words(note.kept, note.rejected, note.because, note.who) + every


def measured_words(number: int, windows: Windows, failed: int) -> str:
    """All launches of a sweep."""
    of_all = windows.kept + windows.rejected
    parts = [launches(number)]
    if of_all:  # none where every program failed
        parts.append(f"{counted(windows.kept, 'window')} kept")
    if windows.rejected:
        parts.append(f"{windows.rejected} rejected ({100 * windows.rejected / of_all:.0f} %)")
    if failed:
        parts.append(f"{failed} failed")
    return ", ".join(parts)


def launches_words(to_measure: Sequence[int], seconds: Sequence[float], measured: int) -> str:
    """How many launches of launches a sweep makes, at least and at most, and how long that takes."""
    if not max(to_measure):
        return f"all {launches(measured)} are measured; the report is made anew"
    few, many = to_measure
    numbers = launches(many) if few == many else f"{few} to {launches(many)}"
    more = " more" if measured else ""
    times = [about(one) for one in dict.fromkeys(seconds)]
    return f"{numbers}{more}, about {' to '.join(dict.fromkeys(times))}"


# What was prepared for a sweep, a line each: environments, data sets, this machine with what it lacks; the report.

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
    if there := facts.get("rehearsed"):
        return tick(MIND, "this machine", f"rehearses another, {there.get('processor')}: masks do nothing")
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
