"""Allocators that plug-ins add: a study names one by `cache.driver`, as it names resctrl or pqos."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from castmates import plugins
from castmates.errors import CastmatesError
from castmates.protocols import Allocator, Monitor, Say
from castmates.study.cache import Cache

OURS = ("resctrl", "pqos")


@dataclass(frozen=True)
class Driver:
    """What a plug-in gives: how the cache can be shared out on this machine, and by what."""

    shareable: Callable[[], Cache | None]  # what partitions are planned for; None where nothing can be shared out
    refusal: Callable[[], str]  # why it could not give out anything here and now; "" where it could
    allocator: Callable[[Say], Allocator]  # for one launch
    monitor: Callable[[float, Say], Monitor] | None = None  # of so many readings a second; resctrl's if left out


def driver(name: str) -> Driver:
    """The driver of this name; an unknown name is an error in one sentence."""
    found = plugins.added("allocators", _wrong, taken=OURS)
    if name not in found:
        from castmates.study.reading import did_you_mean  # yaml: every launch loads this module, and none comes here

        known = [*OURS, *found]
        raise CastmatesError(f"'cache.driver' is '{name}'{did_you_mean(name, known)} (there are: {', '.join(known)}).")
    return cast(Driver, found[name])


def _wrong(thing: object) -> str:
    return "" if isinstance(thing, Driver) else f"it is a {type(thing).__name__}, and no castmates.rdt.added.Driver"
