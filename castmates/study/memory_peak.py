"""The memory bandwidth that was measured as the most of this machine, and workloads that are given a share of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from castmates.errors import CastmatesError
from castmates.study.cache import Cache
from castmates.study.catalogue import Workloads
from castmates.study.cpus import parse as cpus_of
from castmates.study.model import Workload
from castmates.study.placement.layout import Layout

MODES = ("read", "triad")  # of the kernel `stream`; each has its own peak, in bytes that the program reads and writes
SATURATED = 0.95  # of the peak that so many cores reach
STILL_GROWS = 1.1  # times what half of the cores reach, that all reach: then the peak is not the memory's
COMMAND = "castmates doctor --memory-peak"
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%", re.ASCII)


@dataclass(frozen=True)
class Peak:
    """What 1, 2, 3, 4, 6 … cores of one package reached together, in bytes per second."""

    at: str
    curve: tuple[tuple[int, Mapping[str, float]], ...]  # cores, and their bandwidth by mode
    cpus: tuple[int, ...] = ()  # one of each core, in the order in which they were taken

    @classmethod
    def of(cls, record: Mapping[str, Any] | None) -> "Peak | None":
        """The peak in the record of a trial; None where there is none."""
        try:
            points = (record or {})["curve"]
            curve = tuple((int(point["cores"]), {mode: float(point[mode]) for mode in MODES}) for point in points)
            cpus = str((record or {}).get("cpus") or "")
            ordered = tuple(sorted(curve, key=lambda point: point[0]))
            return (
                cls(str((record or {})["at"]), ordered, tuple(cpus_of(cpus, "cpus") if cpus else ())) if curve else None
            )
        except (KeyError, TypeError, ValueError, CastmatesError):
            return None

    def highest(self, mode: str = "read") -> float:
        """The peak itself."""
        return max(reached[mode] for _, reached in self.curve)

    def reached(self, cores: int, mode: str = "read") -> float:
        """What so many cores reach at most: the best of those numbers that were tried and are not larger."""
        within = [reached[mode] for tried, reached in self.curve if tried <= cores]
        return max(within, default=self.curve[0][1][mode])

    def around_one_cache(self, layout: Layout) -> float | None:
        """What all cores around one last-level cache read together; None where it is not known, or some were not ours.

        Two digits: a second trial of the peak, which differs a little, mostly leaves throttles as they are.
        """
        together, there = self.cores_of_first_cache(layout)
        return float(f"{self.reached(together):.2g}") if 0 < there <= together else None

    def cores_of_first_cache(self, layout: Layout) -> tuple[int, int]:
        """How many cores around the cache of the first CPU were tried first, and how many there are; 0 if not known.

        A cpuset may leave us some of them alone.
        """
        caches = [cpu and cpu.llc for cpu in map(layout.by_id.get, self.cpus)]
        if not caches or caches[0] is None:
            return 0, 0
        together = next((number for number, llc in enumerate(caches) if llc != caches[0]), len(caches))
        return together, len({cpu.core for cpu in layout.cpus if cpu.online and cpu.llc == caches[0]})

    @property
    def cores(self) -> int:
        """The most that were tried."""
        return self.curve[-1][0]

    @property
    def saturating(self) -> int:
        """The fewest cores that were tried and come close to the peak."""
        enough = SATURATED * self.highest("triad")
        return next(cores for cores, reached in self.curve if reached["triad"] >= enough)

    @property
    def saturated(self) -> bool:
        """Whether the last cores added little: else memory gives more than these cores can take."""
        return self.cores > 1 and self.highest("triad") < STILL_GROWS * self.reached(self.cores // 2, "triad")


def with_peak(cache: Cache | None, peak: Peak | None, layout: Layout) -> Cache | None:
    """The cache with what per cent of bandwidth mean on it, where its throttles have another unit."""
    if cache is None or cache.bandwidth is None or cache.bandwidth.unit == "%" or peak is None:
        return cache
    bandwidth = cache.bandwidth.model_copy(update={"peak": peak.around_one_cache(layout)})
    return cache.model_copy(update={"bandwidth": bandwidth})


def needs_peak(workload: Workload) -> str:
    """Why a workload cannot be started before the peak was measured; "" where it can."""
    if workload.saturate:
        return "is given as many CPUs as it takes to saturate the memory of a package ('saturate')"
    return f"has a rate of {workload.options['rate']} of this machine's peak" if _share(workload) else ""


def at_peak(
    workloads: Workloads, mixes: Sequence[Sequence[str]], layout: Layout, peak: Peak | None, elsewhere: str = ""
) -> dict[str, Workload]:
    """The workloads with CPUs and rates as the peak gives them; those that no mix names are left as they are.

    `elsewhere` names the machine where it is one on which nothing can be measured.
    """
    fitted = dict(workloads)
    for name in dict.fromkeys(name for mix in mixes for name in mix):
        if not (why := needs_peak(workloads[name])):
            continue
        if peak is None and elsewhere:
            raise CastmatesError(
                f"the workload '{name}' {why}, which is not known of {elsewhere}: give it a rate in GB/s, or 'cores'."
            )
        if peak is None:
            raise CastmatesError(
                f"the workload '{name}' {why}, which was not measured here yet: run `{COMMAND}` (a minute) and then "
                "the same command again."
            )
        others = [[other for other in mix if other != name] for mix in mixes if name in mix]
        taken = max(sum(workloads[other].cores for other in mix) for mix in others)
        fitted[name] = _at(workloads[name], peak, free_cores(layout, taken))
    return fitted


def free_cores(layout: Layout, taken: int) -> int:
    """How many cores of the largest package the others of a mix leave; of two or more, one is the runner's."""
    packages: dict[int | None, int] = {}
    for core in layout.cores:
        packages[core.package] = packages.get(core.package, 0) + 1
    left = max(packages.values(), default=1) - taken
    return max(1, left - 1 if left > 1 else left)


def _at(workload: Workload, peak: Peak, free: int) -> Workload:
    changes: dict[str, Any] = {"cores": min(peak.saturating, free)} if workload.saturate else {}
    if share := _share(workload):
        # Three digits: a second trial of the peak, which differs a little, mostly leaves the rate as it is.
        changes["options"] = {**workload.options, "rate": f"{share * peak.highest() / 1e9:.3g}GB/s"}
    return workload.model_copy(update=changes)


def _share(workload: Workload) -> float:
    """The share of the peak that its rate is; 0 where it is no share."""
    share = _SHARE.fullmatch(str(workload.options.get("rate", "")))
    return float(share[1]) / 100 if share else 0.0
