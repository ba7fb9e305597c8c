"""The ledger of a window: is it valid, and if not, why. Limits are the study's, set before anything is measured.

A reason reads "kind: detail"; the report counts by kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from castmates.runner.stage import Stage
from castmates.runner.window import Window
from castmates.study.spec import Design, Member

TICK = 0.01  # seconds; the grain of /proc/stat


@dataclass(frozen=True)
class Ledger:
    """What is needed to judge the windows of a block."""

    stage: Stage
    members: Mapping[str, Member]
    design: Design
    runner_cpus: frozenset[int]

    def judge(self, window: Window) -> list[str]:
        """Every reason for which this window does not count."""
        readings = _Readings(window)
        reasons = [*self._progress(window, readings), *self._frozen(window), *self._places(window)]
        return [*reasons, *self._steal(readings), *self._foreign(window, readings), *self._swap(readings)]

    def _progress(self, window: Window, readings: "_Readings") -> list[str]:
        reasons = []
        for name, progress in window.progress.items():
            member = self.members.get(name)
            if progress.lost:
                reasons.append(f"lost heartbeats: {progress.lost} of {name} were overwritten before they were read")
            elif member is not None and member.role == "lead" and len(progress.records) < 2:
                reasons.append(
                    f"too few steps: {name} completed none in {readings.seconds:.1f} s (raise budget.longest_window)"
                )
            elif not progress.records and (readings.get(name, "cpu_s") or 0.0) < 0.01 * readings.seconds:
                # A long run of a command shows no heartbeat inside a window, but CPU time.
                reasons.append(f"no progress: {name} made none")
        return reasons

    def _frozen(self, window: Window) -> list[str]:
        reasons = []
        for name, one in self.stage.cast.items():
            if name in window.progress:
                continue
            if moved := one.reader.head - one.seen:
                reasons.append(f"not frozen: {name} made {moved} steps")
            elif not self.stage.freezer.is_frozen(name):
                reasons.append(f"not frozen: {name}")
        return reasons

    def _places(self, window: Window) -> list[str]:
        reasons = []
        for name in window.progress:
            strange = self.stage.cpus_of_threads(name) - set(self.stage.cast[name].start.cpus)
            if strange:
                reasons.append(f"off its CPUs: a thread of {name} may run on {', '.join(map(str, sorted(strange)))}")
        return reasons

    def _steal(self, readings: "_Readings") -> list[str]:
        """On every CPU of the block, also where nobody runs: what is stolen there hides what happens there."""
        limit = self.design.limits.steal
        shares = {cpu: (readings.get(f"cpu{cpu}", "steal_s") or 0.0) / readings.seconds for cpu in self._cpus()}
        return [
            f"steal: the hypervisor took {share:.1%} of CPU {cpu} (limit {limit:.1%})"
            for cpu, share in shares.items()
            if share > limit
        ]

    def _foreign(self, window: Window, readings: "_Readings") -> list[str]:
        """Others' time on the CPUs of the block: beside a running member, and where it should be quiet."""
        ours = {name: self.stage.cast[name].start.cpus for name in window.progress}
        quiet = self._cpus() - {cpu for cpus in ours.values() for cpu in cpus}
        found = [(name, cpus, readings.get(name, "cpu_s")) for name, cpus in ours.items()]
        found += [(f"CPU {cpu}", (cpu,), 0.0) for cpu in sorted(quiet)]
        reasons = []
        for place, cpus, own in found:
            busy = readings.busy(cpus)
            if own is None or busy is None:
                continue
            if self.runner_cpus & set(cpus):
                own += window.runner_s
            # Ticks are coarse: two of them are forgiven.
            share = (busy - own - 2 * TICK) / len(cpus) / readings.seconds
            if share > self.design.limits.foreign:
                reasons.append(
                    f"foreign load: others took {share:.0%} of {place} (limit {self.design.limits.foreign:.0%})"
                )
        return reasons

    def _swap(self, readings: "_Readings") -> list[str]:
        pages = sum(readings.get("host", metric) or 0.0 for metric in ("pswpin", "pswpout"))
        return [f"swapping: {pages:.0f} pages"] if pages > self.design.limits.swap else []

    def _cpus(self) -> set[int]:
        return {cpu for one in self.stage.cast.values() for cpu in one.start.cpus}


class _Readings:
    """A window's samples by subject and metric."""

    def __init__(self, window: Window) -> None:
        self.seconds = (window.close_ns - window.open_ns) / 1e9
        self._values = {(one.subject, one.metric): one.value for one in window.samples}

    def get(self, subject: str, metric: str) -> float | None:
        return self._values.get((subject, metric))

    def busy(self, cpus: tuple[int, ...]) -> float | None:
        """Seconds that programs and interrupts took on these CPUs."""
        parts = [self.get(f"cpu{cpu}", metric) for cpu in cpus for metric in ("user_s", "system_s", "irq_s")]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None
