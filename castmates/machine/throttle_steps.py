"""Steps of the throttle of memory bandwidth that a processor makes equal, though the kernel keeps them apart.

They are known from reports, and not verified here. Where the processor's registers can be read, each launch's record
shows what is true of the machine that measured.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class EqualSteps:
    """A processor, and what it makes of some steps, in per cent."""

    processor: str
    vendor: str  # as in /proc/cpuinfo
    family: int
    model: int
    steppings: Collection[int]
    becomes: Mapping[int, int]
    source: str


KNOWN = (
    EqualSteps(
        processor="Skylake-SP",
        vendor="GenuineIntel",
        family=6,
        model=85,
        steppings=range(5),  # later ones are Cascade Lake and Cooper Lake, of which nothing is reported
        becomes={70: 90, 80: 90},
        source="https://github.com/intel/intel-cmt-cat/issues/69",
    ),
)


def equal_steps(processor: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    """Return the steps that become another one on this processor, which /proc/cpuinfo describes."""
    numbers = tuple(processor.get(key, "") for key in ("cpu family", "model", "stepping"))
    if not all(number.isdecimal() for number in numbers):
        return ()
    family, model, stepping = map(int, numbers)
    for known in KNOWN:
        same = (known.vendor, known.family, known.model) == (processor.get("vendor_id"), family, model)
        if same and stepping in known.steppings:
            return tuple(known.becomes.items())
    return ()
