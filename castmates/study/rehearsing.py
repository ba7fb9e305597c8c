"""A rehearsal: programs run here for real, and the cache is shared out in memory alone, as on another machine.

The key `cache.driver` asks for it, and every launch's design keeps it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints

if TYPE_CHECKING:
    from castmates.study.model import Study
    from castmates.study.spec import Launch

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


def refusal(study: "Study") -> str:
    """Why this study cannot be rehearsed; "" where it can, or is none."""
    if not machine_of(study.cache.driver) or (study.platform != "modelled" and not study.machines):
        return ""
    what = "is of a modelled machine" if study.platform == "modelled" else "names its machines"
    return f"this study {what}, and a rehearsal runs on the machine at hand; leave one out."


def mixed(now: str, before: "Iterable[Launch]") -> str:
    """Why these launches cannot be gone on with, in a sentence with a gap for where they are; "" where they can."""
    others = {machine_of(launch.design.driver) for launch in before} - {now}
    if not others:
        return ""
    had, has = (f"rehearsed on '{each}'" if each else "measured" for each in (min(others), now))
    return f"the launches in {{}} were {had}, and the study is now {has}: give it another name."
