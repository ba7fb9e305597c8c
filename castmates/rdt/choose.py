"""Which allocator and which monitor this machine allows."""

from castmates.protocols import Allocator, Monitor
from castmates.rdt.nothing import NoAllocator, NoMonitor


def choose_allocator() -> Allocator:
    """There is no driver for cache allocation yet."""
    return NoAllocator()


def choose_monitor() -> Monitor:
    """There is no driver for cache monitoring yet."""
    return NoMonitor()
