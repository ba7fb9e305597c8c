"""What a machine lets us do with its last-level cache and memory bandwidth."""

import math
from typing import Literal

from castmates.study.frozen import Frozen


class Bandwidth(Frozen):
    """The throttle of memory bandwidth."""

    unit: Literal["%", "MiB/s", "1/8 GB/s"]
    least: int
    step: int
    most: int  # no throttle
    # Of the class in which programs are found, where that is throttled.
    allowed: int | None = None
    # Bytes a second that the cores around one cache were measured to read: what per cent mean where the unit is none.
    peak: float | None = None
    by_core: bool = False  # the slower of a core's threads sets the throttle of the core (thread_throttle_mode: max)
    becomes: tuple[tuple[int, int], ...] = ()  # steps that the kernel keeps, and what this processor makes of them

    def held(self, step: int) -> int:
        """What this processor makes of a step, as far as it is known."""
        return dict(self.becomes).get(step, step)

    def rounded(self, wanted: float) -> int:
        """The next whole step, as the kernel takes it, but for the most; what is beyond that stays beyond."""
        return min(math.ceil(wanted / self.step) * self.step, max(math.ceil(wanted), self.most))

    def to_show(self, value: int) -> int:
        """What has to be written for the kernel to show this value again: the whole step next to it.

        Arm shows the fraction that it keeps of a step, such as 53 of 52 per cent; written back, that would be rounded
        up to the next step.
        """
        return round(value / self.step) * self.step if self.unit == "%" and value < self.most else value


def rate_words(value: int, unit: str) -> str:
    """A throttle as people write it: `50 %`, `6.25 GB/s`."""
    return f"{value / 8:g} GB/s" if unit == "1/8 GB/s" else f"{value} {unit}".strip()


class Cache(Frozen):
    """How one machine's last-level caches can be shared out; all of them alike."""

    domains: tuple[int, ...]  # cache ids, with the gaps they have
    ways: int  # bits of a way mask; 0 where there are none
    way_bytes: int | None  # that one memory node fills of one domain; None where the machine does not report it
    least_ways: int  # bits that a mask must have
    sparse: bool  # whether a mask may have holes
    shareable: int  # mask of the ways that I/O uses too
    groups: int  # that can be made besides the default one
    cdp: bool  # mounted with separate masks for code and data
    bandwidth: Bandwidth | None
    events: tuple[str, ...]  # that can be monitored: llc_occupancy, mbm_total_bytes …
    monitored_groups: int  # whose events can be kept apart
    rest: bool = True  # whether the masks of everybody else on the machine can be set
    clusters: int = 1  # memory nodes that divide each domain (sub-NUMA clustering)
    # The ways of the class in which programs are found, where these are not all.
    allowed: int | None = None

    @property
    def full(self) -> int:
        """The mask of all ways."""
        return (1 << self.ways) - 1

    @property
    def usable(self) -> int:
        """The mask of the ways that programs have unless a study goes beyond their class."""
        return self.full if self.allowed is None else self.allowed

    @property
    def beyond_site(self) -> "Cache":
        """The same as if nobody had narrowed the class in which programs are found."""
        bandwidth = self.bandwidth and self.bandwidth.model_copy(update={"allowed": None})
        return self.model_copy(update={"allowed": None, "bandwidth": bandwidth})
