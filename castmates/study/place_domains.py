"""A machine and the keys of a placement -> the last-level caches that jobs are placed on."""

from collections import Counter

from castmates.errors import CastmatesError
from castmates.study.place_keys import PlaceKeys
from castmates.study.placement.layout import Layout


def domains_of(layout: Layout, keys: PlaceKeys, origin: str) -> list[tuple[int, int]]:
    """The last-level caches to use, each with the cores around it."""
    if keys.domains and keys.cores:
        return [(number, keys.cores) for number in range(keys.domains)]
    there = Counter(core.llc for core in layout.cores)
    here = sorted((cache, cores) for cache, cores in there.items() if cache is not None)
    if not here:
        raise CastmatesError(
            f"{origin}: this machine does not show its last-level caches; write how many there are, and with how many "
            "cores each: `domains: 2` and `cores: 8`."
        )
    if keys.domains and keys.domains > len(here):
        raise CastmatesError(
            f"{origin}: 'domains' is {keys.domains}, but the machine has {len(here)}; for another machine give 'cores' "
            "too."
        )
    chosen = here[: keys.domains] if keys.domains else here
    if keys.cores and (small := min(cores for _, cores in chosen)) < keys.cores:
        raise CastmatesError(f"{origin}: 'cores' is {keys.cores}, but a cache of the machine has {small} around it.")
    return [(cache, keys.cores or cores) for cache, cores in chosen]
