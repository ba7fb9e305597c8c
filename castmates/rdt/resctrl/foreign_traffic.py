"""What others move to and from memory: the traffic of the default group, and of other groups that are not ours.

The kernel's count of a control group contains that of the monitoring groups inside it, so that those of our members are
taken off. It leaves out what it cannot read there without a word; a count that loses a part goes back. The runner's own
traffic, and that of the machine's daemons, is in it.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from castmates.protocols import Monitor, Sample
from castmates.rdt.resctrl.capabilities import monitored_domains
from castmates.rdt.resctrl.foreign import control_groups
from castmates.rdt.resctrl.monitor import ResctrlMonitor
from castmates.rdt.resctrl.tree import MOST_BYTES_A_SECOND, EventFile

SOURCE, METRIC = "foreign traffic", "foreign_traffic"
EVENT = "mbm_total_bytes"


@dataclass
class Part:
    """The count of one group in one cache."""

    group: str  # "" is the default one
    file: EventFile
    sign: int = 1  # -1: it is ours, and contained in another part
    before: int | None = field(default=None, init=False)

    def rate(self, seconds: float) -> tuple[float | None, str]:
        """Return bytes a second since the opening edge, or None and the reason."""
        after, why, resumed = self.file.read()
        if self.before is None or after is None:
            return None, why or "there was no count at the opening edge"
        if resumed:
            return None, "the hardware lost count, and began anew"
        rate = (after - self.before) / seconds
        return (
            (self.sign * rate, "") if 0 <= rate <= MOST_BYTES_A_SECOND else (None, "the counter went back, or ran over")
        )


class ForeignTraffic:
    """Reads at both edges what others moved through the caches of the launch's packages."""

    name = SOURCE

    def __init__(
        self, monitor: ResctrlMonitor, caches: Collection[int], clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._monitor, self._caches, self._clock = monitor, set(caches), clock
        self._parts: list[Part] = []
        self._why = "none"
        self._opened_ns = 0

    def attach(self, members: Mapping[str, int]) -> None:  # noqa: ARG002 (their groups are the monitor's)
        """Find the groups that are not ours, once ours are there."""
        self.close()
        tree, ours = self._monitor.tree, set(self._monitor.groups.paths.values())
        try:
            controls = [group for group in ("", *control_groups(tree)) if group not in ours]
            inner = [path for path in ours if "mon_groups/" in path and _control(path) not in ours]
            self._parts = [part for group in controls for part in self._of(group)]
            self._parts += [part for path in inner for part in self._of(path, -1)]
            self._why = "" if self._parts else f"no group has {EVENT}"
        except OSError as error:
            self._parts, self._why = [], f"resctrl cannot be read ({error.strerror})"

    def start(self, active: Collection[str]) -> None:  # noqa: ARG002
        """Read the opening edge."""
        self._opened_ns = self._clock()
        for part in self._parts:
            part.before = part.file.read()[0]

    def stop(self) -> list[Sample]:
        """Read the closing edge; what the default group or one of ours lacks leaves the sum unknown."""
        now = self._clock()
        if not self._opened_ns or now <= self._opened_ns or not self._parts:
            return []
        seconds, self._opened_ns = (now - self._opened_ns) / 1e9, 0
        rates = [(part, *part.rate(seconds)) for part in self._parts]
        lost = [why for part, rate, why in rates if rate is None and (not part.group or part.sign < 0)]
        if lost:
            return [Sample(now, SOURCE, "host", METRIC, None, lost[0])]
        left_out = sorted({f"without {part.group}: {why}" for part, rate, why in rates if rate is None})
        total = max(0.0, sum(rate for _, rate, _ in rates if rate is not None))
        return [Sample(now, SOURCE, "host", METRIC, total, "; ".join(left_out))]

    def close(self) -> None:
        """Let go of the files; safe to call twice."""
        for part in self._parts:
            part.file.close()
        self._parts, self._opened_ns = [], 0

    def about(self) -> dict[str, str]:
        """Describe what is counted."""
        if self._why:
            return {METRIC: f"not counted: {self._why}"}
        groups = list(dict.fromkeys(part.group or "the default group" for part in self._parts if part.sign > 0))
        ours = list(dict.fromkeys(part.group for part in self._parts if part.sign < 0))
        words = f"{EVENT} of {', '.join(groups)}" + (f", less {', '.join(ours)}" if ours else "")
        return {METRIC: f"{words}; caches {', '.join(map(str, sorted(self._caches))) or 'all'}"}

    def _of(self, group: str, sign: int = 1) -> list[Part]:
        tree, folder = self._monitor.tree, f"{group}/mon_data".lstrip("/")
        return [
            Part(group, EventFile(tree, f"{folder}/{name}/{EVENT}"), sign)
            for domain, name in monitored_domains(tree.names(folder)).items()
            if (domain in self._caches or not self._caches) and EVENT in tree.names(f"{folder}/{name}")
        ]


def foreign_traffic(monitor: Monitor, caches: Collection[int]) -> ForeignTraffic | None:
    """Watch what others move, where resctrl watches the members; None elsewhere."""
    return ForeignTraffic(monitor, caches) if isinstance(monitor, ResctrlMonitor) else None


def _control(path: str) -> str:
    """Return the control group that a monitoring group lies in."""
    return path.partition("mon_groups/")[0].rstrip("/")
