"""Reads members' cache occupancy and memory traffic through resctrl, at a steady rate while a window is open."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from castmates.errors import CastmatesError
from castmates.linux.owner import delegated_to, maker_of_resctrl_group, resctrl_group_name
from castmates.protocols import Held, Sample, Say
from castmates.rdt.resctrl import groups
from castmates.rdt.resctrl.capabilities import EVENTS, monitored_domains
from castmates.rdt.resctrl.foreign import Tasks, control_groups, listed
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.mounting import Mounted
from castmates.rdt.resctrl.tree import NO_RATE, OCCUPANCY, EventFile, Series, SeriesLook, TrafficCounters, Tree, refusal
from castmates.rdt.resctrl.wanted_schemata import parse
from castmates.sampler import Sampler

RATE = 10.0  # looks a second: each read interrupts a CPU of the cache's domain
# Where it is which kinds of traffic an event counts: bits by domain, or names (AMD's BMEC; counters that are assigned).
KINDS = ("info/L3_MON/{event}_config", "info/L3_MON/event_configs/{event}/event_filter")
METRICS = {OCCUPANCY: "llc_occupancy", "mbm_total_bytes": "mbm_total", "mbm_local_bytes": "mbm_local"}


class ResctrlMonitor:
    """Watches the members of one launch; its thread keeps to the CPUs of the thread that starts it."""

    name = "resctrl"

    def __init__(self, mounted: Mounted, rate: float = RATE, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.tree, self.rate, self.say, self._release = mounted.tree, rate, mounted.say, mounted.release
        self.groups = MonitoringGroups(mounted.tree, mounted.tasks, mounted.journal, mounted.say)
        self.looks = 0
        self.cpu_ns = 0  # that the thread has used
        self.open_ns = 0  # that windows were open
        self._domain_of, self._clock = mounted.domain_of, clock
        self._series: list[Series] = []
        self._parts: dict[str, int] = {}  # member -> into how many parts (SNC) its caches are divided
        self._counters = TrafficCounters(mounted.tree)
        self._unread: Counter[tuple[str, str]] = Counter()  # looks without a value, by metric and kind of reason
        self._thread: Sampler | None = None

    def attach(self, members: Mapping[str, Held]) -> None:
        """Begin to watch these members, once, after their launch and after the allocator made its groups."""
        self.groups.attach(members)
        for name, path in self.groups.paths.items():
            wanted = {self._domain_of[cpu] for cpu in members[name].cpus if cpu in self._domain_of}
            try:
                series = self._series_of(name, path, wanted)
            except OSError as error:
                self.groups.missing[name] = f"{path}/mon_data cannot be read ({error.strerror})"
                continue
            if not series:
                self.groups.missing[name] = f"resctrl counts nothing on the caches of its CPUs (l3: {sorted(wanted)})"
            self._series += series
            self._counters.claim(name, path, [(one.event, one.domain) for one in series])
        for name, why in self.groups.missing.items():
            self.say(f"{name} is not watched: {why}")
        for name, why in self._counters.missing.items():
            self.say(f"the traffic of {name} is not counted: {why}")

    def start(self) -> None:
        """Begin a series; one that was not ended is dropped."""
        self.stop()
        for series in self._series:
            series.restart()
        self._thread = Sampler("monitor", self._look, 1 / self.rate, edges=True)
        self._thread.start()

    def stop(self) -> list[Sample]:
        """End the series and return it."""
        thread, self._thread = self._thread, None
        if thread is None:
            return []
        samples = thread.finish()
        self.cpu_ns += thread.cpu_ns
        self.open_ns += thread.open_ns
        now = self._clock()
        return samples + [
            Sample(now, self.name, name, OCCUPANCY, None, why) for name, why in self.groups.missing.items()
        ]

    def occupancies(self) -> dict[str, float | None]:
        """Return the bytes that each member has in the caches now; None where a part of them is not known."""
        counts: dict[str, list[int | None]] = {}
        for series in self._series:
            if series.event == OCCUPANCY:
                counts.setdefault(series.member, []).append(series.file.read()[0])
        known = {member: [count for count in each if count is not None] for member, each in counts.items()}
        whole = {member: len(each) == len(counts[member]) for member, each in known.items()}
        return dict.fromkeys(self.groups.missing) | {
            member: float(sum(each)) if whole[member] else None for member, each in known.items()
        }

    def close(self) -> None:
        """Let go of everything; safe to call twice."""
        self.stop()
        for series in self._series:
            series.file.close()
        self.groups.close()
        release, self._release = self._release, list
        for sentence in release():
            self.say(sentence)

    def about(self) -> dict[str, str]:
        """Describe what is read and how, and what it has cost so far."""
        reads, seconds = sum(series.file.reads for series in self._series), self.open_ns / 1e9
        text = {
            "monitoring": "resctrl",
            "rate": f"{self.rate:g} Hz",
            "events": ", ".join(sorted({series.event for series in self._series})),
            "groups": ", ".join(f"{name}: {path}" for name, path in self.groups.paths.items()),
        }
        if self.groups.missing:
            text["not watched"] = "; ".join(f"{name}: {why}" for name, why in self.groups.missing.items())
        text |= self._counters.about()
        if chosen := _traffic_kinds(self.tree, {series.event for series in self._series}):
            text["traffic counts"] = chosen
        if self._unread:
            kinds = (f"{metric}: {kind} ({count})" for (metric, kind), count in sorted(self._unread.items()))
            text["looks without a value"] = "; ".join(kinds)
        if self._parts:
            text["sub-NUMA clusters"] = "values are sums over the parts of a cache, which the kernel forms"
        if seconds:
            text["cost"] = (
                f"{reads / seconds:.1f} reads and {self.cpu_ns / seconds / 1e6:.3f} ms of CPU time a second,"
                f" over {seconds:.1f} s"
            )
        return text

    def _series_of(self, member: str, path: str, wanted: set[int]) -> list[Series]:
        folder = f"{path}/mon_data".lstrip("/")
        series: list[Series] = []
        for domain, name in monitored_domains(self.tree.names(folder)).items():
            if domain in wanted or not wanted:
                there = self.tree.names(f"{folder}/{name}")
                if parts := sum(folder_name.startswith("mon_sub_") for folder_name in there):
                    self._parts[member] = parts
                series += [
                    Series(member, event, domain, EventFile(self.tree, f"{folder}/{name}/{event}"), self._clock)
                    for event in EVENTS
                    if event in there
                ]
        return series

    def _look(self) -> list[Sample]:
        """Look at everything once; a member with several caches has a sample of each, and their sum."""
        self.looks += 1
        now = self._clock()
        looks: dict[tuple[str, str], dict[int, SeriesLook | None]] = {}
        for series in self._series:
            look, metric = series.look(), METRICS[series.event]
            looks.setdefault((series.member, metric), {})[series.domain] = look
            if look is not None and look[0] is None:
                self._unread[metric, look[1].partition(":")[0]] += 1
        return [
            sample
            for (member, metric), values in looks.items()
            if any(values.values())  # else there is no rate anywhere yet
            for sample in _samples(now, self.name, member, metric, {at: look or NO_RATE for at, look in values.items()})
        ]


def _samples(now: int, source: str, member: str, metric: str, values: Mapping[int, SeriesLook]) -> list[Sample]:
    if len(values) == 1:
        value, why = next(iter(values.values()))
        return [Sample(now, source, member, metric, value, why)]
    known = [value for value, _ in values.values() if value is not None]
    why = "; ".join(f"l3:{domain} {reason}" for domain, (_, reason) in values.items() if reason)
    total = sum(known) if len(known) == len(values) else None
    parts = [
        Sample(now, source, f"{member} l3:{domain}", metric, value, reason)
        for domain, (value, reason) in values.items()
    ]
    return [Sample(now, source, member, metric, total, why), *parts]


def _traffic_kinds(tree: Tree, events: Iterable[str]) -> str:
    """What each event counts, `mbm_total_bytes 0x7f`; by domain where domains differ; "" where none can be chosen."""
    found = {event: _kinds(tree, event) for event in sorted(events)}
    return "; ".join(f"{event} {kinds}" for event, kinds in found.items() if kinds)


def _kinds(tree: Tree, event: str) -> str:
    for place in KINDS:
        try:
            text = tree.read(place.format(event=event)).strip()
        except OSError:
            continue
        bits = {part.partition("=")[2] for part in text.split(";")}
        return bits.pop() if len(bits) == 1 and "=" in text else text
    return ""


# The group in which each member is watched: its own control group, or a monitoring group that is made for it.

FIRST = 1000  # numbers of monitoring groups begin here, so that their names differ from control groups'


@dataclass
class MonitoringGroups:
    """Finds, makes and removes the groups."""

    tree: Tree
    tasks: Tasks
    journal: ResctrlJournal
    say: Say
    paths: dict[str, str] = field(default_factory=dict)  # member -> its group
    missing: dict[str, str] = field(default_factory=dict)  # member -> why it has none
    _made: list[str] = field(default_factory=list)
    _patience: float = groups.LIMBO_S  # with ids in limbo, once for all members

    def attach(self, members: Mapping[str, Held]) -> None:
        """Give every member its own group; those without one are named in `missing`, and the others go on."""
        controls = {name: self._control_of(held.pid) for name, held in members.items()}
        for number, (name, held) in enumerate(members.items()):
            control = controls[name]
            if control and _is_for_us(control) and list(controls.values()).count(control) == 1:
                self.paths[name] = control
            else:
                self._watch(name, held, control, FIRST + number)

    def close(self) -> None:
        """Remove what was made; safe to call twice."""
        while self._made:
            path = self._made.pop()
            try:
                groups.remove(self.tree, self.journal, path)
            except CastmatesError as error:
                self.say(str(error))

    def _watch(self, name: str, held: Held, control: str, number: int) -> None:
        try:
            path = self._make(control, number)
            groups.fill(self.tree, self.tasks, path, held, name)
            self.paths[name] = path
        except CastmatesError as error:
            self.missing[name] = str(error)
            self._patience = 0.0

    def _make(self, control: str, number: int) -> str:
        path = f"{control}/mon_groups/{resctrl_group_name(number)}".lstrip("/")
        try:
            groups.make(self.tree, self.journal, path, self.say, self._patience)
        except OSError as error:
            paths = [group for group in self._delegated(control) if group not in self.paths.values()]
            if not paths:
                raise refusal(self.tree, error, f"make the monitoring group {path}") from None
            return paths[0]
        self._made.append(path)
        return path

    def _delegated(self, control: str) -> list[str]:
        """List the groups that root gave to this user and that may serve here.

        A control group may stand for the default one, as long as it has the same: so a user who may make no group is
        watched without being bounded.
        """
        uid = os.geteuid()
        monitoring = groups.delegated_monitoring(self.tree, control, uid)
        if control:
            return monitoring
        ours = parse(self.tree.read("schemata"))
        return monitoring + [
            name for name in groups.delegated(self.tree, uid) if parse(self.tree.read(f"{name}/schemata")) == ours
        ]

    def _control_of(self, pid: int) -> str:
        """Find the control group of a process; "" is the default one."""
        if self.tasks.shows_places:
            place = self.tasks.place(pid)
            return place.control if place else ""
        for control in control_groups(self.tree):
            try:
                if pid in listed(self.tree, control):
                    return control
            except OSError:  # it has just been removed
                continue
        return ""


def _is_for_us(control: str) -> bool:
    return maker_of_resctrl_group(control) is not None or delegated_to(control) == os.geteuid()
