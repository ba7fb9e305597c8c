"""A rehearsal: programs run here for real, and the cache is shared out in memory alone, as on another machine.

The key `cache.driver` asks for it, and every launch's design keeps it.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

PLATFORM = "rehearsed"  # where figures of a rehearsal come from
NO_EFFECT = (
    "Programs and times are real. The cache is shared out in memory only, as on another machine: masks and throttles "
    "did nothing, and cache occupancy and memory traffic are not known."
)
PREFIX = "rehearse:"
Rehearsal = Annotated[
    str,
    StringConstraints(pattern=rf"^{PREFIX}\S+$"),
    Field(description="rehearse: and a machine, such as rehearse:genoa"),
]


def machine_of(driver: str) -> str:
    """The machine that a driver rehearses, by its name or the file of its capture; "" where the driver is real."""
    return driver.removeprefix(PREFIX) if driver.startswith(PREFIX) else ""
