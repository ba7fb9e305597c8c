"""Caches of made-up machines, for tests."""

from castmates.study.cache import Bandwidth, Cache

PERCENT = Bandwidth(unit="%", least=10, step=10, most=100)


def cache(ways: int = 12, **changed: object) -> Cache:
    """A cache of so many ways of 1.5 MiB, the upper two of which I/O uses too."""
    usual: dict[str, object] = {
        "domains": (0,),
        "ways": ways,
        "way_bytes": 3 * 2**19,
        "least_ways": 1,
        "sparse": False,
        "shareable": 0b11 << (ways - 2) if ways > 2 else 0,
        "groups": 7,
        "cdp": False,
        "bandwidth": PERCENT,
        "events": ("llc_occupancy",),
        "monitored_groups": 31,
    }
    return Cache.model_validate(usual | changed)
