"""What drives the cache of a machine: resctrl and pqos are ours, others come with plug-ins."""

from collections.abc import Callable
from dataclasses import dataclass

from castmates.protocols import Allocator, Monitor, Say
from castmates.study.cache import Cache


@dataclass(frozen=True)
class Driver:
    """What a plug-in gives: how the cache can be shared out on this machine, and by what."""

    shareable: Callable[[], Cache | None]  # what partitions are planned for; None where nothing can be shared out
    refusal: Callable[[], str]  # why it could not give out anything here and now; "" where it could
    allocator: Callable[[Say], Allocator]  # for one launch
    monitor: Callable[[float, Say], Monitor] | None = None  # of so many readings a second; resctrl's if left out
