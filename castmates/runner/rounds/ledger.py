"""The ledger: which slices and windows count, and why others do not; limits are set before anything is measured.

Evidence falls on a slice where it can be seen there, and on all windows of a stretch where it is looked for in watched
slices alone. A rejected slice takes its cycle with it, so that a scene and its baseline keep the same moments. A window
counts if enough of its cycles are left, and if its slices together are within the limits.

Only what comes from outside is a reason. What members cause
themselves (a lower frequency, throttling, major faults, switches, migrations among their own CPUs) is an effect: it
stands in the samples, as does what cannot be attributed. docs/ledger.md lists every proof.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from castmates.rdt.resctrl.foreign_traffic import METRIC as FOREIGN_TRAFFIC
from castmates.runner.processes import restarts
from castmates.runner.rounds.hardware import CHANGED, MISPLACED
from castmates.runner.rounds.ledger_load import FORGIVEN, Load, Readings
from castmates.runner.rounds.slices import TRIES, Slice
from castmates.runner.rounds.stage import Stage
from castmates.runner.rounds.window import Window
from castmates.runner.rounds.witnesses import PREFETCHERS_CHANGED, QUOTA_CHANGED
from castmates.study.reasons import Reason, ReasonKind, kinds
from castmates.study.spec import Design, Member

FEWEST_STEPS = 4  # in a slice, to know how long a step usually takes
OWN_STEPS = 5  # usual steps that are no silence yet


@dataclass(frozen=True)
class Ledger:
    """What is needed to judge the slices and windows of a launch."""

    stage: Stage
    members: Mapping[str, Member]
    design: Design
    runner_cpus: frozenset[int]

    def judge_stretch(self, windows: Sequence[Window]) -> None:
        """Judge all slices of a stretch, and then its windows; the reasons are noted in them."""
        for window in windows:
            for each in window.all_slices:
                each.reasons = self.judge(each, window.slow)
        _drop_broken_cycles(windows)
        found = [reason for window in windows for reason in self._beginning(window) + self.proofs(window.watched)]
        of_all = list(dict.fromkeys(found))
        for window in windows:
            window.of_stretch, window.reasons = of_all, [*of_all, *self._judge_window(window)]

    def judge(self, each: Slice, slow: frozenset[str] = frozenset()) -> list[Reason]:
        """Every reason for which a slice does not count; `slow` members are looked at in watched slices alone."""
        readings = Readings(each.samples, each.seconds)
        looked_at = set(each.since_switch).difference(each.restarted, () if each.watched else slow)
        reasons = [*self._progress(each, readings, looked_at)]
        reasons += [Reason(ReasonKind.NOT_FROZEN, f"{name} made {moved} steps") for name, moved in each.crept.items()]
        reasons += [Reason(ReasonKind.RESTART_GAP, _restarted(name, each)) for name in each.restarted]
        if each.watched:
            reasons += restarts.reasons(each.samples, readings.seconds, self.members, self.design.limits.restart_gap)
        return reasons + self._load().reasons(list(each.since_switch), readings)

    def proofs(self, watched: Slice) -> list[Reason]:
        """Every reason that is looked for in watched slices alone, and that spoils the whole stretch."""
        readings = Readings(watched.samples, watched.seconds)
        reasons = [Reason(ReasonKind.NOT_FROZEN, name) for name in watched.unfrozen if name not in watched.crept]
        reasons += [*self._places(watched, readings), *_masks(watched), *self._quotas(watched, readings)]
        reasons += [*_prefetchers(watched), *self._swap(readings), *self._traffic(readings)]
        return reasons + self._conditions(readings)

    def _judge_window(self, window: Window) -> list[Reason]:
        """Every reason for which a window as a whole does not count."""
        # A member too slow for the usual slices must still work in them, or the lead was as good as alone.
        watched = Readings(window.watched.samples, window.watched.seconds)
        if stalled := self._progress(window.watched, watched, window.slow):
            return stalled
        if window.cycles == 1:
            own = [] if any(each.counted for each in window.slices) else window.slices
            return list(dict.fromkeys(reason for each in own for reason in each.reasons))
        measured, counted = window.cycles, len({each.cycle for each in window.slices if each.counted})
        least = self.design.limits.cycles
        if counted < least * measured:
            why = ", ".join(kinds(reason for each in window.slices for reason in each.reasons)) or "others' slices"
            left = f"{counted} of {measured} are left (limit {least:.0%}; {why})"
            return [Reason(ReasonKind.TOO_FEW_CYCLES, left)]
        if not counted:
            return []
        seconds = sum(each.seconds for each in window.slices if each.counted)
        readings = Readings(window.sums(), seconds)
        limit = self.design.limits.restart_gap
        return [
            *self._load().reasons(list(window.slices[0].since_switch), readings),
            *restarts.reasons(readings.samples, seconds, self.members, limit),
        ]

    def _progress(self, each: Slice, readings: Readings, names: AbstractSet[str]) -> list[Reason]:
        reasons = []
        for name in (name for name in each.since_switch if name in names):
            progress, member = each.progress(name), self.members.get(name)
            is_beating = member is None or member.progress != "runs"  # no member is a placebo
            if progress.lost:
                lost = f"{progress.lost} of {name} were overwritten before they were read"
                reasons.append(Reason(ReasonKind.LOST_HEARTBEATS, lost))
            elif member is not None and member.role == "lead" and len(progress.records) < 2:
                advice = "raise budget.slice, or budget.longest_window"
                none = f"{name} completed none in {readings.seconds:.2f} s ({advice})"
                reasons.append(Reason(ReasonKind.TOO_FEW_STEPS, none))
            elif not progress.records and (
                is_beating or (readings.get(name, "cpu_s") or 0.0) < 0.01 * readings.seconds
            ):
                # A long run of a command shows no heartbeat inside a window, but CPU time.
                reasons.append(Reason(ReasonKind.NO_PROGRESS, f"{name} made none in {readings.seconds:.2f} s"))
            elif is_beating and name in each.ended:
                reasons.append(Reason(ReasonKind.NO_PROGRESS, f"{name} reports that it is at its end"))
            else:
                begin_ns, seconds = each.begin_ns(name), (each.close_ns - each.begin_ns(name)) / 1e9
                beats = each.heartbeats(name).records
                silent_s = _silence([begin_ns, *(t_ns for t_ns, _ in beats), each.close_ns])
                # Who has used up its quota waits for the next period: that was asked for.
                if silent_s > self.design.limits.silence * seconds + _held_back_s(each, name):
                    none = f"{name} made none for {silent_s:.2f} s of {seconds:.2f} s"
                    reasons.append(Reason(ReasonKind.NO_PROGRESS, none))
        return reasons

    def _places(self, watched: Slice, readings: Readings) -> list[Reason]:
        """Return where threads may run now, where they ran last (the frozen too), and whether they left in between."""
        found = []
        for name, process in self.stage.cast.items():
            own = set(process.start.cpus)
            migrations = readings.get(name, "cpu_migrations") or 0.0
            if strange := watched.allowed.get(name, set()) - own:
                found.append(f"a thread of {name} may run on {_listed(strange)}")
            elif strange := readings.last_cpus(name) - own:
                found.append(f"a thread of {name} ran on {_listed(strange)}")
            elif len(own) == 1 and migrations > 0:
                found.append(f"threads of {name} left its only CPU ({migrations:.0f} migrations)")
        return [Reason(ReasonKind.OFF_ITS_CPUS, detail) for detail in found]

    def _traffic(self, readings: Readings) -> list[Reason]:
        """Return what others moved to and from memory, in the packages of the launch."""
        moved, limit = readings.get("host", FOREIGN_TRAFFIC), self.design.limits.foreign_bytes
        if moved is None or moved <= limit:
            return []
        rate = f"others moved {moved / 1e9:.1f} GB/s through the caches (limit {limit / 1e9:g} GB/s)"
        return [Reason(ReasonKind.FOREIGN_TRAFFIC, rate)]

    def _beginning(self, window: Window) -> list[Reason]:
        """Return what members still held of the emptied caches before the stretch, and what was not steady after."""
        left, limit = window.emptied.left if window.emptied else None, self.design.limits.left_in_caches
        reasons = []
        if left is not None and left > limit:
            held = f"members still held {left:.1%} of the caches before this stretch (limit {limit:.1%})"
            reasons.append(Reason(ReasonKind.NOT_EMPTIED, held))
        if window.lead_in.not_steady:
            why = f"{window.lead_in.why} after {window.lead_in.passes} passes"
            reasons.append(Reason(ReasonKind.STILL_FILLING, why))
        return reasons

    def _quotas(self, watched: Slice, readings: Readings) -> list[Reason]:
        """Return which quotas of CPU time were changed, and who took more than its own."""
        changed = [sample for sample in watched.samples if sample.metric == QUOTA_CHANGED]
        reasons = [Reason(ReasonKind.QUOTA_CHANGED, f"that of {sample.subject}, {sample.note}") for sample in changed]
        for share in watched.scene.shares:
            if share.quota is None or share.period is None or share.member not in watched.scene.active:
                continue
            took = readings.get(share.member, "cpu_s") or 0.0
            cpus = len(self.members[share.member].cpus)
            # What is left of the period before the slice and of that after it may be used in it.
            most = cpus * share.quota / 100 * (readings.seconds + 2 * share.period / 1000) + FORGIVEN
            if took > most:
                times = f"{share.member} took {took:.3f} s of CPU time, {most:.3f} s at most"
                reasons.append(Reason(ReasonKind.QUOTA_EXCEEDED, times))
        return reasons

    def _swap(self, readings: Readings) -> list[Reason]:
        pages = sum(readings.get("host", metric) or 0.0 for metric in ("pswpin", "pswpout"))
        return [Reason(ReasonKind.SWAPPING, f"{pages:.0f} pages")] if pages > self.design.limits.swap else []

    def _conditions(self, readings: Readings) -> list[Reason]:
        """Return what of the machine is no longer as it was at the launch's begin, or was away."""
        reasons = []
        if readings.get("host", "settings_changed"):
            reasons.append(Reason(ReasonKind.GOVERNOR_CHANGED, readings.note("host", "settings_changed")))
        if readings.get("host", "cpus_offline"):
            reasons.append(Reason(ReasonKind.OFFLINE, readings.note("host", "cpus_offline")))
        if slept := readings.get("host", "slept_s"):
            reasons.append(Reason(ReasonKind.SLEPT, f"for {slept:.1f} s of this window"))
        return reasons

    def _load(self) -> Load:
        # Evictors run between windows: their CPUs, mostly the runner's, are not those that are measured on.
        places = {
            name: process.start.cpus for name, process in self.stage.cast.items() if name not in self.stage.evictors
        }
        return Load(places, self.stage.hardware.surroundings, self.runner_cpus, self.design.limits)


def _restarted(name: str, each: Slice) -> str:
    took = f"{name} ended and was started again in a slice of {each.seconds:.2f} s, {TRIES} times in turn"
    return f"{took} (give it more steps, or 'progress: runs')"


def _listed(cpus: set[int]) -> str:
    return ", ".join(map(str, sorted(cpus)))


def _silence(times: Sequence[int]) -> float:
    """Return the longest time without a step, between two edges, of a member that usually makes many; else 0."""
    if len(times) < FEWEST_STEPS + 2:
        return 0.0
    gaps = [after - before for before, after in pairwise(times)]
    longest = max(gaps)
    return longest / 1e9 if longest > OWN_STEPS * median(gaps) else 0.0


def _masks(watched: Slice) -> list[Reason]:
    """Masks that were not what was given, and threads outside the group of their member."""
    changed = [sample for sample in watched.samples if sample.metric == CHANGED]
    outside = [sample for sample in watched.samples if sample.metric == MISPLACED]
    reasons = [Reason(ReasonKind.MASKS_CHANGED, f"of {sample.subject}, {sample.note}") for sample in changed]
    return reasons + [Reason(ReasonKind.OUT_OF_ITS_GROUP, sample.note) for sample in outside]


def _prefetchers(watched: Slice) -> list[Reason]:
    """Prefetchers that were not as the scene asked."""
    changed = [sample for sample in watched.samples if sample.metric == PREFETCHERS_CHANGED]
    return [Reason(ReasonKind.PREFETCHERS_CHANGED, sample.note) for sample in changed]


def _held_back_s(each: Slice, name: str) -> float:
    """How long a member may have to wait for more CPU time; 0 for one without a quota."""
    share = next((share for share in each.scene.shares if share.member == name), None)
    if share is None or share.quota is None or share.period is None:
        return 0.0
    return (1 - share.quota / 100) * share.period / 1000


def _drop_broken_cycles(windows: Sequence[Window]) -> None:
    """A slice that does not count takes the others of its cycle with it, where windows have more than one."""
    slices = [each for window in windows if window.cycles > 1 for each in window.slices]
    broken = {each.cycle for each in slices if each.reasons}
    for each in slices:
        each.dropped = each.cycle in broken and not each.reasons


def summary(windows: Sequence[Window]) -> dict[str, object]:
    """Return the ledger of a whole launch for launch.json: by kind of scene, windows, rejected ones, and reasons."""
    rejected = [window for window in windows if window.reasons]
    of_windows = [(window.scene.kind, kinds(window.reasons)) for window in rejected]
    of_stretches = {(window.round, window.watched.stretch): kinds(window.of_stretch) for window in windows}
    slices = [each for window in windows for each in window.all_slices]
    of_slices = [(each.scene.kind, kinds(each.reasons)) for each in slices if each.reasons]
    return {
        "windows": dict(Counter(window.scene.kind for window in windows)),
        "rejected": dict(Counter(window.scene.kind for window in rejected)),
        "because": _by_kind(of_windows),
        "stretches": len(of_stretches),
        "stretches_because": dict(Counter(kind for found in of_stretches.values() for kind in found)),
        "stretches_rejected": sum(bool(found) for found in of_stretches.values()),
        "slices": dict(Counter(each.scene.kind for each in slices)),
        "slices_rejected": dict(Counter(kind for kind, _ in of_slices)),
        "slices_dropped": dict(Counter(each.scene.kind for each in slices if each.dropped)),
        "slices_because": _by_kind(of_slices),
    }


def _by_kind(rejected: Sequence[tuple[str, Sequence[ReasonKind]]]) -> dict[str, object]:
    """For each kind of reason, how many of each kind of scene had it."""
    return {
        kind: dict(Counter(scene for scene, found in rejected if kind in found))
        for kind in sorted({kind for _, found in rejected for kind in found})
    }
