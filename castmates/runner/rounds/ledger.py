"""The ledger of a window: is it valid, and if not, why. Limits are the study's, set before anything is measured.

A reason reads "kind: detail"; the report counts by kind. Only what comes from outside is a reason. What members cause
themselves (a lower frequency, throttling, major faults, switches, migrations among their own CPUs) is an effect: it
stands in the samples, as does what nobody can attribute. docs/ledger.md lists every proof.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from castmates.runner.processes import restarts
from castmates.runner.rounds.ledger_load import Load
from castmates.runner.rounds.ledger_readings import Readings
from castmates.runner.rounds.mask_witness import CHANGED, MISPLACED
from castmates.runner.rounds.stage import Stage
from castmates.runner.rounds.window import Window
from castmates.study.spec import Design, Member
from castmates.workloads.heartbeat import State

FEWEST_STEPS = 4  # in a window, to know how long a step usually takes
OWN_STEPS = 5  # usual steps that are no silence yet


@dataclass(frozen=True)
class Ledger:
    """What is needed to judge the windows of a block."""

    stage: Stage
    members: Mapping[str, Member]
    design: Design
    runner_cpus: frozenset[int]

    def judge(self, window: Window) -> list[str]:
        """Every reason for which this window does not count."""
        readings = Readings(window)
        reasons = [*self._progress(window, readings), *self._frozen(window), *self._places(window, readings)]
        reasons += restarts.reasons(window.samples, readings.seconds, self.members, self.design.limits.restart_gap)
        reasons += self._load().reasons(window.progress, readings)
        return [*reasons, *self._masks(window), *self._swap(readings), *self._conditions(readings)]

    def _progress(self, window: Window, readings: Readings) -> list[str]:
        reasons = []
        for name, progress in window.progress.items():
            member = self.members.get(name)
            is_beating = member is None or member.progress != "runs"  # no member is a placebo
            if progress.lost:
                reasons.append(f"lost heartbeats: {progress.lost} of {name} were overwritten before they were read")
            elif member is not None and member.role == "lead" and len(progress.records) < 2:
                reasons.append(
                    f"too few steps: {name} completed none in {readings.seconds:.1f} s (raise budget.longest_window)"
                )
            elif not progress.records and (
                is_beating or (readings.get(name, "cpu_s") or 0.0) < 0.01 * readings.seconds
            ):
                # A long run of a command shows no heartbeat inside a window, but CPU time.
                reasons.append(f"no progress: {name} made none in {readings.seconds:.1f} s")
            elif is_beating and self.stage.cast[name].reader.state is not State.READY:
                reasons.append(f"no progress: {name} says that it is at its end")
            elif (silent_s := _silence(progress.records, window)) > self.design.limits.silence * readings.seconds:
                reasons.append(f"no progress: {name} made none for {silent_s:.2f} s of {readings.seconds:.2f} s")
        return reasons

    def _frozen(self, window: Window) -> list[str]:
        reasons = []
        for name, process in self.stage.cast.items():
            if name in window.progress:
                continue
            if moved := process.reader.head - process.seen:
                reasons.append(f"not frozen: {name} made {moved} steps")
            elif not self.stage.freezer.is_frozen(name):
                reasons.append(f"not frozen: {name}")
        return reasons

    def _places(self, window: Window, readings: Readings) -> list[str]:
        """Return where threads may run now, where they ran last (the frozen too), and whether they left in between."""
        reasons = []
        for name, process in self.stage.cast.items():
            own = set(process.start.cpus)
            allowed = self.stage.cpus_of_threads(name) if name in window.progress else set()
            migrations = readings.get(name, "cpu_migrations") or 0.0
            if strange := allowed - own:
                reasons.append(f"off its CPUs: a thread of {name} may run on {_listed(strange)}")
            elif strange := readings.last_cpus(name) - own:
                reasons.append(f"off its CPUs: a thread of {name} ran on {_listed(strange)}")
            elif len(own) == 1 and migrations > 0:
                reasons.append(f"off its CPUs: threads of {name} left its only CPU ({migrations:.0f} migrations)")
        return reasons

    def _masks(self, window: Window) -> list[str]:
        """Masks that were not what was given, and threads outside the group of their member."""
        changed = [sample for sample in window.samples if sample.metric == CHANGED]
        outside = [sample for sample in window.samples if sample.metric == MISPLACED]
        reasons = [f"masks changed: of {sample.subject}, {sample.note}" for sample in changed]
        return reasons + [f"out of its group: {sample.note}" for sample in outside]

    def _swap(self, readings: Readings) -> list[str]:
        pages = sum(readings.get("host", metric) or 0.0 for metric in ("pswpin", "pswpout"))
        return [f"swapping: {pages:.0f} pages"] if pages > self.design.limits.swap else []

    def _conditions(self, readings: Readings) -> list[str]:
        """Return what of the machine is no longer as it was at the block's begin, or was away."""
        reasons = []
        if readings.get("host", "settings_changed"):
            reasons.append(f"governor changed: {readings.note('host', 'settings_changed')}")
        if readings.get("host", "cpus_offline"):
            reasons.append(f"offline: {readings.note('host', 'cpus_offline')}")
        if slept := readings.get("host", "slept_s"):
            reasons.append(f"the machine slept: for {slept:.1f} s of this window")
        return reasons

    def _load(self) -> Load:
        # Evictors run between windows: their CPUs, mostly the runner's, are not those that are measured on.
        places = {
            name: process.start.cpus for name, process in self.stage.cast.items() if name not in self.stage.evictors
        }
        return Load(places, self.stage.hardware.surroundings, self.runner_cpus, self.design.limits)


def _listed(cpus: set[int]) -> str:
    return ", ".join(map(str, sorted(cpus)))


def _silence(records: Sequence[tuple[int, int]], window: Window) -> float:
    """Return the longest time without a step of somebody who usually makes many; 0 where steps are rare anyway."""
    if len(records) < FEWEST_STEPS:
        return 0.0
    times = [window.open_ns, *(t_ns for t_ns, _ in records), window.close_ns]
    gaps = [after - before for before, after in pairwise(times)]
    longest = max(gaps)
    return longest / 1e9 if longest > OWN_STEPS * median(gaps) else 0.0


def summary(windows: Sequence[Window]) -> dict[str, dict[str, object]]:
    """Return the ledger of a whole block for block.json: by kind of scene, windows, rejected ones, and reasons."""
    rejected = [window for window in windows if window.reasons]
    return {
        "windows": dict(Counter(window.scene.kind for window in windows)),
        "rejected": dict(Counter(window.scene.kind for window in rejected)),
        "because": {
            kind: dict(Counter(window.scene.kind for window in rejected if kind in _kinds(window)))
            for kind in sorted({kind for window in rejected for kind in _kinds(window)})
        },
    }


def _kinds(window: Window) -> set[str]:
    return {reason.partition(":")[0] for reason in window.reasons}
